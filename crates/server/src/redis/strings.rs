//! Values: SET, GET and what changes or reads parts of a value.

use feed::keys::{Expiry, KeyAnswer, KeyOp, KeyRow, Only};
use feed::limits::VALUE_BYTES_MAX;
use resp::Encoder;

use super::command::{
    Flag, Group, Plan, Run, Scope, Spec, Words, bytes, key, number, ok, row, value,
};
use super::failure::Failure;
use super::lcs;
use super::numbers::{Unit, check_float, integer, is};
use super::reader::{REPLY_BYTES_MAX, Reader, Stop};

use Flag::{Denyoom, Fast, Readonly, Write};

const READ: &[Flag] = &[Readonly, Fast];
const GROW: &[Flag] = &[Write, Denyoom, Fast];
const LONG: &[Flag] = &[Write, Denyoom];
const ONE: (i8, i8, i8) = (1, 1, 1);
const ALL: (i8, i8, i8) = (1, -1, 1);
const PAIRS: (i8, i8, i8) = (1, -1, 2);
/// Steps of LCS that take no longer than other commands.
const LCS_STEPS_SHORT: usize = 1 << 14;

const fn row_of(
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
        ("1.0.0", "Sets a value, if asked under a condition or for a time."),
    ),
    row_of(
        "setnx",
        3,
        GROW,
        ONE,
        Run::Change(setnx),
        ("1.0.0", "Sets a value if the key is not there."),
    ),
    row_of(
        "setex",
        4,
        LONG,
        ONE,
        Run::Change(setex),
        ("2.0.0", "Sets a value for a time in seconds."),
    ),
    row_of(
        "psetex",
        4,
        LONG,
        ONE,
        Run::Change(psetex),
        ("2.6.0", "Sets a value for a time in milliseconds."),
    ),
    row_of(
        "getset",
        3,
        GROW,
        ONE,
        Run::Change(getset),
        ("1.0.0", "Sets a value and answers with the old one."),
    ),
    row_of(
        "getdel",
        2,
        &[Write, Fast],
        ONE,
        Run::Change(getdel),
        ("6.2.0", "Reads a value and deletes the key."),
    ),
    row_of(
        "getex",
        -2,
        &[Write, Fast],
        ONE,
        Run::Change(getex),
        ("6.2.0", "Reads a value and changes when it expires."),
    ),
    row_of(
        "mget",
        -2,
        READ,
        ALL,
        Run::Read(mget),
        ("1.0.0", "Reads several values as they are at one time."),
    ),
    row_of(
        "mset",
        -3,
        LONG,
        PAIRS,
        Run::Change(mset),
        ("1.0.1", "Sets several values at one time."),
    ),
    row_of(
        "msetnx",
        -3,
        LONG,
        PAIRS,
        Run::Change(msetnx),
        ("1.0.1", "Sets several values if none of the keys is there."),
    ),
    row_of("append", 3, GROW, ONE, Run::Change(append), ("2.0.0", "Appends to a value.")),
    row_of("strlen", 2, READ, ONE, Run::Read(strlen), ("2.2.0", "Tells how long a value is.")),
    row_of(
        "getrange",
        4,
        &[Readonly],
        ONE,
        Run::Read(getrange),
        ("2.4.0", "Reads a part of a value."),
    ),
    row_of(
        "substr",
        4,
        &[Readonly],
        ONE,
        Run::Read(getrange),
        ("1.0.0", "Reads a part of a value; the old name of GETRANGE."),
    ),
    row_of(
        "setrange",
        4,
        LONG,
        ONE,
        Run::Change(setrange),
        ("2.2.0", "Overwrites a part of a value."),
    ),
    row_of(
        "lcs",
        -3,
        &[Readonly],
        (1, 2, 1),
        Run::Read(common),
        ("7.0.0", "Finds the longest common subsequence of two values."),
    ),
    row_of("incr", 2, GROW, ONE, Run::Change(incr), ("1.0.0", "Adds 1 to a whole number.")),
    row_of("decr", 2, GROW, ONE, Run::Change(decr), ("1.0.0", "Takes 1 from a whole number.")),
    row_of("incrby", 3, GROW, ONE, Run::Change(incrby), ("1.0.0", "Adds to a whole number.")),
    row_of("decrby", 3, GROW, ONE, Run::Change(decrby), ("1.0.0", "Takes from a whole number.")),
    row_of(
        "incrbyfloat",
        3,
        GROW,
        ONE,
        Run::Change(incrbyfloat),
        ("2.6.0", "Adds to a decimal number."),
    ),
    row_of("getbit", 3, READ, ONE, Run::Read(getbit), ("2.2.0", "Reads one bit.")),
    row_of("setbit", 4, LONG, ONE, Run::Change(setbit), ("2.2.0", "Sets one bit.")),
];

