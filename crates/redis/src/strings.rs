//! Commands on whole values: SET, GET and similar ones.

use kv::{Expiry, KeyAnswer, KeyOp, KeyRow, Only};
use resp::Encoder;

use super::command::{Flag, Group, Plan, Run, Scope, Spec, Words, key, number, ok, row, value};
use super::failure::Failure;
use super::numbers::{Unit, is};
use super::reader::{Reader, Stop};

use Flag::{Access, Denyoom, Fast, Readonly, Write};

pub(super) const READ: &[Flag] = &[Readonly, Fast];
pub(super) const GROW: &[Flag] = &[Write, Denyoom, Fast];
pub(super) const LONG: &[Flag] = &[Write, Denyoom];
/// Flags of changes that reply with stored values: see [`GROW`].
pub(super) const GROW_AND_ANSWER: &[Flag] = &[Write, Denyoom, Fast, Access];
pub(super) const ONE: (i8, i8, i8) = (1, 1, 1);
const ALL: (i8, i8, i8) = (1, -1, 1);
const PAIRS: (i8, i8, i8) = (1, -1, 2);
/// Maximum size of a bulk string without its text, in bytes.
const BULK_BYTES: usize = 16;

/// Makes a row of the table.
pub(super) const fn row_of(
    name: &'static str,
    arity: i16,
    flags: &'static [Flag],
    keys: (i8, i8, i8),
    run: Run,
    (since, summary): (&'static str, &'static str),
) -> Spec {
    Spec { name, arity, flags, keys, group: Group::String, summary, since, run }
}

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("get", 2, READ, ONE, Run::Read(get), ("1.0.0", "Reads a value.")),
    row_of(
        "set",
        -3,
        LONG,
        ONE,
        Run::Change(set),
        ("1.0.0", "Sets a value, optionally with a condition or a TTL."),
    ),
    row_of(
        "setnx",
        3,
        GROW,
        ONE,
        Run::Change(setnx),
        ("1.0.0", "Sets a value if the key does not exist."),
    ),
    row_of(
        "setex",
        4,
        LONG,
        ONE,
        Run::Change(setex),
        ("2.0.0", "Sets a value with a TTL in seconds."),
    ),
    row_of(
        "psetex",
        4,
        LONG,
        ONE,
        Run::Change(psetex),
        ("2.6.0", "Sets a value with a TTL in milliseconds."),
    ),
    row_of(
        "getset",
        3,
        GROW_AND_ANSWER,
        ONE,
        Run::Change(getset),
        ("1.0.0", "Sets a value and returns the old one."),
    ),
    row_of(
        "getdel",
        2,
        &[Write, Fast, Access],
        ONE,
        Run::Change(getdel),
        ("6.2.0", "Reads a value and deletes the key."),
    ),
    row_of(
        "getex",
        -2,
        &[Write, Fast, Access],
        ONE,
        Run::Change(getex),
        ("6.2.0", "Reads a value and changes when it expires."),
    ),
    row_of("mget", -2, READ, ALL, Run::Read(mget), ("1.0.0", "Reads several values atomically.")),
    row_of(
        "mset",
        -3,
        LONG,
        PAIRS,
        Run::Change(mset),
        ("1.0.1", "Sets several values atomically."),
    ),
    row_of(
        "msetnx",
        -3,
        LONG,
        PAIRS,
        Run::Change(msetnx),
        ("1.0.1", "Sets several values if none of the keys exist."),
    ),
];

pub(crate) fn get(
    keys: &Reader<'_>,
    words: &Words<'_>,
    reply: &mut Encoder<'_>,
) -> Result<(), Stop> {
    let [key, ..] = words else { return Err(Failure::arity("get").into()) };
    match keys.row(key)? {
        Some(row) => {
            keys.admit(row.value().len(), reply)?;
            reply.bulk(row.value());
        }
        None => reply.null(),
    }
    Ok(())
}

/// `key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`
fn set<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, new, options @ ..] = words else { return Err(Failure::arity("set")) };
    let (key, value) = (key(name)?, value(new)?);
    let (mut only, mut expiry, mut old) = (Only::Always, Expiry::Never, false);
    let mut timed = None;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "nx") && only != Only::IfPresent {
            only = Only::IfAbsent;
        } else if is(option, "xx") && only != Only::IfAbsent {
            only = Only::IfPresent;
        } else if is(option, "get") {
            old = true;
        } else if is(option, "keepttl") && timed.is_none() {
            expiry = Expiry::Keep;
        } else if let Some(unit) = Unit::of_option(option)
            && timed.is_none_or(|(given, _)| given == unit)
            && expiry != Expiry::Keep
        {
            // The same unit may be repeated. The last time is used.
            timed = Some((unit, options.next().ok_or(Failure::SYNTAX)?));
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    if let Some((unit, time)) = timed {
        expiry = unit.life(time, "set", scope.now_ms)?;
    }
    let op = KeyOp::Put { bucket: scope.bucket, key, value, expiry, only, old };
    Ok(Plan::Change(op, if old { row } else { written }))
}

/// Replies OK, or null if the condition was not met.
fn written(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Nothing => reply.null(),
        answer => ok(answer, reply),
    }
}

/// Sets a key, optionally only if it does not exist.
fn put<'a>(
    scope: &Scope<'_>,
    name: &'a [u8],
    new: &'a [u8],
    expiry: Expiry,
    only: Only,
) -> Result<KeyOp<'a>, Failure> {
    let (key, value) = (key(name)?, value(new)?);
    Ok(KeyOp::Put { bucket: scope.bucket, key, value, expiry, only, old: false })
}

