//! Sessions of users: what a user may do with a token, or in a browser after a log-in. Whoever owns the accounts
//! implements [`Sessions`]; the API asks it whom a request is from that has no application key.
//!
//! **Invariant:** a cookie alone is no session. A request must also have the header [`SESSION_HEADER`], which pages of
//! other sites cannot send, with the token of the browser's forms, which they cannot read.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::HeaderMap;

use crate::accept::ClientAddress;
use crate::access::Scope;
use crate::body::{BodyError, HeldBody};
use crate::revocable::{Pending, Permission};

/// The header with which a page of this server asks for the session of its browser.
pub const SESSION_HEADER: &str = "roost-session";

/// Something that is counted until it is dropped.
pub type Held = Box<dyn Any + Send + Sync>;

/// What a request does, as far as its user's limits differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUse {
    /// Changes nothing.
    Read,
    /// Changes something.
    Change,
    /// Writes, edits or boosts a post.
    Post,
}

/// Why a request is from no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// There is no such session, or it has ended.
    Ended,
    /// A page of another site has sent the request.
    OtherSite,
    /// The user has sent too many requests, and may send more after this time.
    TooMany(Duration),
    /// The server is overloaded, or failed.
    Overloaded,
}

/// The owner of the sessions.
pub trait Sessions: Debug + Send + Sync {
    /// The session of a request with these headers: of its token, or else of its browser. The request is counted against the rates of its user.
    fn find<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> Pending<'a, Result<Arc<dyn Session>, SessionError>>;
}

/// A session that was valid when it was found.
pub trait Session: Send + Sync {
    /// The id of its user.
    fn user(&self) -> u32;

    /// Whether it permits routes with this scope.
    fn allows(&self, scope: Scope) -> bool;

    /// Counts what a request does that may do it.
    ///
    /// # Errors
    /// If its user does too much of it, or is sent too many bytes for another change.
    fn begin(&self, usage: SessionUse) -> Result<(), SessionError>;

    /// Reads a body, within what its user and the address may send at a time, until what is returned with it is dropped.
    fn read_body(
        &self,
        client: Option<ClientAddress>,
        body: Body,
    ) -> Pending<'_, Result<(HeldBody, Held), BodyError>>;

    /// Checks that it has not ended since.
    fn confirm(&self) -> Pending<'_, Result<(), SessionError>>;

    /// What permits a long request.
    fn permission(&self) -> Box<dyn Permission>;

    /// Counts a live stream of its user; none if there are too many.
    fn begin_stream(&self) -> Option<Held>;

    /// Counts the bytes of a response until it is sent; none if its user is sent too many.
    fn hold(&self, bytes: usize, usage: SessionUse) -> Option<Held>;
}
