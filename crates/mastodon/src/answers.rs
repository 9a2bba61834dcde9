//! Memory of responses of more than a few kilobytes. Their bytes are counted until they are sent. Clients that do not
//! read hold at most [`MEMORY`] together, and [`CLIENT_BYTES`] each.
//!
//! **Invariant:** a refused change was not carried out, because clients repeat refused requests.

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use budget::{MemoryBudget, Reservation};
use edge::{ANSWER_BYTES_FREE, Share, Shares, held_bytes, held_until_sent};
use feed::UserId;

use crate::entities::json::Json;
use crate::error::ApiError;
use crate::limiter::Subject;

/// Maximum size of all unsent responses except those to changes, in bytes. Responses under construction are not
/// counted: there are at most as many as concurrent reads (64), each of at most
/// [`PAGE_BYTES`](crate::paging::PAGE_BYTES) plus one entity.
const READ_BYTES: usize = 16 << 20;
/// Maximum size of all unsent responses to changes, in bytes. This budget is separate, so that slow readers do not
/// block changes.
const CHANGE_BYTES: usize = 4 << 20;
/// Maximum size of all unsent responses, in bytes.
pub(crate) const MEMORY: usize = READ_BYTES + CHANGE_BYTES;
/// Maximum size of one client's unsent responses, in bytes.
const CLIENT_BYTES: usize = 1 << 20;
/// Maximum size of an entity, in bytes, which is the longest response to a change. Most of it is the descriptions of
/// four pictures, and the filters that a boost and the boosted post match, 1.2 kB each. The size counts twice, because
/// a status may contain a quoted status.
const ENTITY_BYTES: usize = 512 << 10;
/// Client that gets a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    User(UserId),
    /// Address of a client without a user.
    Address(Subject),
}

/// Unsent responses.
pub(crate) struct Answers {
    /// Responses to reads, and streams.
    reads: MemoryBudget,
    changes: MemoryBudget,
    shares: Shares<Client>,
}

/// Memory of a response until it is sent.
type Counted = (Share<Client>, Reservation);

impl Answers {
    pub(crate) fn new() -> Self {
        let [reads, changes] = [READ_BYTES, CHANGE_BYTES].map(MemoryBudget::new);
        Self { reads, changes, shares: Shares::default() }
    }

    /// Counts bytes of a client's stream until they are dropped. `None` if too many bytes are unsent.
    pub(crate) fn hold(&self, client: Client, bytes: Vec<u8>) -> Option<Bytes> {
        let counted = self.room(client, &self.reads, bytes.len())?;
        Some(held_bytes(bytes, counted))
    }

    /// Checks before a change that its response can be sent.
    ///
    /// # Errors
    /// If too many bytes are unsent.
    pub(crate) fn check(&self, client: Client) -> Result<(), ApiError> {
        // The check reserves nothing, because most responses are much shorter than [`ENTITY_BYTES`].
        let fits = self.shares.fits(client, ENTITY_BYTES, CLIENT_BYTES);
        match fits && self.changes.fits(ENTITY_BYTES) {
            true => Ok(()),
            false => Err(ApiError::overloaded()),
        }
    }

    /// Counts a response until it is sent. Streams count their events themselves. A response to a change is always
    /// sent: [`Answers::check`] found memory for it, even if simultaneous changes have used it meanwhile.
    ///
    /// # Errors
    /// If too many bytes are unsent.
    pub(crate) fn send(
        &self,
        client: Client,
        is_change: bool,
        response: Response,
    ) -> Result<Response, ApiError> {
        let length = response.body().size_hint().exact();
        let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        if length <= ANSWER_BYTES_FREE {
            return Ok(response);
        }
        let budget = if is_change { &self.changes } else { &self.reads };
        match self.room(client, budget, length) {
            Some(counted) => Ok(held_until_sent(response, counted)),
            None if is_change => Ok(response),
            None => Err(ApiError::overloaded()),
        }
    }

    /// Counts the bytes of a response of `/v1`, which holds the result until it is sent. `None` if too many bytes are
    /// unsent.
    pub(crate) fn count(
        &self,
        client: Client,
        is_change: bool,
        bytes: usize,
    ) -> Option<edge::Held> {
        if bytes <= ANSWER_BYTES_FREE {
            return Some(Box::new(()));
        }
        let budget = if is_change { &self.changes } else { &self.reads };
        Some(Box::new(self.room(client, budget, bytes)?))
    }

    fn room(&self, client: Client, budget: &MemoryBudget, bytes: usize) -> Option<Counted> {
        let share = self.shares.take(client, bytes, CLIENT_BYTES)?;
        Some((share, budget.try_reserve(bytes)?))
    }
}

/// Makes a JSON response.
pub(crate) fn json(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Makes a response from an entity.
///
/// # Errors
/// 404 if the entity does not exist.
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

    #[test]
    fn who_does_not_read_keeps_out_nobody_else_and_no_change() {
        let answers = Answers::new();
        let [one, other] = [Client::User(UserId(1)), Client::Address(1.into())];
        let read = |client, bytes| answers.send(client, false, json(vec![b'x'; bytes]));
        let change = |bytes| answers.send(one, true, json(vec![b'x'; bytes]));
        let mut unread = vec![read(one, CLIENT_BYTES - ANSWER_BYTES_FREE).unwrap()];
        assert!(read(one, ANSWER_BYTES_FREE + 1).is_err() && answers.check(one).is_err());
        assert!(read(one, ANSWER_BYTES_FREE).is_ok(), "short responses are always sent");
        assert!(change(ENTITY_BYTES).is_ok(), "executed changes get a response");
        assert!(read(other, ANSWER_BYTES_FREE + 1).is_ok() && answers.check(other).is_ok());
        // The limit of all clients together is reached.
        for number in 0..READ_BYTES / CLIENT_BYTES {
            let client = Client::Address((2 + number as u64).into());
            unread.extend(read(client, CLIENT_BYTES));
        }
        assert!(read(other, CLIENT_BYTES / 2).is_err());
        assert!(answers.check(other).is_ok(), "they block no change");
        assert!(read(other, ANSWER_BYTES_FREE).is_ok());
        drop(unread);
        assert!(read(one, CLIENT_BYTES).is_ok() && answers.check(other).is_ok());
        assert!(answers.shares.clients() == 0);
    }
}
