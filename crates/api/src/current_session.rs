//! The session of a request, for handlers that take time: it may end meanwhile.

use std::sync::Arc;

use axum::http::request::Parts;
use edge::Session;

use crate::error::ApiError;

/// The session, as an extension of the request.
#[derive(Clone)]
pub(crate) struct CurrentSession(pub(crate) Arc<dyn Session>);

/// The session of a request of a user; none with a key.
pub(crate) fn current(parts: &Parts) -> Option<&CurrentSession> {
    parts.extensions.get::<CurrentSession>()
}

/// Checks that the session of a request has not ended while its body arrived.
pub(crate) async fn confirm(parts: &Parts) -> Result<(), ApiError> {
    match current(parts) {
        Some(CurrentSession(session)) => Ok(session.confirm().await?),
        None => Ok(()),
    }
}
