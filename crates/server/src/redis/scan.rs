//! Walks over keys: SCAN, KEYS, RANDOMKEY. They may touch the disk.

use feed::keys::KeyRow;
use resp::Encoder;

use super::command::{Flag, Group, Run, Spec, Words};
use super::failure::Failure;
use super::glob;
use super::numbers::{integer, is};
use super::reader::{REPLY_BYTES_MAX, Reader, Stop};

/// Most keys that one SCAN looks at, whatever it is asked: others wait for the memory they take.
const COUNT_MAX: i64 = 10_000;
/// How many keys KEYS takes at a time.
const STRIDE: usize = 1_024;

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
    row_of("scan", -2, &[Flag::Readonly], Run::Read(scan), "Lists keys piece by piece.", "2.8.0"),
    row_of(
        "keys",
        2,
        &[Flag::Readonly],
        Run::Read(keys),
        "Lists all keys that match a pattern.",
        "1.0.0",
    ),
    row_of(
        "randomkey",
        1,
        &[Flag::Readonly, Flag::Random],
        Run::Read(randomkey),
        "Tells any key.",
        "1.0.0",
    ),
];

/// `cursor [MATCH pattern] [COUNT n] [TYPE name]`
fn scan(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [cursor, options @ ..] = words else { return Err(Failure::arity("scan").into()) };
    let cursor = std::str::from_utf8(cursor).ok().and_then(|cursor| cursor.parse::<u64>().ok());
    let cursor = cursor.ok_or(Failure::CURSOR)?;
    let (mut pattern, mut count, mut strings) = (None, 10, true);
    let (options, []) = options.as_chunks() else { return Err(Failure::SYNTAX.into()) };
    for [option, given] in options {
        if is(option, "match") {
            pattern = Some(*given);
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
    let (rows, next) = keys.walk(cursor, count.min(COUNT_MAX) as usize)?;
    let fits =
        |row: &&KeyRow| strings && pattern.is_none_or(|pattern| glob::matches(pattern, row.key()));
    let found: Vec<&KeyRow> = rows.iter().filter(fits).collect();
    reply.array(2);
    reply.bulk(next.unwrap_or(0).to_string().as_bytes());
    reply.array(found.len());
    found.iter().for_each(|row| reply.bulk(row.key()));
    Ok(())
}

/// `pattern`
fn keys(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    let [pattern] = words else { return Err(Failure::arity("keys").into()) };
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut from = Some(0);
    while let Some(at) = from {
        let (rows, next) = keys.walk(at, STRIDE)?;
        for row in rows.iter().filter(|row| glob::matches(pattern, row.key())) {
            bytes += row.key().len() + size_of::<Box<[u8]>>();
            if bytes > REPLY_BYTES_MAX {
                return Err(Failure::REPLY_TOO_LONG.into());
            }
            // The row itself would hold on to its value.
            found.push(Box::<[u8]>::from(row.key()));
        }
        from = next;
    }
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}

/// Any key, from a place in the walk that nobody chose.
fn randomkey(keys: &Reader<'_>, _: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    keys.may_take_long()?;
    let from = getrandom::u64().unwrap_or_default();
    let (mut rows, _) = keys.walk(from, 1)?;
    if rows.is_empty() {
        rows = keys.walk(0, 1)?.0;
    }
    match rows.first() {
        Some(row) => reply.bulk(row.key()),
        None => reply.null(),
    }
    Ok(())
}
