//! Session of a request, for handlers that take so long that the session may end.

use std::sync::Arc;

use axum::http::request::Parts;
use edge::Session;

use crate::error::ApiError;

/// Session, as an extension of the request.
#[derive(Clone)]
pub(crate) struct CurrentSession(pub(crate) Arc<dyn Session>);

/// Session of a user's request; `None` for a request with a key.
pub(crate) fn current(parts: &Parts) -> Option<&CurrentSession> {
    parts.extensions.get::<CurrentSession>()
}

/// Refuses a request whose session has ended while the body arrived.
pub(crate) async fn confirm(parts: &Parts) -> Result<(), ApiError> {
    match current(parts) {
        Some(CurrentSession(session)) => Ok(session.confirm().await?),
        None => Ok(()),
    }
}
