//! Commands about accounts, and their results. Variants are stored by their position, as in [`crate::Command`]: add new
//! ones at the end.

use serde::{Deserialize, Serialize};

use super::records::{AccountState, AppId, GrantId, Role, SecretHash};
use super::scopes::AccessScopes;
use super::text::{AppName, Email, PasswordHash, RedirectUri, Website};
use crate::handle::Handle;
use crate::ids::{UserId, UserRef};

/// A change of accounts or grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountCommand {
    /// Register a user with an account.
    SignUp {
        /// Handle, unique among all users.
        handle: Handle,
        /// E-mail address, unique among all accounts.
        email: Option<Email>,
        /// Hash of the password.
        password: PasswordHash,
        /// Role of the account.
        role: Role,
        /// Initial state of the account.
        state: AccountState,
        /// Hash of the code of the invite used, if any.
        invite: Option<SecretHash>,
    },
    /// Give an account to a registered user.
    Open {
        /// A user without an account.
        user: UserRef,
        /// E-mail address, unique among all accounts.
        email: Option<Email>,
        /// Hash of the password.
        password: PasswordHash,
        /// Role of the account.
        role: Role,
    },
    /// Change the password, and end all other grants of the user.
    SetPassword {
        /// The user.
        user: UserRef,
        /// Hash of the new password.
        password: PasswordHash,
        /// Session that changes the password, which stays valid.
        keep: Option<GrantId>,
    },
    /// Change the role of an account.
    SetRole {
        /// The user.
        user: UserRef,
        /// The new role.
        role: Role,
    },
    /// Approve, disable or enable an account. Disabling ends all grants of the user.
    SetState {
        /// The user.
        user: UserRef,
        /// The new state.
        state: AccountState,
    },
    /// Create an invite.
    CreateInvite {
        /// Hash of the invite's code.
        code: SecretHash,
        /// Number of sign-ups that the invite allows.
        uses: u32,
        /// Seconds until the invite expires.
        life_secs: u32,
    },
    /// Register an app.
    RegisterApp(Box<AppRequest>),
    /// Begin a browser session. The caller has verified the password.
    LogIn {
        /// The user.
        user: UserId,
        /// Password hash that the caller verified. The login is refused if the account has another hash by now.
        password: PasswordHash,
        /// Hash of the session's secret.
        session: SecretHash,
    },
    /// Give an app an authorization code. The user has agreed.
    Authorize {
        /// The user.
        user: UserId,
        /// The app.
        app: AppId,
        /// Scopes of the grant.
        scopes: AccessScopes,
        /// Hash of the code.
        code: SecretHash,
        /// Hash of the redirect URI.
        redirect: SecretHash,
        /// Code challenge: SHA-256 of the code verifier.
        challenge: Option<SecretHash>,
    },
    /// Exchange a code for a token. A second exchange of the same code ends the grant.
    Exchange {
        /// The app.
        app: AppId,
        /// Hash of the code.
        code: SecretHash,
        /// Hash of the redirect URI.
        redirect: SecretHash,
        /// SHA-256 of the code verifier.
        challenge: Option<SecretHash>,
        /// Hash of the token.
        token: SecretHash,
    },
    /// Give an app a token of its own, without a user.
    GrantApp {
        /// The app.
        app: AppId,
        /// Scopes of the token.
        scopes: AccessScopes,
        /// Hash of the token.
        token: SecretHash,
    },
    /// Give an app a token of a user. The caller has verified the password.
    GrantUser {
        /// The app.
        app: AppId,
        /// The user.
        user: UserId,
        /// Password hash that the caller verified, as in [`Self::LogIn`].
        password: PasswordHash,
        /// Scopes of the token.
        scopes: AccessScopes,
        /// Hash of the token.
        token: SecretHash,
    },
    /// End a grant.
    Revoke {
        /// The grant.
        grant: GrantId,
    },
    /// Mint a token of a user for an application. The user needs no account.
    Mint {
        /// The user.
        user: UserRef,
        /// Scopes of the token, at least one.
        scopes: AccessScopes,
        /// Seconds until the token expires.
        life_secs: u32,
        /// Hash of the token.
        token: SecretHash,
        /// Name of the application key.
        key: Option<AppName>,
    },
}

/// An app to register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppRequest {
    /// Name of the app, shown to users.
    pub name: AppName,
    /// Website of the app, shown to users.
    pub website: Option<Website>,
    /// Allowed redirect URIs: 1 to [`REDIRECT_URIS_MAX`](crate::limits::REDIRECT_URIS_MAX).
    pub redirects: Vec<RedirectUri>,
    /// Scopes that the app may ask for.
    pub scopes: AccessScopes,
    /// Hash of the app's secret.
    pub secret: SecretHash,
}

impl AccountCommand {
    /// Whether the command only removes something.
    #[must_use]
    pub fn removes(&self) -> bool {
        matches!(self, Self::Revoke { .. })
    }
}

/// The result of a command about accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountDone {
    /// A user was registered with an account.
    SignedUp(UserId),
    /// A user without an account got one.
    Opened(UserId),
    /// The account was changed.
    Changed,
    /// An invite was created.
    Invited,
    /// An app was registered.
    AppRegistered(AppId),
    /// A grant was created, or a code was exchanged for a token.
    Granted(GrantId),
    /// The code was used before, so its grant has ended.
    CodeReused,
    /// The grant has ended, now or before.
    Revoked,
}
