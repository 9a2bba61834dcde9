//! Commands on keys of any type: DEL, EXISTS, RENAME, COPY, DUMP and similar ones.

use kv::limits::NUMBERED_BUCKETS;
use kv::{BucketId, Expiry, KeyAnswer, KeyOp, Only};
use resp::Encoder;

use super::command::{Flag, Group, Plan, Restore, Run, Scope, Spec, Words, bytes, key, number, ok};
use super::dump;
use super::failure::Failure;
use super::numbers::{integer, is};
use super::reader::{Reader, Stop};

use Flag::{Denyoom, Fast, Random, Readonly, Write};

const NONE: (i8, i8, i8) = (0, 0, 0);
const ONE: (i8, i8, i8) = (1, 1, 1);
const TWO: (i8, i8, i8) = (1, 2, 1);
const ALL: (i8, i8, i8) = (1, -1, 1);
/// Subcommands of OBJECT.
const OBJECT: &[&str] = &["help", "encoding", "refcount", "idletime", "freq"];
/// Maximum length of a text that Redis stores together with its header, in bytes.
const EMBEDDED_BYTES_MAX: usize = 44;
/// Maximum length of a value that is dumped immediately, in bytes: the checksum of 64 KiB takes 0.2 ms.
const DUMP_BYTES_SHORT: usize = 64 << 10;

const fn row_of(
    name: &'static str,
    arity: i16,
    flags: &'static [Flag],
    keys: (i8, i8, i8),
    run: Run,
    (since, summary): (&'static str, &'static str),
) -> Spec {
    Spec { name, arity, flags, keys, group: Group::Generic, summary, since, run }
}

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("del", -2, &[Write], ALL, Run::Change(del), ("1.0.0", "Deletes keys.")),
    row_of(
        "unlink",
        -2,
        &[Write, Fast],
        ALL,
        Run::Change(del),
        ("4.0.0", "Deletes keys; the same as DEL."),
    ),
    row_of(
        "exists",
        -2,
        &[Readonly, Fast],
        ALL,
        Run::Read(exists),
        ("1.0.0", "Counts the keys that exist."),
    ),
    row_of(
        "touch",
        -2,
        &[Readonly, Fast],
        ALL,
        Run::Read(exists),
        ("3.2.1", "Reads keys and counts those that exist."),
    ),
    row_of(
        "type",
        2,
        &[Readonly, Fast],
        ONE,
        Run::Read(kind),
        ("1.0.0", "Returns the type of a key."),
    ),
    row_of("rename", 3, &[Write], TWO, Run::Change(rename), ("1.0.0", "Renames a key.")),
    row_of(
        "renamenx",
        3,
        &[Write, Fast],
        TWO,
        Run::Change(renamenx),
        ("1.0.0", "Renames a key if the new name is free."),
    ),
    row_of(
        "copy",
        -3,
        &[Write, Denyoom],
        TWO,
        Run::Change(copy),
        ("6.2.0", "Copies a key, optionally to another database."),
    ),
    row_of(
        "move",
        3,
        &[Write, Fast],
        ONE,
        Run::Change(move_to),
        ("1.0.0", "Moves a key to another database."),
    ),
    row_of(
        "dump",
        2,
        &[Readonly],
        ONE,
        Run::Read(dump),
        ("2.6.0", "Returns a value in the format of RESTORE."),
    ),
    row_of(
        "restore",
        -4,
        &[Write, Denyoom],
        ONE,
        Run::Change(restore),
        ("2.6.0", "Creates a key from the payload of DUMP."),
    ),
    row_of(
        "object",
        -2,
        &[Readonly],
        (2, 2, 1),
        Run::Read(object),
        ("2.2.3", "Returns how a value is encoded."),
    ),
    row_of(
        "memory",
        -2,
        &[Readonly],
        (2, 2, 1),
        Run::Read(memory),
        ("4.0.0", "Returns the memory of a key in bytes."),
    ),
    row_of(
        "dbsize",
        1,
        &[Readonly, Fast],
        NONE,
        Run::Read(dbsize),
        ("1.0.0", "Returns the number of keys."),
    ),
    row_of(
        "flushdb",
        -1,
        &[Write],
        NONE,
        Run::Change(flushdb),
        ("1.0.0", "Deletes every key of the database."),
    ),
    row_of(
        "flushall",
        -1,
        &[Write],
        NONE,
        Run::Change(flushall),
        ("1.0.0", "Deletes every key of all databases and buckets."),
    ),
    row_of(
        "swapdb",
        3,
        &[Write, Fast],
        NONE,
        Run::Change(swapdb),
        ("4.0.0", "Swaps two databases."),
    ),
    row_of(
        "wait",
        3,
        &[Random],
        NONE,
        Run::Read(wait),
        ("3.0.0", "Returns the number of replicas with the changes: 0."),
    ),
];

