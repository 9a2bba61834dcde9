//! Commands that walk over keys: SCAN, KEYS and RANDOMKEY. They may need the disk, so they are long reads. In MULTI
//! they run after the transaction, because the writer reads only rows that a command names.

use kv::{CURSOR_STEP, KeyRow};
use resp::{Encoder, Protocol};

use super::command::{Flag, Group, Run, Spec, Words};
use super::failure::Failure;
use super::glob::Pattern;
use super::numbers::{integer, is};
use super::reader::{REPLY_BYTES_MAX, Reader, Stop};

/// Maximum number of keys that a SCAN reads, for every COUNT.
const COUNT_MAX: i64 = 10_000;
/// Total size of keys and values after which a SCAN stops, in bytes. A SCAN holds their memory until it ends.
const SCAN_BYTES_MAX: usize = 4 << 20;
/// Number of keys to read at a time. After each step, a walk ends if its client has disconnected.
const STRIDE: usize = 256;
/// Maximum number of operations on a pattern between two checks whether the client has disconnected (some
/// milliseconds).
const UNCHECKED_OPERATIONS_MAX: u64 = 1 << 22;
/// Maximum number of operations of a KEYS on its pattern: about 5 s, enough for 68 GB of keys with a short pattern.
const MATCH_OPERATIONS_MAX: u64 = 1 << 32;
/// Maximum size of the reply before the keys, in bytes.
const HEAD_BYTES_MAX: usize = 64;
const TOO_LONG: Failure =
    Failure::said("ERR matching all keys would take too long; use a shorter pattern, or SCAN");

const fn row_of(
    name: &'static str,
    arity: i16,
    flags: &'static [Flag],
    run: Run,
    summary: &'static str,
    since: &'static str,
) -> Spec {
    Spec { name, arity, flags, keys: (0, 0, 0), group: Group::Generic, summary, since, run }
}

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("scan", -2, &[Flag::Readonly], Run::Walk(scan), "Lists keys piece by piece.", "2.8.0"),
    row_of(
        "keys",
        2,
        &[Flag::Readonly],
        Run::Walk(keys),
        "Lists all keys that match a pattern.",
        "1.0.0",
    ),
    row_of(
        "randomkey",
        1,
        &[Flag::Readonly, Flag::Random],
        Run::Walk(randomkey),
        "Returns a random key.",
        "1.0.0",
    ),
];

/// `cursor [MATCH pattern] [COUNT n] [TYPE name]`
fn scan(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [cursor, options @ ..] = words else { return Err(Failure::arity("scan").into()) };
    let cursor = std::str::from_utf8(cursor).ok().and_then(|cursor| cursor.parse::<u64>().ok());
    // A client gets cursors divided by `CURSOR_STEP`, so that they fit the 53 bits of a double.
    let from = cursor.and_then(|cursor| cursor.checked_mul(CURSOR_STEP)).ok_or(Failure::CURSOR)?;
    let (mut pattern, mut count, mut strings) = (None, 10, true);
    let (options, []) = options.as_chunks() else { return Err(Failure::SYNTAX.into()) };
    for [option, given] in options {
        if is(option, "match") {
            pattern = Some(Pattern::new(given)?);
        } else if is(option, "count") {
            count = integer(given)?;
            if count < 1 {
                return Err(Failure::SYNTAX.into());
            }
        } else if is(option, "type") {
            strings = is(given, "string");
        } else {
            return Err(Failure::SYNTAX.into());
        }
    }
    let (mut left, mut bytes) = (count.min(COUNT_MAX) as usize, 0);
    let (mut found, mut matching) = (List::new(reply), Matching::default());
    let mut next = Some(from);
    while let Some(from) = next.filter(|_| left > 0 && bytes < SCAN_BYTES_MAX) {
        let (rows, then) = keys.walk(from, left.min(STRIDE))?;
        left = left.saturating_sub(rows.len().max(1));
        bytes += rows.iter().map(|row| row.data_bytes() as usize).sum::<usize>();
        for row in rows.iter().filter(|_| strings) {
            let fits =
                pattern.as_ref().map_or(Ok(true), |pattern| matching.run(keys, pattern, row.key()));
            if fits? {
                found.add(keys, row.key())?;
            }
        }
        next = then;
    }
    found.end(|head| {
        head.array(2);
        head.bulk((next.unwrap_or(0) / CURSOR_STEP).to_string().as_bytes());
    });
    Ok(())
}