pub(crate) fn get(
    keys: &Reader<'_>,
    words: &Words<'_>,
    reply: &mut Encoder<'_>,
) -> Result<(), Stop> {
    let [key, ..] = words else { return Err(Failure::arity("get").into()) };
    match keys.row(key)? {
        Some(row) => reply.bulk(row.value()),
        None => reply.null(),
    }
    Ok(())
}

/// `key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`
fn set<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, new, options @ ..] = words else { return Err(Failure::arity("set")) };
    let (key, value) = (key(name)?, value(new)?);
    let (mut only, mut expiry, mut old) = (Only::Always, Expiry::Never, false);
    let mut timed = false;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "nx") && only != Only::IfPresent {
            only = Only::IfAbsent;
        } else if is(option, "xx") && only != Only::IfAbsent {
            only = Only::IfPresent;
        } else if is(option, "get") {
            old = true;
        } else if is(option, "keepttl") && !timed {
            expiry = Expiry::Keep;
        } else if let Some(unit) = Unit::of_option(option)
            && !timed
            && expiry != Expiry::Keep
        {
            let time = options.next().ok_or(Failure::SYNTAX)?;
            expiry = unit.life(time, "set", scope.now_ms)?;
            timed = true;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let op = KeyOp::Put { bucket: scope.bucket, key, value, expiry, only, old };
    Ok(Plan::Change(op, if old { row } else { written }))
}

/// OK, or nothing if a condition forbade it.
fn written(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Nothing => reply.null(),
        answer => ok(answer, reply),
    }
}

/// A change of one key that always happens unless it is there already.
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
    let expiry = match options {
        [] => return Ok(Plan::Read(get)),
        [option] if is(option, "persist") => Expiry::Never,
        [option, time] => {
            let unit = Unit::of_option(option).ok_or(Failure::SYNTAX)?;
            unit.life(time, "getex", scope.now_ms)?
        }
        _ => return Err(Failure::SYNTAX),
    };
    let only = feed::keys::OnlyExpiry::Always;
    let op = KeyOp::Expire { bucket: scope.bucket, key: key(name)?, expiry, only, read: true };
    Ok(Plan::Change(op, row))
}

fn mget(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let rows = keys.rows(words)?;
    let length = |row: &Option<KeyRow>| row.as_ref().map_or(0, |row| row.value().len());
    if rows.iter().map(length).sum::<usize>() > REPLY_BYTES_MAX {
        return Err(Failure::REPLY_TOO_LONG.into());
    }
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

fn append<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, more] = words else { return Err(Failure::arity("append")) };
    let op = KeyOp::Append { bucket: scope.bucket, key: key(name)?, bytes: value(more)? };
    Ok(Plan::Change(op, number))
}

fn strlen(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [key] = words else { return Err(Failure::arity("strlen").into()) };
    let length = keys.row(key)?.map_or(0, |row| row.value().len());
    reply.integer(length as i64);
    Ok(())
}

fn getrange(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [key, start, end] = words else { return Err(Failure::arity("getrange").into()) };
    let (start, end) = (integer(start)?, integer(end)?);
    match keys.row(key)? {
        Some(row) => reply.bulk(part(row.value(), start, end)),
        None => reply.bulk(b""),
    }
    Ok(())
}

/// From byte `start` to byte `end`, both included; negative ones count from the end.
fn part(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = value.len() as i64;
    let from_front = |index: i64| if index < 0 { (len + index).max(0) } else { index };
    if start < 0 && end < 0 && start > end {
        return b"";
    }
    let (start, end) = (from_front(start), from_front(end).min(len - 1));
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| value.get(start..=end)).unwrap_or_default()
}

fn setrange<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, offset, new] = words else { return Err(Failure::arity("setrange")) };
    let offset = u64::try_from(integer(offset)?).map_err(|_| Failure::OFFSET)?;
    let too_long = offset.saturating_add(new.len() as u64) > VALUE_BYTES_MAX as u64;
    if too_long && !new.is_empty() {
        return Err(Failure::TOO_LONG);
    }
    let op = KeyOp::SetRange { bucket: scope.bucket, key: key(name)?, offset, bytes: bytes(new) };
    Ok(Plan::Change(op, number))
}

