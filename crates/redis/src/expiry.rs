//! Commands about the expiry of keys: EXPIRE, PERSIST, TTL and similar ones.

use kv::{Expiry, KeyOp, OnlyExpiry};
use resp::Encoder;

use super::command::{Flag, Group, Plan, Run, Scope, Spec, Words, bytes, number};
use super::failure::{Failure, shown};
use super::numbers::{Unit, is};
use super::reader::{Reader, Stop};

const CHANGE: &[Flag] = &[Flag::Write, Flag::Fast];
const READ: &[Flag] = &[Flag::Readonly, Flag::Fast];

const fn row_of(
    name: &'static str,
    arity: i16,
    run: Run,
    (since, summary): (&'static str, &'static str),
) -> Spec {
    let flags = if let Run::Read(_) = run { READ } else { CHANGE };
    Spec { name, arity, flags, keys: (1, 1, 1), group: Group::Generic, summary, since, run }
}

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("expire", -3, Run::Change(expire), ("1.0.0", "Sets the TTL of a key in seconds.")),
    row_of(
        "pexpire",
        -3,
        Run::Change(pexpire),
        ("2.6.0", "Sets the TTL of a key in milliseconds."),
    ),
    row_of(
        "expireat",
        -3,
        Run::Change(expireat),
        ("1.2.0", "Sets when a key expires, in seconds since 1970."),
    ),
    row_of(
        "pexpireat",
        -3,
        Run::Change(pexpireat),
        ("2.6.0", "Sets when a key expires, in milliseconds since 1970."),
    ),
    row_of("persist", 2, Run::Change(persist), ("2.2.0", "Removes the TTL of a key.")),
    row_of("ttl", 2, Run::Read(ttl), ("1.0.0", "Returns the TTL of a key in seconds.")),
    row_of("pttl", 2, Run::Read(pttl), ("2.6.0", "Returns the TTL of a key in milliseconds.")),
    row_of(
        "expiretime",
        2,
        Run::Read(expiretime),
        ("7.0.0", "Returns when a key expires, in seconds since 1970."),
    ),
    row_of(
        "pexpiretime",
        2,
        Run::Read(pexpiretime),
        ("7.0.0", "Returns when a key expires, in milliseconds since 1970."),
    ),
];

/// `key time [NX | XX | GT | LT]`
fn expire_in<'a>(
    scope: &Scope<'_>,
    words: &'a Words<'a>,
    command: &str,
    unit: Unit,
) -> Result<Plan<'a>, Failure> {
    let [key, time, options @ ..] = words else { return Err(Failure::arity(command)) };
    let only = condition(options)?;
    let expiry = unit.expiry(time, command, scope.now_ms)?;
    let op = KeyOp::Expire { bucket: scope.bucket, key: bytes(key), expiry, only, read: false };
    Ok(Plan::Change(op, number))
}

fn condition(options: &Words<'_>) -> Result<OnlyExpiry, Failure> {
    let (mut none, mut some, mut later, mut earlier) = (false, false, false, false);
    for option in options {
        let flag = match () {
            () if is(option, "nx") => &mut none,
            () if is(option, "xx") => &mut some,
            () if is(option, "gt") => &mut later,
            () if is(option, "lt") => &mut earlier,
            () => {
                let option = shown(option, 128);
                return Err(Failure::of(format!("ERR Unsupported option {option}")));
            }
        };
        *flag = true;
    }
    if none && (some || later || earlier) {
        let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
        return Err(Failure::said(text));
    }
    Ok(match (none, some, later, earlier) {
        (_, _, true, true) => {
            let text = "ERR GT and LT options at the same time are not compatible";
            return Err(Failure::said(text));
        }
        (true, ..) => OnlyExpiry::IfNone,
        (_, false, true, _) => OnlyExpiry::IfLater,
        (_, true, true, _) => OnlyExpiry::IfSomeAndLater,
        (_, false, _, true) => OnlyExpiry::IfEarlier,
        (_, true, _, true) => OnlyExpiry::IfSomeAndEarlier,
        (_, true, ..) => OnlyExpiry::IfSome,
        _ => OnlyExpiry::Always,
    })
}

fn expire<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    expire_in(scope, words, "expire", Unit::EX)
}

fn pexpire<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    expire_in(scope, words, "pexpire", Unit::PX)
}

fn expireat<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    expire_in(scope, words, "expireat", Unit::EXAT)
}

fn pexpireat<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    expire_in(scope, words, "pexpireat", Unit::PXAT)
}

fn persist<'a>(scope: &Scope<'_>, words: &'a Words<'a>) -> Result<Plan<'a>, Failure> {
    let [key] = words else { return Err(Failure::arity("persist")) };
    let (expiry, only) = (Expiry::Never, OnlyExpiry::IfSome);
    let op = KeyOp::Expire { bucket: scope.bucket, key: bytes(key), expiry, only, read: false };
    Ok(Plan::Change(op, number))
}

/// Replies -2 if there is no key, -1 if it has no expiry, otherwise `number` of the expiry and the current time.
fn reply_with(
    keys: &Reader<'_>,
    words: &Words<'_>,
    reply: &mut Encoder<'_>,
    number: impl FnOnce(u64, u64) -> u64,
) -> Result<(), Stop> {
    let [key] = words else { return Err(Failure::SYNTAX.into()) };
    reply.integer(match keys.row(key)? {
        None => -2,
        Some(row) => row.expires_ms().map_or(-1, |expires| {
            i64::try_from(number(expires, keys.now_ms())).unwrap_or(i64::MAX)
        }),
    });
    Ok(())
}

fn ttl(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    reply_with(keys, words, reply, |expires, now| {
        expires.saturating_sub(now).saturating_add(500) / 1_000
    })
}

fn pttl(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    reply_with(keys, words, reply, u64::saturating_sub)
}

fn expiretime(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    reply_with(keys, words, reply, |expires, _| expires.saturating_add(500) / 1_000)
}

fn pexpiretime(keys: &Reader<'_>, words: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Stop> {
    reply_with(keys, words, reply, |expires, _| expires)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_expire_combine_as_in_redis() {
        let check = |options: &str| {
            let words: Vec<&[u8]> = options.split_whitespace().map(str::as_bytes).collect();
            condition(&words).map_err(|failure| failure.to_string())
        };
        for (options, expect) in [
            ("", OnlyExpiry::Always),
            ("nx", OnlyExpiry::IfNone),
            ("XX xx", OnlyExpiry::IfSome),
            ("gt", OnlyExpiry::IfLater),
            ("lt", OnlyExpiry::IfEarlier),
            ("XX GT", OnlyExpiry::IfSomeAndLater),
            ("lt xx", OnlyExpiry::IfSomeAndEarlier),
        ] {
            assert_eq!(check(options), Ok(expect), "{options}");
        }
        for options in ["nx xx", "gt nx", "nx lt", "nx gt lt"] {
            let error = check(options).unwrap_err();
            assert!(error.starts_with("ERR NX and XX, GT or LT"), "{options}: {error}");
        }
        assert!(check("gt lt").unwrap_err().starts_with("ERR GT and LT"));
        assert_eq!(check("xx AB"), Err("ERR Unsupported option AB".into()));
    }
}
