//! Accounts of users, and the access that they grant to apps and browsers (OAuth 2).
//!
//! A user has at most one account, with a password. It can be pending or disabled. A **grant** is a permission proved
//! by a secret: an authorization code, the access token exchanged for it, a token of an app itself, a browser session,
//! or a token that an application has minted for one of its users. Commands and rows contain only hashes of secrets:
//! the caller generates 256 random bits, and hashes passwords, before it sends a command.
//!
//! **Invariant:** a grant acts for a user only while the user has an active account. Minted tokens also act for users
//! without an account.
//! **Invariant:** the data that clients can add without an account is bounded: apps without a grant of a user, and the
//! tokens of each app itself. At the limit, a new one replaces the oldest.

mod command;
pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod grants;
pub(crate) mod mend;
mod records;
pub(crate) mod rules;
mod scopes;
mod text;

pub use command::{AccountCommand, AccountDone, AppRequest};
pub(crate) use records::Record;
pub use records::{
    Account, AccountState, App, AppId, Code, Grant, GrantId, Invite, Role, SecretHash, Stage,
};
pub use scopes::{AccessScope, AccessScopes};
pub use text::{AppName, Email, PasswordHash, RedirectUri, Website};