/// `key key [LEN | IDX] [MINMATCHLEN n] [WITHMATCHLEN]`
fn common(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [a, b, options @ ..] = words else { return Err(Failure::arity("lcs").into()) };
    let (mut length, mut places, mut with_length, mut min) = (false, false, false, 0);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "len") {
            length = true;
        } else if is(option, "idx") {
            places = true;
        } else if is(option, "withmatchlen") {
            with_length = true;
        } else if is(option, "minmatchlen") {
            let given = options.next().ok_or(Failure::SYNTAX)?;
            min = usize::try_from(integer(given)?).unwrap_or(0);
        } else {
            return Err(Failure::SYNTAX.into());
        }
    }
    if length && places {
        let both = "ERR If you want both the length and indexes, please just use IDX.";
        return Err(Failure::said(both).into());
    }
    let rows = keys.rows(&[a, b])?;
    let value = |index: usize| {
        rows.get(index).and_then(Option::as_ref).map(KeyRow::value).unwrap_or_default()
    };
    let Some(steps) = lcs::steps(value(0).len(), value(1).len()) else {
        let memory = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
        return Err(Failure::said(memory).into());
    };
    if steps > LCS_STEPS_SHORT {
        keys.may_take_long()?;
    }
    let table = lcs::Table::new(value(0), value(1));
    if places {
        tell_places(&table, min, with_length, reply);
    } else if length {
        reply.integer(table.length().into());
    } else {
        reply.bulk(&table.text());
    }
    Ok(())
}

fn tell_places(table: &lcs::Table<'_>, min: usize, with_length: bool, reply: &mut Encoder<'_>) {
    let matches = table.matches(min);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.len());
    for run in matches {
        reply.array(if with_length { 3 } else { 2 });
        for (first, last) in [run.a, run.b] {
            reply.array(2);
            reply.integer(first as i64);
            reply.integer(last as i64);
        }
        if with_length {
            reply.integer(run.len() as i64);
        }
    }
    reply.bulk(b"len");
    reply.integer(table.length().into());
}

fn add<'a>(scope: &Scope<'_>, name: &'a [u8], by: i64) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Change(KeyOp::Add { bucket: scope.bucket, key: key(name)?, by }, number))
}

fn incr<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name] = words else { return Err(Failure::arity("incr")) };
    add(scope, name, 1)
}

fn decr<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name] = words else { return Err(Failure::arity("decr")) };
    add(scope, name, -1)
}

fn incrby<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, by] = words else { return Err(Failure::arity("incrby")) };
    add(scope, name, integer(by)?)
}

fn decrby<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, by] = words else { return Err(Failure::arity("decrby")) };
    add(scope, name, integer(by)?.checked_neg().ok_or(Failure::DECREMENT)?)
}

fn incrbyfloat<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, by] = words else { return Err(Failure::arity("incrbyfloat")) };
    check_float(by)?;
    let op = KeyOp::AddFloat { bucket: scope.bucket, key: key(name)?, by: bytes(by) };
    Ok(Plan::Change(op, row))
}

fn bit_offset(word: &[u8]) -> Result<u64, Failure> {
    let offset = integer(word).ok().and_then(|offset| u64::try_from(offset).ok());
    offset.filter(|offset| *offset >> 3 < VALUE_BYTES_MAX as u64).ok_or(Failure::BIT_OFFSET)
}

fn getbit(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [key, offset] = words else { return Err(Failure::arity("getbit").into()) };
    let offset = bit_offset(offset)?;
    let row = keys.row(key)?;
    let byte = row.as_ref().and_then(|row| row.value().get((offset >> 3) as usize));
    reply.integer(byte.map_or(0, |byte| i64::from(byte >> (7 - (offset & 7)) & 1)));
    Ok(())
}

fn setbit<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [name, offset, bit] = words else { return Err(Failure::arity("setbit")) };
    let offset = bit_offset(offset)?;
    let bit = match integer(bit) {
        Ok(0) => false,
        Ok(1) => true,
        _ => return Err(Failure::BIT),
    };
    let op = KeyOp::SetBit { bucket: scope.bucket, key: key(name)?, offset, bit };
    Ok(Plan::Change(op, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_values_are_counted_from_both_ends() {
        let value = b"Hello World";
        for (start, end, expect) in [
            (0, 3, "Hell"),
            (0, -1, "Hello World"),
            (-4, -1, "orld"),
            (5, 3, ""),
            (5, 5_000, " World"),
            (-5_000, 10_000, "Hello World"),
            (-1, -5, ""),
            (i64::MIN, i64::MIN, ""),
            (i64::MAX, i64::MAX, ""),
            (11, 11, ""),
        ] {
            let found = part(value, start, end);
            assert_eq!(found, expect.as_bytes(), "{start} {end}");
        }
        assert_eq!(part(b"", 0, -1), b"");
    }

    #[test]
    fn options_of_set_that_contradict_each_other_are_a_syntax_error() {
        let scope = Scope { bucket: feed::BucketId(0), now_ms: &|| 1_000 };
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
        ] {
            assert_eq!(check(options), Ok(expect), "{options}");
        }
        for options in
            ["nx xx", "xx nx", "ex", "ex 1 px 1", "keepttl ex 1", "ex 1 keepttl", "x", "ex 1 ex 2"]
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
