//! Responses of more than a few kilobytes: their bytes are counted until they are sent, so that clients that do not read
//! cannot make the server hold more than [`MEMORY`].

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Most bytes of all responses that are being sent.
pub(crate) const MEMORY: usize = 20 << 20;

/// The responses that are being sent: a permit for each byte.
pub(crate) struct Answers(Arc<Semaphore>);

/// Bytes with their permits.
struct Held {
    bytes: Vec<u8>,
    _permits: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MEMORY)))
    }

    /// Bytes that are counted until they are dropped.
    ///
    /// # Errors
    /// If too many bytes are being sent.
    pub(crate) fn hold(&self, bytes: Vec<u8>) -> Result<Bytes, ApiError> {
        let permits = u32::try_from(bytes.len()).ok().and_then(|count| {
            let permits = Arc::clone(&self.0).try_acquire_many_owned(count);
            permits.ok()
        });
        let _permits = permits.ok_or_else(ApiError::overloaded)?;
        Ok(Bytes::from_owner(Held { bytes, _permits }))
    }

    /// A response with JSON.
    ///
    /// # Errors
    /// As [`Answers::hold`].
    pub(crate) fn json(&self, bytes: Vec<u8>) -> Result<Response, ApiError> {
        let mut response = Response::new(Body::from(self.hold(bytes)?));
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, json);
        Ok(response)
    }

    /// A response with an entity; 404 if there is none.
    ///
    /// # Errors
    /// As [`Answers::hold`].
    pub(crate) fn entity(&self, entity: Option<Value>) -> Result<Response, ApiError> {
        let bytes = serde_json::to_vec(&entity.ok_or_else(ApiError::not_found)?);
        self.json(bytes.map_err(|_| ApiError::internal())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_the_last_of_them_is_dropped() {
        let answers = Answers::new();
        let all = answers.hold(vec![b'x'; MEMORY]).unwrap();
        assert!(answers.hold(vec![b'x']).is_err());
        let part = all.slice(0..1);
        drop(all);
        assert!(answers.hold(vec![b'x']).is_err());
        drop(part);
        assert!(answers.hold(vec![b'x']).is_ok());
    }
}