fn setnx<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, new] = words else { return Err(Failure::arity("setnx")) };
    Ok(Plan::Change(put(scope, name, new, Expiry::Never, Only::IfAbsent)?, number))
}

fn setex<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, time, new] = words else { return Err(Failure::arity("setex")) };
    let expiry = Unit::EX.life(time, "setex", scope.now_ms)?;
    Ok(Plan::Change(put(scope, name, new, expiry, Only::Always)?, ok))
}

fn psetex<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, time, new] = words else { return Err(Failure::arity("psetex")) };
    let expiry = Unit::PX.life(time, "psetex", scope.now_ms)?;
    Ok(Plan::Change(put(scope, name, new, expiry, Only::Always)?, ok))
}

fn getset<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, new] = words else { return Err(Failure::arity("getset")) };
    let (key, value) = (key(name)?, value(new)?);
    let (expiry, only) = (Expiry::Never, Only::Always);
    Ok(Plan::Change(KeyOp::Put { bucket: scope.bucket, key, value, expiry, only, old: true }, row))
}

fn getdel<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name] = words else { return Err(Failure::arity("getdel")) };
    let op = KeyOp::Take { bucket: scope.bucket, key: key(name)?, only: Only::Always };
    Ok(Plan::Change(op, row))
}

/// `key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]`
fn getex<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, options @ ..] = words else { return Err(Failure::arity("getex")) };
    let (mut persist, mut timed) = (false, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "persist") && timed.is_none() {
            persist = true;
        } else if let Some(unit) = Unit::of_option(option)
            && timed.is_none_or(|(given, _)| given == unit)
            && !persist
        {
            timed = Some((unit, options.next().ok_or(Failure::SYNTAX)?));
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let expiry = match timed {
        Some((unit, time)) => unit.life(time, "getex", scope.now_ms)?,
        None if persist => Expiry::Never,
        None => return Ok(Plan::Read(get)),
    };
    let only = kv::OnlyExpiry::Always;
    let op = KeyOp::Expire { bucket: scope.bucket, key: key(name)?, expiry, only, read: true };
    Ok(Plan::Change(op, row))
}

fn mget(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let rows = keys.rows(words)?;
    let length = |row: &Option<KeyRow>| row.as_ref().map_or(0, |row| row.value().len());
    let headers = rows.len() * BULK_BYTES;
    keys.admit(headers + rows.iter().map(length).sum::<usize>(), reply)?;
    reply.array(rows.len());
    for row in &rows {
        match row {
            Some(row) => reply.bulk(row.value()),
            None => reply.null(),
        }
    }
    Ok(())
}

fn pairs<'a>(
    scope: &Scope<'_>,
    words: &'a Words<'a>,
    command: &str,
    only_new: bool,
) -> Result<KeyOp<'a>, Failure> {
    let (pairs, []) = words.as_chunks() else { return Err(Failure::arity(command)) };
    let pair = |[name, new]: &[&'a [u8]; 2]| Ok((key(name)?, value(new)?));
    let pairs = pairs.iter().map(pair).collect::<Result<_, Failure>>()?;
    Ok(KeyOp::PutAll { bucket: scope.bucket, pairs, only_new })
}

fn mset<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Change(pairs(scope, words, "mset", false)?, ok))
}

fn msetnx<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Change(pairs(scope, words, "msetnx", true)?, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_set_that_contradict_each_other_are_a_syntax_error() {
        let scope = Scope { bucket: kv::BucketId(0), now_ms: &|| 1_000 };
        let check = |options: &str| {
            let words: Vec<&[u8]> = options.split_whitespace().map(str::as_bytes).collect();
            let words = [&[&b"k"[..], b"v"][..], &words].concat();
            match set(&scope, &words) {
                Ok(Plan::Change(KeyOp::Put { expiry, only, old, .. }, _)) => {
                    Ok((expiry, only, old))
                }
                Ok(_) => panic!("SET puts"),
                Err(failure) => Err(failure.to_string()),
            }
        };
        use {Expiry::*, Only::*};
        for (options, expect) in [
            ("", (Never, Always, false)),
            ("NX", (Never, IfAbsent, false)),
            ("xx GET get", (Never, IfPresent, true)),
            ("ex 2 NX", (In(2_000), IfAbsent, false)),
            ("PX 2", (In(2), Always, false)),
            ("EXAT 2", (At(2_000), Always, false)),
            ("pxat 2 get", (At(2), Always, true)),
            ("KEEPTTL", (Keep, Always, false)),
            ("ex x EX 2", (In(2_000), Always, false)),
        ] {
            assert_eq!(check(options), Ok(expect), "{options}");
        }
        for options in
            ["nx xx", "xx nx", "ex", "ex 1 px 1", "keepttl ex 1", "ex 1 keepttl", "x", "ex 1 ex"]
        {
            assert_eq!(check(options), Err("ERR syntax error".into()), "{options}");
        }
        for (options, expect) in [
            ("ex 0", "ERR invalid expire time in 'set' command"),
            ("px -1", "ERR invalid expire time in 'set' command"),
            ("ex 9223372036854776", "ERR invalid expire time in 'set' command"),
            ("ex 1x", "ERR value is not an integer or out of range"),
        ] {
            assert_eq!(check(options), Err(expect.into()), "{options}");
        }
    }
}
