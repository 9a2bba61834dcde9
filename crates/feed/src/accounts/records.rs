//! Records of accounts, encoded as a version and the bytes of postcard. A later version adds fields at the end.

use rows::{Stamp, Value};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::scopes::AccessScopes;
use super::text::{AppName, Email, PasswordHash, RedirectUri, Website};
use crate::ids::UserId;
use crate::names::names;

/// Version of the records in this module.
const VERSION: u8 = 1;

/// SHA-256 of a secret, or of a text that is only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SecretHash(pub [u8; 32]);

/// Id of a registered app: the [`Stamp`] of the command that registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AppId(pub u64);

/// Id of a grant: the [`Stamp`] of the command that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GrantId(pub u64);

impl GrantId {
    /// Time of creation, in milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

/// Role of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// User without further rights.
    User,
    /// Moderator of the server.
    Moderator,
    /// Administrator of the server.
    Admin,
}

names!(Role {
    User = "user",
    Moderator = "moderator",
    Admin = "admin",
});

/// State of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccountState {
    /// Waits for approval.
    Pending,
    /// Usable: its user can log in.
    Active,
    /// Disabled by a moderator.
    Disabled,
}

names!(AccountState {
    Pending = "pending",
    Active = "active",
    Disabled = "disabled",
});

/// The account of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// E-mail address, unique among all accounts.
    pub email: Option<Email>,
    /// Hash of the password.
    pub password: PasswordHash,
    /// Role of the account.
    pub role: Role,
    /// State of the account.
    pub state: AccountState,
    /// Stamp of its creation.
    pub created: Stamp,
}

/// An invite to sign up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Number of sign-ups left.
    pub uses: u32,
    /// Time of expiry, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// An app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Name of the app, shown to users.
    pub name: AppName,
    /// Website of the app, shown to users.
    pub website: Option<Website>,
    /// Allowed redirect URIs.
    pub redirects: Vec<RedirectUri>,
    /// Scopes that the app may ask for.
    pub scopes: AccessScopes,
    /// Hash of the app's secret.
    pub secret: SecretHash,
}

/// A permission to use the API, proved by a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// App of the grant; `None` for browser sessions and minted tokens.
    pub app: Option<AppId>,
    /// User of the grant; `None` for a token of an app itself.
    pub user: Option<UserId>,
    /// Scopes of the grant; empty for browser sessions, which permit everything that their users may do.
    pub scopes: AccessScopes,
    /// Secrets of the grant.
    pub stage: Stage,
    /// Name of the application key that minted the token.
    pub key: Option<AppName>,
}

/// Secrets of a grant, by the stage of the authorization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Authorization code that is not exchanged yet.
    Code(Code),
    /// Access token or browser session.
    Token {
        /// Hash of the token.
        token: SecretHash,
        /// Hash of the exchanged code, and its expiry in milliseconds since 1970. Until then a second use of the code
        /// ends the grant.
        code: Option<(SecretHash, u64)>,
        /// Expiry of the token, in milliseconds since 1970; `None` for tokens of apps.
        expires_ms: Option<u64>,
    },
}

/// An authorization code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Hash of the code.
    pub hash: SecretHash,
    /// Hash of the redirect URI that received the code.
    pub redirect: SecretHash,
    /// SHA-256 of the code verifier that the exchange must present.
    pub challenge: Option<SecretHash>,
    /// Time of expiry, in milliseconds since 1970.
    pub expires_ms: u64,
}

impl Grant {
    /// Whether an application has minted the token of this grant.
    #[must_use]
    pub fn is_minted(&self) -> bool {
        self.app.is_none() && self.scopes != AccessScopes::default()
    }

    /// Expiry of the token, in milliseconds since 1970.
    #[must_use]
    pub const fn token_expires_ms(&self) -> Option<u64> {
        match self.stage {
            Stage::Code(_) => None,
            Stage::Token { expires_ms, .. } => expires_ms,
        }
    }

    /// Hashes of the code and of the token.
    #[must_use]
    pub fn secrets(&self) -> [Option<SecretHash>; 2] {
        match &self.stage {
            Stage::Code(code) => [Some(code.hash), None],
            Stage::Token { token, code, .. } => [code.map(|(code, _)| code), Some(*token)],
        }
    }

    /// Next expiry of one of its secrets, in milliseconds since 1970.
    #[must_use]
    pub fn expires_ms(&self) -> Option<u64> {
        match &self.stage {
            Stage::Code(code) => Some(code.expires_ms),
            Stage::Token { code, expires_ms, .. } => code.map(|(_, at)| at).or(*expires_ms),
        }
    }
}

/// A record with a version.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// Encodes the record for its row.
    fn to_row(&self) -> Value {
        rows::encode(&(VERSION, self))
    }

    /// Reverses [`Record::to_row`].
    ///
    /// # Panics
    /// If the bytes are invalid. The store checks rows, so this is a broken invariant.
    fn of_row(row: &[u8]) -> Self {
        let (_, record): (u8, Self) = rows::decode(row);
        record
    }

    /// Decodes bytes that may be damaged; `None` if they are invalid.
    fn try_of_row(row: &[u8]) -> Option<Self> {
        let (version, record): (u8, Self) = rows::try_decode(row)?;
        (version == VERSION).then_some(record)
    }
}

impl Record for Account {}

impl Record for App {}

impl Record for Grant {}

impl Record for Invite {}
