//! Commands about accounts, and their results. Stored as [`crate::Command`] is: new variants are added at the end.

use serde::{Deserialize, Serialize};

use super::records::{AccountState, AppId, GrantId, Role, SecretHash};
use super::scopes::AccessScopes;
use super::text::{AppName, Email, PasswordHash, RedirectUri, Website};
use crate::ids::{UserId, UserRef};
use crate::text::Handle;

/// A change of accounts or of what they grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountCommand {
    /// Register a user with an account.
    SignUp {
        /// Unique among all users.
        handle: Handle,
        /// Unique among all accounts.
        email: Option<Email>,
        /// Hash of the password.
        password: PasswordHash,
        /// The role of the account.
        role: Role,
        /// The state in which it begins.
        state: AccountState,
        /// The invite that the sign-up uses.
        invite: Option<SecretHash>,
    },
    /// Give an account to a registered user.
    Open {
        /// A user without an account.
        user: UserRef,
        /// Unique among all accounts.
        email: Option<Email>,
        /// Hash of the password.
        password: PasswordHash,
        /// The role of the account.
        role: Role,
    },
    /// Change the password, and end all grants of the user but one.
    SetPassword {
        /// The user.
        user: UserRef,
        /// Hash of the new password.
        password: PasswordHash,
        /// The session that changes it, which continues.
        keep: Option<GrantId>,
    },
    /// Change the role.
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
        /// Hash of its code.
        code: SecretHash,
        /// Number of sign-ups.
        uses: u32,
        /// Seconds until it expires.
        life_secs: u32,
    },
    /// Register an app.
    RegisterApp(Box<AppRequest>),
    /// Begin a session of a browser. The caller has compared the password.
    LogIn {
        /// The user.
        user: UserId,
        /// The password hash that was compared. If the account has another by now, the log-in is refused.
        password: PasswordHash,
        /// Hash of the session's secret.
        session: SecretHash,
    },
    /// Give an app an authorization code. The caller has asked the user.
    Authorize {
        /// The user.
        user: UserId,
        /// The app.
        app: AppId,
        /// What the app may do.
        scopes: AccessScopes,
        /// Hash of the code.
        code: SecretHash,
        /// Hash of the redirect URI.
        redirect: SecretHash,
        /// The code challenge: SHA-256 of the verifier.
        challenge: Option<SecretHash>,
    },
    /// Exchange a code for a token. A code that was exchanged before ends the grant.
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
    /// Give an app a token of its own.
    GrantApp {
        /// The app.
        app: AppId,
        /// What the app may do.
        scopes: AccessScopes,
        /// Hash of the token.
        token: SecretHash,
    },
    /// Give an app a token of a user. The caller has compared the password.
    GrantUser {
        /// The app.
        app: AppId,
        /// The user.
        user: UserId,
        /// As in [`Self::LogIn`].
        password: PasswordHash,
        /// What the app may do.
        scopes: AccessScopes,
        /// Hash of the token.
        token: SecretHash,
    },
    /// End a grant.
    Revoke {
        /// The grant.
        grant: GrantId,
    },
    /// Give an application a token of a user, who needs no account.
    Mint {
        /// The user.
        user: UserRef,
        /// What the token permits: something.
        scopes: AccessScopes,
        /// Seconds until it expires.
        life_secs: u32,
        /// Hash of the token.
        token: SecretHash,
    },
}

/// An app to be registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppRequest {
    /// Shown to users.
    pub name: AppName,
    /// Shown to users.
    pub website: Option<Website>,
    /// Where users may be sent back to: 1 to [`REDIRECT_URIS_MAX`](crate::limits::REDIRECT_URIS_MAX).
    pub redirects: Vec<RedirectUri>,
    /// What it may ask for.
    pub scopes: AccessScopes,
    /// Hash of its secret.
    pub secret: SecretHash,
}

impl AccountCommand {
    /// Whether it only removes something.
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
    /// The user has an account now.
    Opened(UserId),
    /// The account was changed.
    Changed,
    /// An invite was created.
    Invited,
    /// An app was registered.
    AppRegistered(AppId),
    /// There is a new grant, or a code became a token.
    Granted(GrantId),
    /// The code was used before: what was granted for it has ended.
    CodeReused,
    /// The grant has ended; it may have ended before.
    Revoked,
}