/// Work of one command on its pattern.
#[derive(Default)]
struct Matching {
    operations: u64,
    /// Number of operations since the last check whether the client has disconnected.
    unchecked: u64,
}

impl Matching {
    /// Whether a key matches.
    ///
    /// # Errors
    /// If matching would take too long, or the client has disconnected.
    fn run(&mut self, keys: &Reader<'_>, pattern: &Pattern, key: &[u8]) -> Result<bool, Stop> {
        let operations = pattern.operations(key.len());
        self.operations += operations;
        self.unchecked += operations;
        if self.operations > MATCH_OPERATIONS_MAX {
            return Err(TOO_LONG.into());
        }
        if self.unchecked > UNCHECKED_OPERATIONS_MAX {
            keys.may_take_long()?;
            self.unchecked = 0;
        }
        Ok(pattern.matches(key))
    }
}

/// Keys of a reply, which are written when they are found. At the end, their number is inserted before them.
struct List<'e, 'o> {
    reply: &'e mut Encoder<'o>,
    start: usize,
    keys: usize,
}

impl<'e, 'o> List<'e, 'o> {
    fn new(reply: &'e mut Encoder<'o>) -> Self {
        let start = reply.buffer().len();
        Self { reply, start, keys: 0 }
    }

    fn add(&mut self, keys: &Reader<'_>, key: &[u8]) -> Result<(), Stop> {
        if self.reply.buffer().len() - self.start + key.len() > REPLY_BYTES_MAX {
            return Err(Failure::REPLY_TOO_LONG.into());
        }
        keys.admit(key.len() + HEAD_BYTES_MAX, self.reply)?;
        self.reply.bulk(key);
        self.keys += 1;
        Ok(())
    }

    /// Inserts the number of keys before the keys, and `more` before the number.
    fn end(self, more: impl FnOnce(&mut Encoder<'_>)) {
        let mut head = Vec::with_capacity(HEAD_BYTES_MAX);
        // Both protocols encode numbers and texts in the same way.
        let mut encoder = Encoder::new(&mut head, Protocol::Resp2);
        more(&mut encoder);
        encoder.array(self.keys);
        self.reply.buffer().splice(self.start..self.start, head);
    }
}

/// `pattern`
fn keys(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [pattern] = words else { return Err(Failure::arity("keys").into()) };
    let pattern = Pattern::new(pattern)?;
    let (mut found, mut matching) = (List::new(reply), Matching::default());
    let mut from = Some(0);
    while let Some(at) = from {
        let (rows, next) = keys.walk(at, STRIDE)?;
        for row in &rows {
            if matching.run(keys, &pattern, row.key())? {
                found.add(keys, row.key())?;
            }
        }
        from = next;
    }
    found.end(|_| ());
    Ok(())
}

/// Returns a random key: the first one after a random position of the walk.
fn randomkey(keys: &Reader<'_>, _: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    keys.may_take_long()?;
    let from = getrandom::u64().unwrap_or_default();
    let row = match first_live(keys, from, u64::MAX)? {
        None if from > 0 => first_live(keys, 0, from)?,
        row => row,
    };
    match row {
        Some(row) => {
            keys.admit(row.key().len(), reply)?;
            reply.bulk(row.key());
        }
        None => reply.null(),
    }
    Ok(())
}

/// Returns the first key from `from` on that has not expired, if the walk finds one before it passes `up_to`. A step of
/// the walk may find no key, because rows of other buckets and expired rows count as read.
fn first_live(keys: &Reader<'_>, from: u64, up_to: u64) -> Result<Option<KeyRow>, Stop> {
    // Do not walk in an empty bucket, because the walk would visit the keys of all other buckets.
    let mut next = Some(from).filter(|_| keys.count() > 0);
    let mut rows_max = 1;
    while let Some(at) = next.filter(|at| *at <= up_to) {
        let (rows, then) = keys.walk(at, rows_max)?;
        if let Some(row) = rows.into_iter().next() {
            return Ok(Some(row));
        }
        (next, rows_max) = (then, STRIDE);
    }
    Ok(None)
}
