//! Sessions of users: by a token, or in a browser after a log-in. The owner of the accounts implements [`Sessions`]. If
//! a request has no application key, the API finds its user with this trait.
//!
//! **Invariant:** a cookie alone is no session. A request must also have the header [`SESSION_HEADER`] with the token
//! of the browser's forms. Pages of other sites cannot send this header, and cannot read this token.

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

/// Header with which a page of this server says that it uses the session of its browser.
pub const SESSION_HEADER: &str = "roost-session";

/// Guard of something that counts towards a limit until the guard is dropped.
pub type Held = Box<dyn Any + Send + Sync>;

/// Kinds of requests that the limits of a user distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUse {
    /// Request that changes nothing.
    Read,
    /// Request that changes something.
    Change,
    /// Request that writes, edits or boosts a post.
    Post,
}

/// Reason why a request has no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The session does not exist or has ended.
    Ended,
    /// A page of another site sent the request.
    OtherSite,
    /// The user has sent too many requests, and may send more after this time.
    TooMany(Duration),
    /// The server is overloaded or has failed.
    Overloaded,
}

/// Owner of the sessions.
pub trait Sessions: Debug + Send + Sync {
    /// Finds the session of a request: by its token; without a token, by its browser. Counts the request towards the
    /// rates of the user.
    fn find<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> Pending<'a, Result<Arc<dyn Session>, SessionError>>;
}

/// Session that was valid when it was found.
pub trait Session: Send + Sync {
    /// Id of the user.
    fn user(&self) -> u32;

    /// Whether the session may use routes with this scope.
    fn allows(&self, scope: Scope) -> bool;

    /// Counts a request towards the limits of its kind.
    ///
    /// # Errors
    /// If the user exceeds a rate, or has too many unsent bytes for another change.
    fn begin(&self, usage: SessionUse) -> Result<(), SessionError>;

    /// Reads a body, if the user and the address have few enough bodies at the same time. The body counts until the
    /// returned guard is dropped.
    fn read_body(
        &self,
        client: Option<ClientAddress>,
        body: Body,
    ) -> Pending<'_, Result<(HeldBody, Held), BodyError>>;

    /// Checks that the session has not ended.
    fn confirm(&self) -> Pending<'_, Result<(), SessionError>>;

    /// Creates the permission of a long request.
    fn permission(&self) -> Box<dyn Permission>;

    /// Counts a live stream of the user; `None` if the user has too many.
    fn begin_stream(&self) -> Option<Held>;

    /// Counts the bytes of a response until they are sent; `None` if the user has too many unsent bytes.
    fn hold(&self, bytes: usize, usage: SessionUse) -> Option<Held>;
}
