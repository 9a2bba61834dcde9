//! Reads of keys for one command, in one of the three places where they may happen.
#![allow(dead_code, reason = "a stopgap until transactions submit their reads as data")]

use feed::BucketId;
use feed::keys::KeyRow;
use feed::limits::KEY_BYTES_MAX;
use node::{Found, Keys, Node};
use smallvec::SmallVec;

use super::failure::Failure;

/// Most bytes of one reply.
pub(crate) const REPLY_BYTES_MAX: usize = 64 << 20;
/// How often a read of several keys is tried until all of them are in memory at once. Beyond that
/// they are read one by one.
const TOGETHER_MAX: usize = 3;

/// Why a read did not end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It needs the disk, or too long a time: it is to be done again where blocking is allowed.
    Elsewhere,
    /// It cannot be done.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Where a read happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On a thread of connections.
    Memory,
    /// On a blocking thread.
    Blocking,
    /// On the writer's thread: nothing changes meanwhile.
    Writer,
}

/// What a read sees.
pub(crate) struct Reader<'r> {
    keys: &'r Keys<'r>,
    node: Option<&'r Node>,
    bucket: BucketId,
    place: Place,
}

impl<'r> Reader<'r> {
    /// On a thread of connections: what is not in memory stops the read.
    pub(crate) fn in_memory(node: &'r Node, keys: &'r Keys<'r>, bucket: BucketId) -> Self {
        Self { keys, node: Some(node), bucket, place: Place::Memory }
    }

    /// On a blocking thread.
    pub(crate) fn blocking(node: &'r Node, keys: &'r Keys<'r>, bucket: BucketId) -> Self {
        Self { keys, node: Some(node), bucket, place: Place::Blocking }
    }

    /// On the writer's thread.
    pub(crate) fn at_the_writer(keys: &'r Keys<'r>, bucket: BucketId) -> Self {
        Self { keys, node: None, bucket, place: Place::Writer }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.keys.now_ms()
    }

    /// # Errors
    /// If the read must not take long here.
    pub(crate) fn may_take_long(&self) -> Result<(), Stop> {
        if self.place == Place::Memory { Err(Stop::Elsewhere) } else { Ok(()) }
    }

    /// A key, if it is there.
    ///
    /// # Errors
    /// [`Stop::Elsewhere`]
    pub(crate) fn row(&self, key: &[u8]) -> Result<Option<KeyRow>, Stop> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Ok(None);
        }
        if self.place != Place::Memory {
            return Ok(self.keys.row(self.bucket, key));
        }
        match self.keys.try_row(self.bucket, key) {
            Found::Row(row) => Ok(Some(row)),
            Found::Absent => Ok(None),
            Found::Unknown => Err(Stop::Elsewhere),
        }
    }

    /// Several keys, as they were at one time.
    ///
    /// # Errors
    /// [`Stop::Elsewhere`]
    pub(crate) fn rows(&self, keys: &[&[u8]]) -> Result<SmallVec<[Option<KeyRow>; 8]>, Stop> {
        let each = |reader: &Self| keys.iter().map(|key| reader.row(key)).collect();
        let (Some(node), [_, _, ..]) = (self.node, keys) else { return each(self) };
        let in_memory = Reader { place: Place::Memory, ..*self };
        let together = || {
            let _steady = node.steady();
            each(&in_memory)
        };
        if self.place == Place::Memory {
            return together();
        }
        for _ in 0..TOGETHER_MAX {
            if let Ok(rows) = together() {
                return Ok(rows);
            }
            // Reading a key brings it into memory.
            let _: SmallVec<[Option<KeyRow>; 8]> = each(self)?;
        }
        each(self)
    }

    /// How many keys there are.
    pub(crate) fn count(&self) -> u64 {
        self.keys.bucket(self.bucket).map_or(0, |bucket| bucket.keys)
    }

    /// Keys in the order of their hashes; see [`Keys::walk`].
    ///
    /// # Errors
    /// [`Stop::Elsewhere`]
    pub(crate) fn walk(
        &self,
        from: u64,
        at_least: usize,
    ) -> Result<(Vec<KeyRow>, Option<u64>), Stop> {
        self.may_take_long()?;
        Ok(self.keys.walk(self.bucket, from, at_least))
    }
}
