//! Error replies. Messages that clients match on are those of Redis 7.0.

use std::borrow::Cow;
use std::fmt;

use kv::limits::KEY_BYTES_MAX;
use kv::{KeyRefusal, RefusalClass};
use node::{SubmitError, Unreadable};

use super::dump::DumpError;
use super::numbers::is;
use super::registry::ConnectionInfo;
use edge::{LineGate, ReadError};

/// Error reply to a command: a code in capitals, a space, a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(Cow<'static, str>);

impl Failure {
    pub(crate) const SYNTAX: Self = Self::said("ERR syntax error");
    pub(crate) const NOT_AN_INTEGER: Self =
        Self::said("ERR value is not an integer or out of range");
    pub(crate) const NOT_A_FLOAT: Self = Self::said("ERR value is not a valid float");
    pub(crate) const OFFSET: Self = Self::said("ERR offset is out of range");
    pub(crate) const BIT_OFFSET: Self =
        Self::said("ERR bit offset is not an integer or out of range");
    pub(crate) const BIT: Self = Self::said("ERR bit is not an integer or out of range");
    pub(crate) const DECREMENT: Self = Self::said("ERR decrement would overflow");
    pub(crate) const TOO_LONG: Self =
        Self::said("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    pub(crate) const DB_RANGE: Self =
        Self::said("ERR value is out of range, value must between -2147483648 and 2147483647");
    pub(crate) const DB_INDEX: Self = Self::said("ERR DB index is out of range");
    pub(crate) const BUSY_KEY: Self = Self::said("BUSYKEY Target key name already exists.");
    pub(crate) const EMPTY_KEY: Self = Self::said("ERR a key must not be empty");
    pub(crate) const CURSOR: Self = Self::said("ERR invalid cursor");
    pub(crate) const NO_AUTH: Self = Self::said("NOAUTH Authentication required.");
    pub(crate) const WRONG_PASS: Self =
        Self::said("WRONGPASS invalid username-password pair or user is disabled.");
    pub(crate) const NOT_IN_MULTI: Self =
        Self::said("ERR Command not allowed inside a transaction");
    pub(crate) const EXEC_ABORT: Self =
        Self::said("EXECABORT Transaction discarded because of previous errors.");
    pub(crate) const REPLY_TOO_LONG: Self =
        Self::said("ERR the reply would be longer than 64 MiB; ask for less at a time");
    pub(crate) const INTERNAL: Self = Self::said("ERR internal error; see the server log");
    /// Error if the budget of Redis clients is used up. The command has done nothing.
    pub(crate) const BUSY: Self =
        Self::said("BUSY the server has no memory for this now; try again in a second");
    /// Error if too many reads are waiting. The command has done nothing.
    pub(crate) const BUSY_READS: Self =
        Self::said("BUSY the server has too many reads waiting; try again in a second");
    pub(crate) const NO_REPLY: Self =
        Self::said("ERR the change was made, but there is no memory for its reply");
    /// Error for a client that has disconnected. It is never sent.
    pub(crate) const GONE: Self = Self::said("ERR the client is gone");
    pub(crate) const CLIENTS: Self = Self::said("ERR max number of clients reached");
    pub(crate) const NO_BUCKET: Self = Self::said("ERR there is no such bucket");

    /// Logs a failure of the server and the connection, at most once per second.
    pub(crate) fn log(&self, connection: &ConnectionInfo, last_command: &'static str) {
        static LINES: LineGate = LineGate::new();
        let is_fault = *self == Self::INTERNAL || *self == SubmitError::Unreadable.into();
        if is_fault && let Some(failures) = LINES.due() {
            let (connection_id, peer) = (connection.id, connection.peer);
            let text = "commands failed because of the server; this is the last";
            tracing::error!(connection_id, %peer, last_command, error = %self, failures, "{text}");
        }
    }

    /// Error with a fixed text.
    pub(crate) const fn said(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Error whose text contains parts of the command, which may be any bytes.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// Error for an expiry outside of the valid range.
    pub(crate) fn expiry(command: &str) -> Self {
        Self::of(format!("ERR invalid expire time in '{command}' command"))
    }

    /// Error for a client whose application key lacks the scope for this command.
    pub(crate) fn no_permission(command: &str) -> Self {
        Self::of(format!("NOPERM this user has no permissions to run the '{command}' command"))
    }

    /// Error for a wrong number of words.
    pub(crate) fn arity(command: &str) -> Self {
        Self::of(format!("ERR wrong number of arguments for '{command}' command"))
    }

    /// Error for a key that is too long.
    pub(crate) fn long_key() -> Self {
        Self::of(format!("ERR a key has at most {KEY_BYTES_MAX} bytes"))
    }

    /// Error for an unknown subcommand, or a wrong number of its words. `known` are the subcommands in lower case.
    pub(crate) fn subcommand(command: &str, subcommand: &[u8], known: &[&str]) -> Self {
        if let Some(known) = known.iter().find(|known| is(subcommand, known)) {
            return Self::arity(&format!("{command}|{known}"));
        }
        let (sub, command) = (shown(subcommand, 128), command.to_ascii_uppercase());
        Self::of(format!("ERR unknown subcommand '{sub}'. Try {command} HELP."))
    }

    /// Error for an unknown command.
    pub(crate) fn unknown_command(name: &[u8], words: &[&[u8]]) -> Self {
        let mut text =
            format!("ERR unknown command '{}', with args beginning with: ", shown(name, 128));
        let mut room = 128_usize;
        for word in words {
            let word = shown(word, room);
            room = room.saturating_sub(word.len() + 3);
            text.push_str(&format!("'{word}' "));
            if room == 0 {
                break;
            }
        }
        if is_of_other_types(name) {
            text.push_str(
                "(roost keeps strings: lists, sets, hashes and streams are not supported)",
            );
        }
        Self::of(text)
    }

    /// Whether the command did nothing because a limit of memory or of waiting reads was reached.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.starts_with("BUSY ")
    }

    /// Error of EXEC that names this error as the reason.
    pub(crate) fn aborts(&self) -> Self {
        let reason = self.0.strip_prefix("ERR ").unwrap_or(&self.0);
        Self::of(format!("EXECABORT Transaction discarded because of: {reason}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let code = match error {
            SubmitError::Busy => "BUSY",
            // Nothing was changed. Redis clients repeat a command automatically after this code.
            SubmitError::NoLog | SubmitError::Upgrading => "TRYAGAIN",
            // The change may still be made. Clients must not repeat the command, so the code is none after which they
            // do.
            SubmitError::Unconfirmed => "UNCONFIRMED",
            SubmitError::Stopped | SubmitError::Unreadable => "ERR",
            // Redis has this code for full memory.
            SubmitError::DiskFull => "OOM",
        };
        Self::of(format!("{code} {error}"))
    }
}

impl From<DumpError> for Failure {
    fn from(error: DumpError) -> Self {
        Self::said(match error {
            DumpError::Footer => "ERR DUMP payload version or checksum are wrong",
            DumpError::Format => "ERR Bad data format",
        })
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::BUSY_READS,
            ReadError::Panicked(payload) if payload.is::<Unreadable>() => {
                SubmitError::Unreadable.into()
            }
            ReadError::Panicked(_) => Self::INTERNAL,
        }
    }
}

impl From<KeyRefusal> for Failure {
    fn from(refusal: KeyRefusal) -> Self {
        let code = if refusal.class() == RefusalClass::Busy { "BUSY" } else { "ERR" };
        Self::of(format!("{code} {refusal}"))
    }
}

/// Returns at most `bytes_max` bytes of a client's input, as text.
pub(crate) fn shown(bytes: &[u8], bytes_max: usize) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.get(..bytes_max).unwrap_or(bytes))
}

