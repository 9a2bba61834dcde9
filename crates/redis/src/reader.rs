//! Reads of keys for one command. A read runs in one of three places: on a thread that serves connections, where
//! blocking is allowed, or on the rows that a transaction has read.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use kv::{BucketId, KeyRow};
use node::{Found, Keys, Node, SnapshotLock};
use resp::Encoder;
use smallvec::SmallVec;

use super::failure::Failure;
use super::memory::{Held, make_room};
use edge::{Abandoned, Length};

/// Maximum size of one reply, and of all replies of a transaction, in bytes.
pub(crate) const REPLY_BYTES_MAX: usize = 64 << 20;
/// Maximum number of keys that one command reads.
pub(crate) const READ_KEYS_MAX: usize = 65_536;
/// Maximum number of keys that are read together, under the lock that blocks the writer: about 0.5 ms. If there are
/// more, they are read in parts of this size. A transaction reads at most this many.
pub(crate) const TOGETHER_KEYS_MAX: usize = 4_096;
/// Maximum number of keys that are read on a thread that serves connections: about 50 microseconds.
const SHORT_KEYS_MAX: usize = 256;
/// Time for which a thread that serves connections waits for the writer. The writer blocks reads of several keys while
/// it applies a group.
const WRITER_PATIENCE: Duration = Duration::from_micros(50);
/// Maximum number of attempts to read several keys at a moment when all are in memory. After that, the keys are read
/// one by one.
const ATTEMPTS_MAX: usize = 3;

pub(crate) const TOO_MANY_KEYS: Failure = Failure::said("ERR a command reads at most 65536 keys");

/// Rows of several keys, in the order of the request.
pub(crate) type Rows = SmallVec<[Option<KeyRow>; 8]>;

/// Reason why a read stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The read needs the disk, or more time than is allowed here. Repeat it where blocking is allowed.
    Disk,
    /// The read takes long. Repeat it as a long read.
    Long,
    /// The read failed.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Source of rows.
enum Source<'r> {
    /// Memory only, on a thread that serves connections.
    Memory(&'r Node, &'r Keys<'r>),
    /// Memory and disk, where blocking is allowed.
    Blocking(&'r Node, &'r Keys<'r>, Length, &'r Abandoned),
    /// Rows that a transaction has read.
    Given(&'r Given<'r>),
}

/// Rows that a transaction has read for one command.
pub(crate) struct Given<'r> {
    /// Keys of the command, in order.
    pub(crate) keys: Vec<&'r [u8]>,
    /// Row of each key, if any.
    pub(crate) rows: &'r [Option<KeyRow>],
    /// Number of keys in the bucket.
    pub(crate) count: u64,
    /// Milliseconds since 1970.
    pub(crate) now_ms: u64,
    /// Whether long computations are allowed.
    pub(crate) may_take_long: bool,
    /// Index of the key to compare first.
    pub(crate) next: Cell<usize>,
}

/// View of the keys for a read.
pub(crate) struct Reader<'r> {
    source: Source<'r>,
    bucket: BucketId,
    /// Reservation of the reply's buffer.
    held: RefCell<&'r mut Held>,
    looked_up: Cell<LookUps>,
}

/// Number of keys that read commands looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LookUps {
    /// Number of existing keys.
    pub(crate) hits: u64,
    /// Number of missing keys.
    pub(crate) misses: u64,
}

impl LookUps {
    /// Adds `keys` keys, of which `existing` exist.
    fn and(self, keys: usize, existing: usize) -> Self {
        let misses = self.misses + (keys - existing) as u64;
        Self { hits: self.hits + existing as u64, misses }
    }
}

impl<'r> Reader<'r> {
    /// Creates a reader on a thread that serves connections. A read stops when data is not in memory.
    pub(crate) fn in_memory(
        node: &'r Node,
        keys: &'r Keys<'r>,
        bucket: BucketId,
        held: &'r mut Held,
    ) -> Self {
        Self {
            source: Source::Memory(node, keys),
            bucket,
            held: RefCell::new(held),
            looked_up: Cell::default(),
        }
    }