fn del<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let keys = words.iter().map(|key| bytes(key)).collect();
    Ok(Plan::Change(KeyOp::Remove { bucket: scope.bucket, keys }, number))
}

fn exists(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    reply.integer(keys.rows(words)?.iter().flatten().count() as i64);
    Ok(())
}

fn kind(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [key] = words else { return Err(Failure::arity("type").into()) };
    reply.simple(if keys.row(key)?.is_some() { "string" } else { "none" });
    Ok(())
}

fn rename<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [from, to] = words else { return Err(Failure::arity("rename")) };
    let (from, to) = (bytes(from), key(to)?);
    Ok(Plan::Change(KeyOp::Rename { bucket: scope.bucket, from, to, only_new: false }, ok))
}

fn renamenx<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [from, to] = words else { return Err(Failure::arity("renamenx")) };
    let (from, to) = (bytes(from), key(to)?);
    Ok(Plan::Change(KeyOp::Rename { bucket: scope.bucket, from, to, only_new: true }, number))
}

/// Parses the number of a database.
///
/// # Errors
/// If it is not a number, or the database does not exist.
pub(crate) fn database(word: &[u8]) -> Result<BucketId, Failure> {
    let index = i32::try_from(integer(word)?).map_err(|_| Failure::DB_RANGE)?;
    let index = u64::try_from(index).ok().filter(|index| *index < u64::from(NUMBERED_BUCKETS));
    index.map(BucketId).ok_or(Failure::DB_INDEX)
}

/// `from to [DB index] [REPLACE]`
fn copy<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [from, to, options @ ..] = words else { return Err(Failure::arity("copy")) };
    let (mut to_bucket, mut replace) = (scope.bucket, false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "replace") {
            replace = true;
        } else if is(option, "db") {
            to_bucket = database(options.next().ok_or(Failure::SYNTAX)?)?;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let (key, to) = (bytes(from), key(to)?);
    let op = KeyOp::Copy { bucket: scope.bucket, key, to_bucket, to, replace };
    Ok(Plan::Change(op, number))
}

fn move_to<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, index] = words else { return Err(Failure::arity("move")) };
    let (key, to_bucket) = (bytes(name), database(index)?);
    Ok(Plan::Change(KeyOp::Move { bucket: scope.bucket, key, to_bucket }, number))
}

fn dump(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [key] = words else { return Err(Failure::arity("dump").into()) };
    let Some(row) = keys.row(key)? else {
        reply.null();
        return Ok(());
    };
    if row.value().len() > DUMP_BYTES_SHORT {
        keys.may_take_long()?;
    }
    // The payload and the reply are in memory at the same time.
    keys.admit(2 * (row.value().len() + dump::EXTRA_BYTES), reply)?;
    reply.bulk(&dump::dump(row.value()));
    Ok(())
}

/// `key ttl payload [REPLACE] [ABSTTL] [IDLETIME s] [FREQ n]`
fn restore<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, ttl, payload, options @ ..] = words else { return Err(Failure::arity("restore")) };
    let (mut only, mut absolute) = (Only::IfAbsent, false);
    // IDLETIME and FREQ are checked but have no effect: later reads decide which keys stay in memory.
    let (mut idle, mut frequency) = (false, false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "replace") {
            only = Only::Always;
        } else if is(option, "absttl") {
            absolute = true;
        } else if is(option, "idletime") && !frequency {
            idle = true;
            if integer(options.next().ok_or(Failure::SYNTAX)?)? < 0 {
                return Err(Failure::said("ERR Invalid IDLETIME value, must be >= 0"));
            }
        } else if is(option, "freq") && !idle {
            frequency = true;
            if !(0..=255).contains(&integer(options.next().ok_or(Failure::SYNTAX)?)?) {
                return Err(Failure::said("ERR Invalid FREQ value, must be >= 0 and <= 255"));
            }
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let Ok(ttl) = u64::try_from(integer(ttl)?) else {
        return Err(Failure::said("ERR Invalid TTL value, must be >= 0"));
    };
    let expiry = match ttl {
        0 => Expiry::Never,
        at if absolute => Expiry::At(at),
        ms => Expiry::In(ms),
    };
    let key = key(name)?;
    Ok(Plan::Restore(Restore { bucket: scope.bucket, key, payload, expiry, only }, restored))
}

