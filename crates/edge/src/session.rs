//! Sessions of users, by a token or in a browser after a log-in. The owner of the accounts implements [`Sessions`]; the
//! API uses it to identify the user of a request without an application key.
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

/// Header with which a page of this server requests the session of its browser.
pub const SESSION_HEADER: &str = "roost-session";

/// Guard of an item that counts towards a limit until the guard is dropped.
pub type Held = Box<dyn Any + Send + Sync>;

/// Kind of request, as the limits of a user distinguish them.
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
    /// Finds the session of a request: by its token, otherwise by its browser. Counts the request towards the rates of
    /// the user.
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

    /// Counts an allowed request by its kind.
    ///
    /// # Errors
    /// If the user exceeds a rate, or has too many unsent bytes for another change.
    fn begin(&self, usage: SessionUse) -> Result<(), SessionError>;

    /// Reads a body, within the concurrent limits of the user and the address. The body counts until the returned item
    /// is dropped.
    fn read_body(
        &self,
        client: Option<ClientAddress>,
        body: Body,
    ) -> Pending<'_, Result<(HeldBody, Held), BodyError>>;

    /// Checks that the session has not ended.
    fn confirm(&self) -> Pending<'_, Result<(), SessionError>>;

    /// Makes the permission of a long request.
    fn permission(&self) -> Box<dyn Permission>;

    /// Counts a live stream of the user; `None` if there are too many.
    fn begin_stream(&self) -> Option<Held>;

    /// Counts the bytes of a response until it is sent; `None` if the user has too many unsent bytes.
    fn hold(&self, bytes: usize, usage: SessionUse) -> Option<Held>;
}