/// Whether Redis has a command of this name for values other than strings.
fn is_of_other_types(name: &[u8]) -> bool {
    let families: [&[u8]; 14] = [
        b"lpush", b"rpush", b"lpop", b"rpop", b"lrange", b"llen", b"hset", b"hget", b"hmset",
        b"hdel", b"hscan", b"sscan", b"zscan", b"xread",
    ];
    let prefixes: [&[u8]; 9] = [b"hm", b"hg", b"hk", b"hv", b"sa", b"sm", b"sr", b"z", b"x"];
    let name = name.to_ascii_lowercase();
    families.contains(&name.as_slice()) || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_reported_with_what_followed_it() {
        let text_of =
            |name: &[u8], words: &[&[u8]]| Failure::unknown_command(name, words).to_string();
        assert_eq!(
            text_of(b"foo", &[b"a", b"b c"]),
            "ERR unknown command 'foo', with args beginning with: 'a' 'b c' "
        );
        let long = text_of(&[b'x'; 1_000], &[&[b'y'; 1_000], b"z"]);
        assert!(
            long.len() < 500 && !long.contains('z') && long.contains("keeps strings"),
            "{long}"
        );
        assert!(text_of(b"LPUSH", &[b"l", b"v"]).ends_with("are not supported)"));
    }

    #[test]
    fn clients_repeat_a_command_only_if_it_was_not_executed() {
        // Codes after which go-redis and other clients repeat the command.
        let repeated =
            ["TRYAGAIN", "NOREPLICAS", "CLUSTERDOWN", "LOADING", "READONLY", "MASTERDOWN"];
        let code = |error: SubmitError| {
            let text = Failure::from(error).to_string();
            text.split(' ').next().map(str::to_owned).unwrap_or_default()
        };
        assert_eq!(code(SubmitError::Unconfirmed), "UNCONFIRMED");
        assert!(!repeated.contains(&code(SubmitError::Unconfirmed).as_str()));
        for error in [SubmitError::NoLog, SubmitError::Upgrading] {
            assert_eq!(code(error), "TRYAGAIN");
        }
    }
}
