//! Commands on parts of values, numbers and bits: APPEND, GETRANGE, INCR, SETBIT, LCS and similar ones.

use kv::limits::VALUE_BYTES_MAX;
use kv::{KeyOp, KeyRow};
use resp::Encoder;

use super::command::{Flag, Plan, Run, Scope, Spec, Words, bytes, key, number, row, value};
use super::failure::Failure;
use super::lcs;
use super::numbers::{check_float, integer, is};
use super::reader::{Reader, Stop};
use super::strings::{GROW, GROW_AND_ANSWER, LONG, ONE, READ, row_of};

use Flag::{Access, Denyoom, Readonly, Write};

/// Maximum number of steps of an LCS that counts as a short read.
const LCS_STEPS_SHORT: usize = 1 << 14;
/// Maximum size of the description of a match of LCS, in bytes.
const MATCH_BYTES: usize = 80;

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("append", 3, GROW, ONE, Run::Change(append), ("2.0.0", "Appends to a value.")),
    row_of("strlen", 2, READ, ONE, Run::Read(strlen), ("2.2.0", "Returns the length of a value.")),
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
    row_of(
        "incr",
        2,
        GROW_AND_ANSWER,
        ONE,
        Run::Change(incr),
        ("1.0.0", "Adds 1 to a whole number."),
    ),
    row_of(
        "decr",
        2,
        GROW_AND_ANSWER,
        ONE,
        Run::Change(decr),
        ("1.0.0", "Subtracts 1 from a whole number."),
    ),
    row_of(
        "incrby",
        3,
        GROW_AND_ANSWER,
        ONE,
        Run::Change(incrby),
        ("1.0.0", "Adds to a whole number."),
    ),
    row_of(
        "decrby",
        3,
        GROW_AND_ANSWER,
        ONE,
        Run::Change(decrby),
        ("1.0.0", "Subtracts from a whole number."),
    ),
    row_of(
        "incrbyfloat",
        3,
        GROW_AND_ANSWER,
        ONE,
        Run::Change(incrbyfloat),
        ("2.6.0", "Adds to a decimal number."),
    ),
    row_of("getbit", 3, READ, ONE, Run::Read(getbit), ("2.2.0", "Reads one bit.")),
    row_of(
        "setbit",
        4,
        &[Write, Denyoom, Access],
        ONE,
        Run::Change(setbit),
        ("2.2.0", "Sets one bit."),
    ),
];

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
        Some(row) => {
            let part = part(row.value(), start, end);
            keys.admit(part.len(), reply)?;
            reply.bulk(part);
        }
        None => reply.bulk(b""),
    }
    Ok(())
}

/// Returns the bytes from `start` to `end`, both included. Negative indexes count from the end.
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
    // Reserve memory for the table, and for the reply to IDX: there is at most one match per row of the table.
    keys.admit(lcs::table_bytes(steps) + value(0).len().min(value(1).len()) * MATCH_BYTES, reply)?;
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
            (i64::MIN, i64::MIN, "H"),
            (i64::MAX, i64::MAX, ""),
            (11, 11, ""),
        ] {
            let found = part(value, start, end);
            assert_eq!(found, expect.as_bytes(), "{start} {end}");
        }
        assert_eq!(part(b"", 0, -1), b"");
    }
}
