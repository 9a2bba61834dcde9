//! The records of accounts, and their bytes: a version, and what postcard writes. A later version adds fields at the
//! end.

use rows::{Stamp, Value};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::scopes::AccessScopes;
use super::text::{AppName, Email, PasswordHash, RedirectUri, Website};
use crate::ids::UserId;

/// The version of all records here.
const VERSION: u8 = 1;

/// SHA-256 of a secret, or of a text that is only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SecretHash(pub [u8; 32]);

/// A registered app: the [`Stamp`] of the command that registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AppId(pub u64);

/// A grant: the [`Stamp`] of the command that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GrantId(pub u64);

impl GrantId {
    /// Milliseconds since 1970 at which it was granted.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

/// What an account may do beside what every account may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Nothing.
    User,
    /// Moderate.
    Moderator,
    /// Administer the server.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::Moderator, Self::Admin];

    /// `user`, `moderator` or `admin`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Moderator => "moderator",
            Self::Admin => "admin",
        }
    }

    /// Reverses [`Role::name`].
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// Whether an account can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccountState {
    /// It waits for approval.
    Pending,
    /// Its user can log in.
    Active,
    /// A moderator has disabled it.
    Disabled,
}

impl AccountState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Active, Self::Disabled];

    /// `pending`, `active` or `disabled`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }

    /// Reverses [`AccountState::name`].
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The account of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Unique among all accounts.
    pub email: Option<Email>,
    /// Hash of the password.
    pub password: PasswordHash,
    /// What it may do.
    pub role: Role,
    /// Whether it can be used.
    pub state: AccountState,
    /// When it was made.
    pub created: Stamp,
}

/// An invite to sign up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Number of sign-ups left.
    pub uses: u32,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// An app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Shown to users.
    pub name: AppName,
    /// Shown to users.
    pub website: Option<Website>,
    /// Where users may be sent back to.
    pub redirects: Vec<RedirectUri>,
    /// What it may ask for.
    pub scopes: AccessScopes,
    /// Hash of its secret.
    pub secret: SecretHash,
}

/// A permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The app; none for the session of a browser and for what was minted.
    pub app: Option<AppId>,
    /// The user; none for a token of an app itself.
    pub user: Option<UserId>,
    /// What it permits; nothing is named for the session of a browser, which permits what its user may do.
    pub scopes: AccessScopes,
    /// The secrets that prove it.
    pub stage: Stage,
}

/// The secrets of a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// An authorization code that was not exchanged yet.
    Code(Code),
    /// A token, or a session.
    Token {
        /// Hash of the token.
        token: SecretHash,
        /// Hash of the code that it was exchanged for, and when that expires in milliseconds since 1970. Until then
        /// a second use of the code ends the grant.
        code: Option<(SecretHash, u64)>,
        /// When the token expires, in milliseconds since 1970. Those of apps do not.
        expires_ms: Option<u64>,
    },
}

/// An authorization code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Its hash.
    pub hash: SecretHash,
    /// Hash of the redirect URI that it was sent to.
    pub redirect: SecretHash,
    /// SHA-256 of the code verifier that it must be exchanged with.
    pub challenge: Option<SecretHash>,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
}

impl Grant {
    /// Whether an application has minted it.
    #[must_use]
    pub fn is_minted(&self) -> bool {
        self.app.is_none() && self.scopes != AccessScopes::default()
    }

    /// When its token expires, in milliseconds since 1970.
    #[must_use]
    pub const fn token_expires_ms(&self) -> Option<u64> {
        match self.stage {
            Stage::Code(_) => None,
            Stage::Token { expires_ms, .. } => expires_ms,
        }
    }

    /// Hashes of its secrets: of the code and of the token.
    #[must_use]
    pub fn secrets(&self) -> [Option<SecretHash>; 2] {
        match &self.stage {
            Stage::Code(code) => [Some(code.hash), None],
            Stage::Token { token, code, .. } => [code.map(|(code, _)| code), Some(*token)],
        }
    }

    /// When it has to be looked at again, in milliseconds since 1970.
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
    /// The bytes of its row.
    fn to_row(&self) -> Value {
        rows::encode(&(VERSION, self))
    }

    /// Reverses [`Record::to_row`].
    ///
    /// # Panics
    /// If the row is not one of ours: rows are checked by the store, so this is a broken invariant.
    fn of_row(row: &[u8]) -> Self {
        let (_, record): (u8, Self) = rows::decode(row);
        record
    }

    /// As [`Record::of_row`], for bytes that may be damaged.
    fn try_of_row(row: &[u8]) -> Option<Self> {
        let (version, record): (u8, Self) = rows::try_decode(row)?;
        (version == VERSION).then_some(record)
    }
}

impl Record for Account {}
impl Record for App {}
impl Record for Grant {}
impl Record for Invite {}