    /// Creates a reader where blocking is allowed. A long read stops when it is `abandoned`.
    pub(crate) fn blocking(
        node: &'r Node,
        keys: &'r Keys<'r>,
        bucket: BucketId,
        length: Length,
        abandoned: &'r Abandoned,
        held: &'r mut Held,
    ) -> Self {
        let source = Source::Blocking(node, keys, length, abandoned);
        Self { source, bucket, held: RefCell::new(held), looked_up: Cell::default() }
    }

    /// Creates a reader of rows that a transaction has read.
    pub(crate) fn given(given: &'r Given<'r>, bucket: BucketId, held: &'r mut Held) -> Self {
        Self {
            source: Source::Given(given),
            bucket,
            held: RefCell::new(held),
            looked_up: Cell::default(),
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        match &self.source {
            Source::Memory(_, keys) | Source::Blocking(_, keys, ..) => keys.now_ms(),
            Source::Given(given) => given.now_ms,
        }
    }

    /// Makes room for `bytes` bytes of reply. Call it before a reply that may be long.
    ///
    /// # Errors
    /// If the reply is too long, or the budget has no room for it.
    pub(crate) fn admit(&self, bytes: usize, reply: &mut Encoder<'_>) -> Result<(), Stop> {
        if bytes > REPLY_BYTES_MAX {
            return Err(Failure::REPLY_TOO_LONG.into());
        }
        let fits = make_room(reply.buffer(), &mut self.held.borrow_mut(), bytes);
        if fits { Ok(()) } else { Err(Failure::BUSY.into()) }
    }

    /// Checks that the read may take long in this place.
    ///
    /// # Errors
    /// [`Stop::Long`] if it may not, or a failure if the client has disconnected.
    pub(crate) fn may_take_long(&self) -> Result<(), Stop> {
        match &self.source {
            Source::Memory(..) => Err(Stop::Long),
            Source::Given(given) if !given.may_take_long => Err(Stop::Long),
            Source::Given(_) => Ok(()),
            Source::Blocking(_, _, Length::Quick, _) => Err(Stop::Long),
            Source::Blocking(.., abandoned) if abandoned.is_set() => Err(Failure::GONE.into()),
            Source::Blocking(..) => Ok(()),
        }
    }

    /// Returns the row of a key, if the key exists.
    ///
    /// # Errors
    /// [`Stop::Disk`]
    pub(crate) fn row(&self, key: &[u8]) -> Result<Option<KeyRow>, Stop> {
        let row = self.look_up(key)?;
        self.looked_up.set(self.looked_up.get().and(1, usize::from(row.is_some())));
        Ok(row)
    }

    /// Number of keys looked up so far.
    pub(crate) fn looked_up(&self) -> LookUps {
        self.looked_up.get()
    }

    fn look_up(&self, key: &[u8]) -> Result<Option<KeyRow>, Stop> {
        if !is_possible(key) {
            return Ok(None);
        }
        match &self.source {
            Source::Memory(_, keys) => in_memory(keys, self.bucket, key),
            Source::Blocking(_, keys, ..) => Ok(keys.row(self.bucket, key)),
            Source::Given(given) => Ok(given.row(key)),
        }
    }

    /// Returns the rows of several keys. Up to 4,096 keys are read at one moment; of more keys, each part of 4,096 in
    /// order is read at one moment.
    ///
    /// # Errors
    /// [`Stop::Disk`] or [`Stop::Long`], depending on the number of keys; or a failure if there are too many.
    pub(crate) fn rows(&self, keys: &[&[u8]]) -> Result<Rows, Stop> {
        if keys.len() > READ_KEYS_MAX {
            return Err(TOO_MANY_KEYS.into());
        }
        if keys.len() > TOGETHER_KEYS_MAX {
            self.may_take_long()?;
        }
        let rows = self.look_up_all(keys)?;
        let existing = rows.iter().filter(|row| row.is_some()).count();
        self.looked_up.set(self.looked_up.get().and(keys.len(), existing));
        Ok(rows)
    }

    fn look_up_all(&self, keys: &[&[u8]]) -> Result<Rows, Stop> {
        match &self.source {
            Source::Memory(node, at) if keys.len() > 1 => {
                let short = keys.len() <= SHORT_KEYS_MAX;
                let lock = short.then(|| node.try_snapshot_lock(WRITER_PATIENCE)).flatten();
                self.together(at, keys, &lock.ok_or(Stop::Disk)?)
            }
            Source::Blocking(node, at, ..) if keys.len() > 1 => {
                let mut rows = Rows::with_capacity(keys.len());
                for part in keys.chunks(TOGETHER_KEYS_MAX) {
                    rows.extend(self.part(node, at, part)?);
                }
                Ok(rows)
            }
            _ => keys.iter().map(|key| self.look_up(key)).collect(),
        }
    }

    /// Returns the rows of a part of the keys, where blocking is allowed.
    fn part(&self, node: &Node, at: &Keys<'_>, keys: &[&[u8]]) -> Result<Rows, Stop> {
        for _ in 0..ATTEMPTS_MAX {
            if let Ok(rows) = self.together(at, keys, &node.snapshot_lock()) {
                return Ok(rows);
            }
            // Reading a key loads it into memory.
            keys.iter().try_for_each(|key| self.look_up(key).map(drop))?;
        }
        keys.iter().map(|key| self.look_up(key)).collect()
    }

    /// Looks up keys in memory, while the writer is blocked.
    fn together(
        &self,
        at: &Keys<'_>,
        keys: &[&[u8]],
        _lock: &SnapshotLock<'_>,
    ) -> Result<Rows, Stop> {
        let row = |key: &&[u8]| {
            if is_possible(key) { in_memory(at, self.bucket, key) } else { Ok(None) }
        };
        keys.iter().map(row).collect()
    }

    /// Number of keys.
    pub(crate) fn count(&self) -> u64 {
        match &self.source {
            Source::Memory(_, keys) | Source::Blocking(_, keys, ..) => {
                keys.bucket(self.bucket).map_or(0, |bucket| bucket.keys)
            }
            Source::Given(given) => given.count,
        }
    }

    /// Returns keys in the order of their hashes: see [`Keys::walk`].
    ///
    /// # Errors
    /// Those of [`Reader::may_take_long`].
    pub(crate) fn walk(&self, from: u64, rows: usize) -> Result<(Vec<KeyRow>, Option<u64>), Stop> {
        self.may_take_long()?;
        match &self.source {
            Source::Memory(_, keys) | Source::Blocking(_, keys, ..) => {
                Ok(keys.walk(self.bucket, from, rows))
            }
            Source::Given(_) => {
                unreachable!("walks are not evaluated from given rows")
            }
        }
    }
}

/// Whether a key of this length can exist.
pub(crate) fn is_possible(key: &[u8]) -> bool {
    kv::is_possible_key(key)
}

fn in_memory(keys: &Keys<'_>, bucket: BucketId, key: &[u8]) -> Result<Option<KeyRow>, Stop> {
    match keys.try_row(bucket, key) {
        Found::Row(row) => Ok(Some(row)),
        Found::Absent => Ok(None),
        Found::Unknown => Err(Stop::Disk),
    }
}

impl Given<'_> {
    /// Returns the row of a key. A command must look up its keys in order.
    ///
    /// # Panics
    /// If the key is not one of the command's keys.
    fn row(&self, key: &[u8]) -> Option<KeyRow> {
        let found = self.keys.iter().skip(self.next.get()).position(|given| *given == key);
        let Some(at) = found.map(|skipped| skipped + self.next.get()) else {
            unreachable!("commands read their own keys, in order")
        };
        self.next.set(at + 1);
        self.rows.get(at).cloned().flatten()
    }
}

#[cfg(test)]
mod tests {
    use budget::MemoryBudget;
    use node::NodeOptions;

    use super::*;

    #[test]
    fn a_thread_of_connections_reads_few_keys_and_refuses_many() {
        let directory = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
        let (keys, budget) = (node.keys(), MemoryBudget::new(1 << 20));
        let mut held = Held::new(&budget, 0);
        let reader = Reader::in_memory(&node, &keys, BucketId(0), &mut held);
        let many = [&b"k"[..]; SHORT_KEYS_MAX + 1];
        assert!(matches!(reader.rows(&many), Err(Stop::Disk)));
        assert_eq!(reader.rows(&many[1..]).unwrap().len(), SHORT_KEYS_MAX);
    }
}
