//! Commands of the Redis edge: the row of the table ([`Spec`]), and the way of execution ([`Run`]).
//!
//! A change becomes a [`KeyOp`] and a function that writes the reply from the answer. A read is a function of the keys
//! that can run in three places: immediately in memory, where blocking is allowed, and on the rows that a transaction
//! has read.

use kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use kv::{BucketId, Expiry, KeyAnswer, KeyOp, Only};
use resp::Encoder;
use smallvec::SmallVec;

use super::client::Client;
use super::failure::Failure;
use super::reader::{Reader, Stop};

/// Words of a command after its name.
pub(crate) type Words<'a> = [&'a [u8]];
/// List of words, borrowed from the buffer of the parsed command.
pub(crate) type WordList<'a> = SmallVec<[&'a [u8]; 8]>;

/// Row of the table of commands.
#[derive(Debug)]
pub(crate) struct Spec {
    /// Name in lower case.
    pub(crate) name: &'static str,
    /// Number of words including the name; if negative, the minimum.
    pub(crate) arity: i16,
    /// Flags, as COMMAND reports them.
    pub(crate) flags: &'static [Flag],
    /// Positions of keys: first, last (counted from the end if negative), and distance.
    pub(crate) keys: (i8, i8, i8),
    /// Group of the command.
    pub(crate) group: Group,
    /// Summary for COMMAND DOCS.
    pub(crate) summary: &'static str,
    /// First version of Redis that has the command; for roost's own commands, the version of roost.
    pub(crate) since: &'static str,
    /// Way of execution.
    pub(crate) run: Run,
}

/// Way of executing a command.
#[derive(Debug)]
pub(crate) enum Run {
    /// Reads given keys, or the number of keys.
    Read(Read),
    /// Reads keys that the words do not name. Takes long.
    Walk(Read),
    /// Changes or reads keys, depending on the words.
    Change(Change),
    /// Concerns the connection or the server.
    Local(Local),
    /// Makes the connection wait.
    Wait(Wait),
}

/// Function that runs a read and writes its reply.
pub(crate) type Read = fn(&Reader<'_>, &Words<'_>, &mut Encoder<'_>) -> Result<(), Stop>;
/// Function that parses words into a change.
pub(crate) type Change = for<'a> fn(&Scope<'_>, &'a Words<'a>) -> Result<Plan<'a>, Failure>;
/// Function that replies from the state of the connection.
pub(crate) type Local = fn(&mut Client, &Words<'_>) -> Result<(), Failure>;
/// Function that writes the reply to a change.
pub(crate) type ReplyWriter = fn(&KeyAnswer, &mut Encoder<'_>);

/// Commands for which the connection waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// EXEC: executes a transaction.
    Exec,
    /// WATCH: records the versions of keys.
    Watch,
    /// BUCKET: handles named buckets.
    Bucket,
}

/// Operation or read that the words of a command mean.
pub(crate) enum Plan<'a> {
    /// Operation, and the writer of its reply.
    Change(KeyOp<'a>, ReplyWriter),
    /// Operation whose value must first be unpacked, and the writer of its reply.
    Restore(Restore<'a>, ReplyWriter),
    /// Read of the same words.
    Read(Read),
}

/// Change that sets a key to a value that must be unpacked.
pub(crate) struct Restore<'a> {
    /// Bucket of the key.
    pub(crate) bucket: BucketId,
    /// Key to set.
    pub(crate) key: &'a kv::Bytes,
    /// Value as RESTORE received it.
    pub(crate) payload: &'a [u8],
    /// Expiry of the key.
    pub(crate) expiry: Expiry,
    /// Condition for setting the key.
    pub(crate) only: Only,
}

impl Restore<'_> {
    /// Operation that sets the unpacked value.
    pub(crate) fn op<'v>(&'v self, value: &'v [u8]) -> KeyOp<'v> {
        let Self { bucket, key, expiry, only, .. } = *self;
        KeyOp::Put { bucket, key, value: bytes(value), expiry, only, old: false }
    }
}

/// Context of a change.
pub(crate) struct Scope<'s> {
    /// The bucket that the client has selected.
    pub(crate) bucket: BucketId,
    /// Function that returns the time in milliseconds since 1970.
    pub(crate) now_ms: &'s dyn Fn() -> u64,
}

/// Flags of a command, as COMMAND reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    /// Changes keys.
    Write,
    /// Reads keys.
    Readonly,
    /// Changes keys, and replies with a stored value or a part of it. This is the key flag ACCESS of Redis.
    Access,
    /// May increase the memory in use.
    Denyoom,
    /// For operators of the server.
    Admin,
    /// Allowed without an application key.
    NoAuth,
    /// Not allowed in a transaction.
    NoMulti,
    /// Takes almost constant time.
    Fast,
    /// Allowed while the server starts.
    Loading,
    /// May have different replies for the same data.
    Random,
    /// Executed immediately in a transaction, not queued.
    Unqueued,
}

