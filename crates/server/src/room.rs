//! Memory for requests that take much of it: large bodies, images and large answers.
//!
//! **Invariant:** all of them together take no more than [`BYTES`]; whoever does not fit is told to come
//! back.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::drawing;
use crate::http::error::Problem;

/// What they may take together.
const BYTES: u64 = 256 << 20;
/// The unit of counting.
const UNIT: u64 = 64 << 10;

const _: () = assert!(drawing::READING_BYTES_MAX + UNIT <= BYTES);

/// Room that is left.
pub(crate) struct Room(Arc<Semaphore>);

/// Room taken, until it is dropped.
pub(crate) struct Taken(#[expect(dead_code, reason = "gives the room back")] OwnedSemaphorePermit);

impl Room {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new((BYTES / UNIT) as usize)))
    }

    /// Takes room for so many bytes.
    ///
    /// # Errors
    /// Overloaded if there is not as much left.
    pub(crate) fn take(&self, bytes: u64) -> Result<Taken, Problem> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.0).try_acquire_many_owned(units);
        taken.map(Taken).map_err(|_| Problem::overloaded())
    }
}

impl Taken {
    /// Bytes that keep the room until the last of them is sent.
    pub(crate) fn around(self, bytes: Vec<u8>) -> Bytes {
        struct Held {
            bytes: Vec<u8>,
            _room: Taken,
        }
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        Bytes::from_owner(Held { bytes, _room: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_up_to_the_last_and_given_back() {
        let room = Room::new();
        let most = room.take(BYTES - UNIT).unwrap();
        assert_eq!(room.take(UNIT + 1).map(|_| ()).unwrap_err().status, 503);
        let rest = room.take(1).unwrap();
        assert!(room.take(1).is_err());
        drop(most);
        assert!(room.take(BYTES).is_err());
        drop(rest);
        assert!(room.take(BYTES).is_ok());
    }

    #[test]
    fn bytes_keep_their_room_until_they_are_gone() {
        let room = Room::new();
        let mut bytes = room.take(BYTES).unwrap().around(vec![7; 3]);
        let last = bytes.split_off(2);
        drop(bytes);
        assert!(last[..] == [7] && room.take(1).is_err());
        drop(last);
        assert!(room.take(BYTES).is_ok());
    }
}
