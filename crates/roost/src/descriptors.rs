//! File descriptors: each connection takes one, and some are reserved for the log, the store and TLS handshakes.
//!
//! **Invariant:** connections take at most the limit of the operating system minus the reserve, so the log can always
//! open a segment and the store a table.

use anyhow::Context as _;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors for the log, the tables of the store, the runtime and the listeners.
const RESERVED: u64 = 256;
/// Smallest number of connections with which a server starts.
const CONNECTIONS_MIN: u64 = 16;

/// Raises this process's soft limit to the hard limit; returns the result.
pub(crate) fn raise_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            before.unwrap_or(u64::MAX)
        }
    }
}

/// Returns the maximum number of connections of each of the `listeners`. `limit` is the number of files that the
/// process may open, and `handshakes` of them are reserved for TLS handshakes. The result is `asked`, if set, otherwise
/// as many as possible up to `default`.
///
/// # Errors
/// If the limit is too low for a server, or for `asked`.
pub(crate) fn connections(
    limit: u64,
    (listeners, handshakes): (u64, u64),
    asked: Option<u32>,
    default: u32,
) -> anyhow::Result<u32> {
    let reserved = RESERVED + handshakes;
    let most = limit.saturating_sub(reserved) / listeners;
    let advice = "raise the hard limit, for example with LimitNOFILE of systemd or ulimit -n";
    anyhow::ensure!(
        most >= CONNECTIONS_MIN,
        "the limit of open files is {limit}, and roost needs at least {}; {advice}",
        reserved + CONNECTIONS_MIN * listeners
    );
    if let Some(asked) = asked {
        anyhow::ensure!(
            u64::from(asked) <= most,
            "--max-connections {asked} needs more than the {limit} files that may be open; set at \
             most {most}, or {advice}"
        );
        return Ok(asked);
    }
    if most < u64::from(default) {
        tracing::warn!(
            limit,
            connections = most,
            "the limit of open files is low and reduces the number of connections; {advice}"
        );
    }
    u32::try_from(most.min(default.into())).context("too many connections")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_the_reserve() {
        let check_with = |limit, (listeners, handshakes), asked, expect: Result<u32, &str>| {
            let found = connections(limit, (listeners, handshakes), asked, 4_096);
            match (found, expect) {
                (Ok(found), Ok(expect)) => {
                    assert_eq!(found, expect, "{limit} {listeners} {asked:?}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, expect) => panic!("{found:?}, not {expect:?}"),
            }
        };
        let check =
            |limit, listeners, asked, expect| check_with(limit, (listeners, 0), asked, expect);
        check_with(2_048, (1, 512), None, Ok(1_280));
        check_with(700, (1, 512), None, Err("at least 784"));
        check(1 << 20, 1, None, Ok(4_096));
        check(1 << 20, 1, Some(20_000), Ok(20_000));
        check(1_024, 1, None, Ok(768));
        check(1_024, 2, None, Ok(384));
        check(1_024, 2, Some(384), Ok(384));
        check(1_024, 2, Some(385), Err("at most 384"));
        check(272, 1, None, Ok(16));
        check(271, 1, None, Err("is 271, and roost needs at least 272"));
        check(64, 2, Some(1), Err("at least 288"));
        check(u64::MAX, 1, None, Ok(4_096));
    }

    #[test]
    fn the_limit_of_this_process_can_be_read_and_raised() {
        let limit = raise_limit();
        assert!(limit >= 64 && raise_limit() == limit, "{limit}");
    }
}
