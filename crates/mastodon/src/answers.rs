//! Responses of more than a few kilobytes: their bytes are counted until they are sent, so that clients that do not read
//! cannot make the server hold more than [`MEMORY`], and one of them no more than [`CLIENT_BYTES`] of it.
//!
//! **Invariant:** a change is refused before it is carried out or not at all: clients repeat what was refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use feed::UserId;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Most bytes of all responses that are being sent. Those that are being made are not counted: there are as many as reads
/// at a time (64), each of at most [`PAGE_BYTES`](crate::paging::PAGE_BYTES) and one entity.
pub(crate) const MEMORY: usize = 20 << 20;
/// Most of these bytes of one client.
const CLIENT_BYTES: usize = 1 << 20;
/// Responses of up to so many bytes are not counted: they are part of what a connection takes.
const FREE: usize = 16 << 10;
/// Most bytes of an entity, which is the longest response to a change.
const ENTITY_BYTES: usize = 64 << 10;
/// Who gets a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    User(UserId),
    /// An address, as a subject of the limiter.
    Address(u64),
}

/// Bytes that are being sent, of each client.
type Shares = Arc<Mutex<HashMap<Client, usize>>>;

/// The responses that are being sent.
pub(crate) struct Answers {
    /// A permit for each byte.
    bytes: Arc<Semaphore>,
    shares: Shares,
}

/// Bytes with their permits.
struct Held {
    bytes: Bytes,
    _permits: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// Bytes of a client.
struct Share {
    shares: Shares,
    client: Client,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Ok(mut shares) = self.shares.lock()
            && let Some(bytes) = shares.get_mut(&self.client)
        {
            *bytes -= self.bytes;
            if *bytes == 0 {
                shares.remove(&self.client);
            }
        }
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(crate) fn new() -> Self {
        Self { bytes: Arc::new(Semaphore::new(MEMORY)), shares: Shares::default() }
    }

    /// Bytes that are counted until they are dropped.
    ///
    /// # Errors
    /// If too many bytes are being sent.
    pub(crate) fn hold(&self, bytes: Vec<u8>) -> Result<Bytes, ApiError> {
        let permits = self.permits(bytes.len()).ok_or_else(ApiError::overloaded)?;
        Ok(Bytes::from_owner(Held { bytes: bytes.into(), _permits: permits, _share: None }))
    }

    fn permits(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(bytes).ok()?;
        Arc::clone(&self.bytes).try_acquire_many_owned(count).ok()
    }

    fn share(&self, client: Client, bytes: usize) -> Option<Share> {
        let mut shares = self.shares.lock().ok()?;
        let held = shares.get(&client).copied().unwrap_or(0) + bytes;
        (held <= CLIENT_BYTES).then(|| shares.insert(client, held))?;
        Some(Share { shares: Arc::clone(&self.shares), client, bytes })
    }

    /// Checks before a change that its response can be sent.
    ///
    /// # Errors
    /// If too many bytes are being sent.
    pub(crate) fn check(&self, client: Client) -> Result<(), ApiError> {
        let fits = self.bytes.available_permits() >= ENTITY_BYTES
            && self.share(client, ENTITY_BYTES).is_some();
        if fits { Ok(()) } else { Err(ApiError::overloaded()) }
    }

    /// Counts a response until it is sent. Streams count their events themselves. A response to a change is sent in any
    /// case: [`Answers::check`] found room for it, which changes of the same moment may have taken.
    ///
    /// # Errors
    /// If too many bytes are being sent.
    pub(crate) async fn send(
        &self,
        client: Client,
        is_change: bool,
        response: Response,
    ) -> Result<Response, ApiError> {
        let length = response.body().size_hint().exact();
        let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
            return Ok(response);
        };
        if length <= FREE {
            return Ok(response);
        }
        let held = self.share(client, length).zip(self.permits(length));
        let Some((share, permits)) = held else {
            return if is_change { Ok(response) } else { Err(ApiError::overloaded()) };
        };
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, length).await.map_err(|_| ApiError::internal())?;
        let held = Held { bytes, _permits: permits, _share: Some(share) };
        Ok(Response::from_parts(parts, Body::from(Bytes::from_owner(held))))
    }
}

/// A response with JSON.
pub(crate) fn json(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// A response with an entity, which must exist.
///
/// # Errors
/// 404.
pub(crate) fn entity(entity: Option<Value>) -> Result<Response, ApiError> {
    let bytes = serde_json::to_vec(&entity.ok_or_else(ApiError::not_found)?);
    Ok(json(bytes.map_err(|_| ApiError::internal())?))
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

    #[tokio::test]
    async fn who_does_not_read_keeps_out_nobody_else_and_no_change() {
        let answers = Answers::new();
        let [one, other] = [Client::User(UserId(1)), Client::Address(1)];
        let read = async |client, bytes| answers.send(client, false, json(vec![b'x'; bytes])).await;
        let change = async |bytes| answers.send(one, true, json(vec![b'x'; bytes])).await;
        let mut unread = vec![read(one, CLIENT_BYTES - FREE).await.unwrap()];
        assert!(read(one, FREE + 1).await.is_err() && answers.check(one).is_err());
        assert!(read(one, FREE).await.is_ok(), "short ones are always sent");
        assert!(change(ENTITY_BYTES).await.is_ok(), "what was carried out is answered");
        assert!(read(other, FREE + 1).await.is_ok() && answers.check(other).is_ok());
        // All clients together.
        for number in 0..MEMORY / CLIENT_BYTES {
            let client = Client::Address(2 + number as u64);
            unread.extend(read(client, CLIENT_BYTES).await);
        }
        assert!(read(other, CLIENT_BYTES / 2).await.is_err() && answers.check(other).is_err());
        assert!(read(other, FREE).await.is_ok());
        drop(unread);
        assert!(read(one, CLIENT_BYTES).await.is_ok() && answers.check(other).is_ok());
        assert!(answers.shares.lock().unwrap().is_empty());
    }
}
