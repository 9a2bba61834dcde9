//! A command as the edge sees it: a row of the table ([`Spec`]) and how it is executed ([`Run`]).
//!
//! A change becomes one [`KeyOp`] with a function that writes the reply to its answer. A read is a
//! function of the keys that can run in three places: at once from memory, where blocking is allowed,
//! and from the rows that a transaction has read.

use kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use kv::{BucketId, Expiry, KeyAnswer, KeyOp, Only};
use resp::Encoder;
use smallvec::SmallVec;

use super::client::Client;
use super::failure::Failure;
use super::reader::{Reader, Stop};

/// The words of a command after its name.
pub(crate) type Words<'a> = [&'a [u8]];
/// The same words, borrowed from the buffer of the parsed command.
pub(crate) type WordList<'a> = SmallVec<[&'a [u8]; 8]>;

/// A row of the table of commands.
#[derive(Debug)]
pub(crate) struct Spec {
    /// Its name in lower case.
    pub(crate) name: &'static str,
    /// Number of words with the name; if negative, the least number.
    pub(crate) arity: i16,
    /// Flags, as COMMAND reports them.
    pub(crate) flags: &'static [Flag],
    /// Positions of keys: the first, the last (from the end, if negative), and their distance.
    pub(crate) keys: (i8, i8, i8),
    /// The group that it belongs to.
    pub(crate) group: Group,
    /// Its summary for COMMAND DOCS.
    pub(crate) summary: &'static str,
    /// The first version of Redis that had it; roost's version for roost's own commands.
    pub(crate) since: &'static str,
    /// How it is executed.
    pub(crate) run: Run,
}

/// How a command is executed.
#[derive(Debug)]
pub(crate) enum Run {
    /// Reads the keys that it names, or their number.
    Read(Read),
    /// Walks over keys that it does not name. It takes long.
    Walk(Read),
    /// Changes keys, or reads them: the words say which.
    Change(Change),
    /// Concerns the connection or the server.
    Local(Local),
    /// Needs the connection to wait for something.
    Wait(Wait),
}

/// Evaluates a read and writes its reply.
pub(crate) type Read = fn(&Reader<'_>, &Words<'_>, &mut Encoder<'_>) -> Result<(), Stop>;
/// Parses words into a change.
pub(crate) type Change = for<'a> fn(&Scope<'_>, &'a Words<'a>) -> Result<Plan<'a>, Failure>;
/// Replies from the state of the connection.
pub(crate) type Local = fn(&mut Client, &Words<'_>) -> Result<(), Failure>;
/// Writes the reply to a change.
pub(crate) type ReplyWriter = fn(&KeyAnswer, &mut Encoder<'_>);

/// Commands that make the connection wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Ends a transaction and carries it out.
    Exec,
    /// WATCH: records the versions of keys.
    Watch,
    /// Named buckets.
    Bucket,
}

/// The plan of a command: how its words are executed.
pub(crate) enum Plan<'a> {
    /// This change, and what writes its reply.
    Change(KeyOp<'a>, ReplyWriter),
    /// The same, once its value is unpacked.
    Restore(Restore<'a>, ReplyWriter),
    /// This read of the same words.
    Read(Read),
}

/// A change that sets a key to a value that has to be unpacked.
pub(crate) struct Restore<'a> {
    /// The bucket of the key.
    pub(crate) bucket: BucketId,
    /// The key to set.
    pub(crate) key: &'a kv::Bytes,
    /// The value as RESTORE received it.
    pub(crate) payload: &'a [u8],
    /// When the key expires.
    pub(crate) expiry: Expiry,
    /// The condition under which it is set.
    pub(crate) only: Only,
}

impl Restore<'_> {
    /// The operation that sets the unpacked value.
    pub(crate) fn op<'v>(&'v self, value: &'v [u8]) -> KeyOp<'v> {
        let Self { bucket, key, expiry, only, .. } = *self;
        KeyOp::Put { bucket, key, value: bytes(value), expiry, only, old: false }
    }
}

/// The context of a change.
pub(crate) struct Scope<'s> {
    /// The bucket that the client has selected.
    pub(crate) bucket: BucketId,
    /// Milliseconds since 1970.
    pub(crate) now_ms: &'s dyn Fn() -> u64,
}

/// Flags of a command, as COMMAND reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    /// Changes keys.
    Write,
    /// Reads keys.
    Readonly,
    /// Changes keys, and its reply has a stored value or a part of one, as the flag ACCESS of keys says in Redis.
    Access,
    /// May increase the memory in use.
    Denyoom,
    /// For operators of the server.
    Admin,
    /// Needs no key.
    NoAuth,
    /// Not inside of a transaction.
    NoMulti,
    /// Takes constant time, or little more.
    Fast,
    /// Answers also while the server starts.
    Loading,
    /// Not answered the same each time.
    Random,
    /// Inside of a transaction it is carried out and not queued.
    Unqueued,
}

impl Flag {
    /// Its name in the reply to COMMAND; `None` if Redis does not have it.
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
    /// MULTI and what belongs to it.
    Transactions,
    /// Named buckets.
    Bucket,
}

impl Group {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 6] = [
        Self::String,
        Self::Generic,
        Self::Connection,
        Self::Server,
        Self::Transactions,
        Self::Bucket,
    ];

    /// Its name in COMMAND DOCS and in the metrics.
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

    /// The keys among the words. Subcommands such as `OBJECT HELP` have none.
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

    /// # Errors
    /// If that many words do not fit.
    pub(crate) fn check_arity(&self, words: usize) -> Result<(), Failure> {
        let (given, arity) = (words + 1, usize::from(self.arity.unsigned_abs()));
        let fits = if self.arity < 0 { given >= arity } else { given == arity };
        if fits { Ok(()) } else { Err(Failure::arity(self.name)) }
    }
}

/// Bytes as operations take them.
pub(crate) fn bytes(bytes: &[u8]) -> &kv::Bytes {
    kv::Bytes::new(bytes)
}

/// A key that may be written.
///
/// # Errors
/// If it is no valid key.
pub(crate) fn key(key: &[u8]) -> Result<&kv::Bytes, Failure> {
    match key.len() {
        0 => Err(Failure::EMPTY_KEY),
        1..=KEY_BYTES_MAX => Ok(bytes(key)),
        _ => Err(Failure::long_key()),
    }
}

/// A value that may be written.
///
/// # Errors
/// If it is too long. The parser has refused it before, unless a setting of it changes.
pub(crate) fn value(value: &[u8]) -> Result<&kv::Bytes, Failure> {
    if value.len() > VALUE_BYTES_MAX { Err(Failure::TOO_LONG) } else { Ok(bytes(value)) }
}

/// A command that owns its bytes, for later or for another thread.
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

    /// The words again.
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

    /// Bytes of memory that words take when they are kept, at most.
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

/// Replies with the value of the row, or nothing.
pub(crate) fn row(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Row(row) => reply.bulk(row.value()),
        KeyAnswer::Refused(refusal) => reply.error(Failure::from(*refusal)),
        _ => reply.null(),
    }
}