fn restored(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Nothing => reply.error(Failure::BUSY_KEY),
        answer => ok(answer, reply),
    }
}

/// `ENCODING | REFCOUNT | IDLETIME | FREQ key`, `HELP`
fn object(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let (sub, key) = match words {
        [sub] if is(sub, "help") => {
            help(
                reply,
                &["OBJECT ENCODING|REFCOUNT|IDLETIME|FREQ key", "    How a value is encoded."],
            );
            return Ok(());
        }
        [sub, key] => (sub, key),
        [sub, ..] => return Err(Failure::subcommand("object", sub, OBJECT).into()),
        [] => return Err(Failure::arity("object").into()),
    };
    if is(sub, "help") || !OBJECT.iter().any(|known| is(sub, known)) {
        return Err(Failure::subcommand("object", sub, OBJECT).into());
    }
    match keys.row(key)? {
        None => reply.null(),
        Some(_) if is(sub, "freq") => {
            let text = "ERR An LFU maxmemory policy is not selected, access frequency not tracked.";
            return Err(Failure::said(text).into());
        }
        Some(row) if is(sub, "encoding") => reply.bulk(encoding(row.value()).as_bytes()),
        Some(_) if is(sub, "refcount") => reply.integer(1),
        Some(_) => reply.integer(0),
    }
    Ok(())
}

/// Returns the encoding that Redis would report for a value.
fn encoding(value: &[u8]) -> &'static str {
    match value.len() {
        ..=20 if integer(value).is_ok() => "int",
        ..=EMBEDDED_BYTES_MAX => "embstr",
        _ => "raw",
    }
}

/// `USAGE key [SAMPLES n]`, `HELP`
fn memory(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let key = match words {
        [sub] if is(sub, "help") => {
            help(reply, &["MEMORY USAGE key [SAMPLES n]", "    Bytes that a key takes in memory."]);
            return Ok(());
        }
        [sub, key] if is(sub, "usage") => key,
        [sub, key, option, samples] if is(sub, "usage") && is(option, "samples") => {
            integer(samples)?;
            key
        }
        [sub, _, _, ..] if is(sub, "usage") => return Err(Failure::SYNTAX.into()),
        [sub, ..] => return Err(Failure::subcommand("memory", sub, &["help", "usage"]).into()),
        [] => return Err(Failure::arity("memory").into()),
    };
    match keys.row(key)? {
        Some(row) => reply.integer(row.memory_bytes() as i64),
        None => reply.null(),
    }
    Ok(())
}

/// Replies with lines of text, in the format of Redis's HELP.
pub(crate) fn help(reply: &mut Encoder<'_>, lines: &[&str]) {
    reply.array(lines.len());
    for line in lines {
        reply.simple(line);
    }
}

fn dbsize(keys: &Reader<'_>, _: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    reply.integer(i64::try_from(keys.count()).unwrap_or(i64::MAX));
    Ok(())
}

/// Checks that the only argument, if any, is `SYNC` or `ASYNC`. Both mean the same, because flushing takes the same
/// time for any number of keys.
fn check_flush(words: &Words<'_>) -> Result<(), Failure> {
    match words {
        [] => Ok(()),
        [how] if is(how, "sync") || is(how, "async") => Ok(()),
        _ => Err(Failure::SYNTAX),
    }
}

fn flushdb<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    check_flush(words)?;
    Ok(Plan::Change(KeyOp::Flush { bucket: scope.bucket }, ok))
}

fn flushall<'a>(_: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    check_flush(words)?;
    Ok(Plan::Change(KeyOp::FlushNumbered, ok))
}

fn swapdb<'a>(_: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [a, b] = words else { return Err(Failure::arity("swapdb")) };
    for (word, which) in [(a, "first"), (b, "second")] {
        let number = integer(word).ok().and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| Failure::of(format!("ERR invalid {which} DB index")))?;
    }
    let (a, b) = (database(a)?, database(b)?);
    Ok(Plan::Change(KeyOp::Swap { a, b }, ok))
}

/// Replies to WAIT `replicas timeout` with 0. Changes are in the log before they are answered, and there are no
/// replicas.
fn wait(_: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [replicas, timeout] = words else { return Err(Failure::arity("wait").into()) };
    integer(replicas)?;
    if integer(timeout)? < 0 {
        return Err(Failure::said("ERR timeout is negative").into());
    }
    reply.integer(0);
    Ok(())
}