impl Flag {
    /// Name in the reply to COMMAND; `None` if Redis does not have the flag.
    pub(crate) const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Write => "write",
            Self::Readonly => "readonly",
            Self::Denyoom => "denyoom",
            Self::Admin => "admin",
            Self::NoAuth => "no_auth",
            Self::NoMulti => "no_multi",
            Self::Fast => "fast",
            Self::Loading => "loading",
            Self::Access | Self::Random | Self::Unqueued => return None,
        })
    }
}

/// Groups of commands, which the metrics count separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Commands on values.
    String,
    /// Commands on keys of any type.
    Generic,
    /// Commands on the connection.
    Connection,
    /// Commands on the server.
    Server,
    /// Commands of transactions, such as MULTI.
    Transactions,
    /// Named buckets.
    Bucket,
}

impl Group {
    /// All groups, in order.
    pub(crate) const ALL: [Self; 6] = [
        Self::String,
        Self::Generic,
        Self::Connection,
        Self::Server,
        Self::Transactions,
        Self::Bucket,
    ];

    /// Name in COMMAND DOCS and in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Generic => "generic",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Transactions => "transactions",
            Self::Bucket => "bucket",
        }
    }
}

impl Spec {
    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Returns the keys among the words. Subcommands such as `OBJECT HELP` have none.
    pub(crate) fn keys_of<'w, 'a>(
        &self,
        words: &'w Words<'a>,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'w, 'a> {
        let (first, last, step) = self.keys;
        let start = usize::from(first.unsigned_abs()).saturating_sub(1);
        let end = match last {
            0 => start,
            last if last < 0 => words.len(),
            last => words.len().min(usize::from(last.unsigned_abs())),
        };
        let keys = words.get(start..end).unwrap_or_default();
        keys.iter().step_by(usize::from(step.unsigned_abs()).max(1)).copied()
    }

    /// Checks the number of words.
    ///
    /// # Errors
    /// If the command does not take `words` words.
    pub(crate) fn check_arity(&self, words: usize) -> Result<(), Failure> {
        let (given, arity) = (words + 1, usize::from(self.arity.unsigned_abs()));
        let fits = if self.arity < 0 { given >= arity } else { given == arity };
        if fits { Ok(()) } else { Err(Failure::arity(self.name)) }
    }
}

/// Converts bytes to the type that operations use.
pub(crate) fn bytes(bytes: &[u8]) -> &kv::Bytes {
    kv::Bytes::new(bytes)
}

/// Checks a key that is to be written.
///
/// # Errors
/// If the key is invalid.
pub(crate) fn key(key: &[u8]) -> Result<&kv::Bytes, Failure> {
    match key.len() {
        0 => Err(Failure::EMPTY_KEY),
        1..=KEY_BYTES_MAX => Ok(bytes(key)),
        _ => Err(Failure::long_key()),
    }
}

/// Checks a value that is to be written.
///
/// # Errors
/// If the value is too long. With the current limits, the parser already refuses such values.
pub(crate) fn value(value: &[u8]) -> Result<&kv::Bytes, Failure> {
    if value.len() > VALUE_BYTES_MAX { Err(Failure::TOO_LONG) } else { Ok(bytes(value)) }
}

/// Command that owns its bytes, for execution later or on another thread.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    ends: SmallVec<[u32; 4]>,
}

impl Kept {
    /// Copies words.
    pub(crate) fn new(words: &Words<'_>) -> Self {
        let mut kept = Self { bytes: words.concat(), ends: SmallVec::new() };
        let mut end = 0;
        for word in words {
            end += word.len();
            let Ok(end) = u32::try_from(end) else {
                unreachable!("the parser's limits keep commands below 4 GiB")
            };
            kept.ends.push(end);
        }
        kept
    }

    /// Words of the command.
    pub(crate) fn words(&self) -> WordList<'_> {
        let mut start = 0;
        let word = |end: &u32| {
            let end = *end as usize;
            let word = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            word
        };
        self.ends.iter().map(word).collect()
    }

    /// Maximum memory of kept words, in bytes.
    pub(crate) fn memory_of(words: &Words<'_>) -> usize {
        let bytes: usize = words.iter().map(|word| word.len()).sum();
        bytes + words.len().next_power_of_two() * size_of::<u32>() + size_of::<Self>()
    }
}

/// Replies with OK, or an error.
pub(crate) fn ok(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Refused(refusal) => reply.error(Failure::from(*refusal)),
        _ => reply.simple("OK"),
    }
}

/// Replies with a number.
pub(crate) fn number(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Number(number) => reply.integer(*number),
        KeyAnswer::Refused(refusal) => reply.error(Failure::from(*refusal)),
        KeyAnswer::Nothing | KeyAnswer::Skipped => reply.integer(0),
        KeyAnswer::Done
        | KeyAnswer::Written { .. }
        | KeyAnswer::Row(_)
        | KeyAnswer::Swept { .. } => reply.integer(1),
    }
}

/// Replies with the value of the row, or null.
pub(crate) fn row(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Row(row) => reply.bulk(row.value()),
        KeyAnswer::Refused(refusal) => reply.error(Failure::from(*refusal)),
        _ => reply.null(),
    }
}
