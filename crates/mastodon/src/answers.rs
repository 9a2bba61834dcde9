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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::entities::json::Json;
use crate::error::ApiError;
use crate::limiter::Subject;

/// Most bytes of all responses that are being sent, but those to changes. Those that are being made are not counted: there are as many as reads
/// at a time (64), each of at most [`PAGE_BYTES`](crate::paging::PAGE_BYTES) and one entity.
const READ_BYTES: usize = 16 << 20;
/// Most bytes of all responses to changes that are being sent: who reads slowly keeps out no change.
const CHANGE_BYTES: usize = 4 << 20;
/// Most bytes of all.
pub(crate) const MEMORY: usize = READ_BYTES + CHANGE_BYTES;
/// Most of these bytes of one client.
const CLIENT_BYTES: usize = 1 << 20;
/// Responses of up to so many bytes are not counted: they are part of what a connection takes.
const FREE: usize = 16 << 10;
/// Most bytes of an entity, which is the longest response to a change: most of it are the descriptions of four pictures,
/// and the filters that a boost and the boosted post match, 1.2 kB each.
const ENTITY_BYTES: usize = 256 << 10;
/// Who gets a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    User(UserId),
    /// An address.
    Address(Subject),
}

/// Bytes that are being sent, of each client.
type Shares = Arc<Mutex<HashMap<Client, usize>>>;

/// The responses that are being sent.
pub(crate) struct Answers {
    /// A permit for each byte of reads and streams.
    reads: Arc<Semaphore>,
    /// A permit for each byte of changes.
    changes: Arc<Semaphore>,
    shares: Shares,
}

/// Bytes with their permits.
struct Held {
    bytes: Bytes,
    _permits: OwnedSemaphorePermit,
    _share: Share,
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
        let reads = Arc::new(Semaphore::new(READ_BYTES));
        let changes = Arc::new(Semaphore::new(CHANGE_BYTES));
        Self { reads, changes, shares: Shares::default() }
    }

    /// Bytes of a stream of a client, which are counted until they are dropped. None if too many bytes are being sent.
    pub(crate) fn hold(&self, client: Client, bytes: Vec<u8>) -> Option<Bytes> {
        let share = self.share(client, bytes.len())?;
        let permits = permits(&self.reads, bytes.len())?;
        Some(Bytes::from_owner(Held { bytes: bytes.into(), _permits: permits, _share: share }))
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
        let fits = self.changes.available_permits() >= ENTITY_BYTES
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
        let Some((share, permits)) = self.room(client, is_change, length) else {
            return if is_change { Ok(response) } else { Err(ApiError::overloaded()) };
        };
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, length).await.map_err(|_| ApiError::internal())?;
        let held = Held { bytes, _permits: permits, _share: share };
        Ok(Response::from_parts(parts, Body::from(Bytes::from_owner(held))))
    }

    /// Counts the bytes of a response of `/v1`, which holds the result until it is sent. None if too many bytes are being
    /// sent.
    pub(crate) fn count(
        &self,
        client: Client,
        is_change: bool,
        bytes: usize,
    ) -> Option<edge::Held> {
        if bytes <= FREE {
            return Some(Box::new(()));
        }
        let (share, permits) = self.room(client, is_change, bytes)?;
        Some(Box::new((share, permits)))
    }

    fn room(
        &self,
        client: Client,
        is_change: bool,
        bytes: usize,
    ) -> Option<(Share, OwnedSemaphorePermit)> {
        let budget = if is_change { &self.changes } else { &self.reads };
        self.share(client, bytes).zip(permits(budget, bytes))
    }
}

fn permits(budget: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let count = u32::try_from(bytes).ok()?;
    Arc::clone(budget).try_acquire_many_owned(count).ok()
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
pub(crate) fn entity(entity: Option<impl Into<Json>>) -> Result<Response, ApiError> {
    let entity: Json = entity.ok_or_else(ApiError::not_found)?.into();
    Ok(json(entity.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_the_last_of_them_is_dropped() {
        let answers = Answers::new();
        let client = |number| Client::User(UserId(number));
        let hold = |number, bytes| answers.hold(client(number), vec![b'x'; bytes]);
        let all = hold(0, CLIENT_BYTES).unwrap();
        assert!(hold(0, 1).is_none() && hold(1, 1).is_some());
        let part = all.slice(0..1);
        drop(all);
        assert!(hold(0, 1).is_none());
        drop(part);
        assert!(hold(0, 1).is_some());
        let clients = 0..(READ_BYTES / CLIENT_BYTES) as u32;
        let held: Vec<_> = clients.map(|number| hold(number, CLIENT_BYTES).unwrap()).collect();
        assert!(hold(99, 1).is_none());
        drop(held);
        assert!(hold(99, 1).is_some());
    }

    #[tokio::test]
    async fn who_does_not_read_keeps_out_nobody_else_and_no_change() {
        let answers = Answers::new();
        let [one, other] = [Client::User(UserId(1)), Client::Address(1.into())];
        let read = async |client, bytes| answers.send(client, false, json(vec![b'x'; bytes])).await;
        let change = async |bytes| answers.send(one, true, json(vec![b'x'; bytes])).await;
        let mut unread = vec![read(one, CLIENT_BYTES - FREE).await.unwrap()];
        assert!(read(one, FREE + 1).await.is_err() && answers.check(one).is_err());
        assert!(read(one, FREE).await.is_ok(), "short ones are always sent");
        assert!(change(ENTITY_BYTES).await.is_ok(), "what was carried out is answered");
        assert!(read(other, FREE + 1).await.is_ok() && answers.check(other).is_ok());
        // All clients together.
        for number in 0..READ_BYTES / CLIENT_BYTES {
            let client = Client::Address((2 + number as u64).into());
            unread.extend(read(client, CLIENT_BYTES).await);
        }
        assert!(read(other, CLIENT_BYTES / 2).await.is_err());
        assert!(answers.check(other).is_ok(), "they keep out no change");
        assert!(read(other, FREE).await.is_ok());
        drop(unread);
        assert!(read(one, CLIENT_BYTES).await.is_ok() && answers.check(other).is_ok());
        assert!(answers.shares.lock().unwrap().is_empty());
    }
}
