//! Accounts of people, and the access that they grant to apps and browsers (OAuth 2).
//!
//! An account belongs to a user, at most one to each. It has a password, and it can be pending or disabled. A
//! **grant** is a permission that whoever has its secret may use: an authorization code, the access token that it becomes, a
//! token of an app itself, the session of a browser, or a token that an application has minted for one of its users.
//! Commands and rows have only hashes of secrets: the caller makes 256 random bits, and hashes passwords, before it makes
//! a command.
//!
//! **Invariant:** a grant acts for a user only while the user has an active account; one that was minted, also for a user
//! without an account.
//! **Invariant:** what clients can add without an account is bounded: apps that act for nobody, and the tokens of
//! each app itself. The oldest is removed when the limit is reached.

mod command;
mod records;
mod scopes;
mod text;

pub use command::{AccountCommand, AccountDone, AppRequest};
pub(crate) use records::Record;
pub use records::{
    Account, AccountState, App, AppId, Code, Grant, GrantId, Invite, Role, SecretHash, Stage,
};
pub use scopes::{AccessScope, AccessScopes};
pub use text::{AppName, Email, PasswordHash, RedirectUri, Website};
