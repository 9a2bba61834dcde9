//! Keys that clients send so that a repeated request does not make its change twice.

use feed::{Command, Idempotency, limits};
use sha2::{Digest as _, Sha256};

/// Idempotency key of a client: 1 to 255 ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(Box<[u8]>);

impl IdempotencyKey {
    /// Parses a key; `None` if it is empty, too long, or has characters other than visible ones and spaces between
    /// them. (Spaces around the value of a header are removed before.)
    #[must_use]
    pub fn parse(key: &[u8]) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        let right_length = (1..=limits::IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len());
        let is_valid = right_length && key.trim_ascii() == key && key.iter().all(is_plain);
        is_valid.then(|| Self(key.into()))
    }

    /// Returns digests of the key for one kind of change to one resource, and of the content of the command. `scope`
    /// has no zero byte, and the users of the command are resolved.
    #[must_use]
    pub fn digest(&self, scope: &str, command: &Command) -> Idempotency {
        let mut key = Sha256::new();
        // No part contains a zero byte, so different parts give different input.
        key.update(scope);
        key.update([0]);
        key.update(&self.0);
        let Ok(content) = serde_json::to_vec(command) else {
            unreachable!("a command can be serialized into memory");
        };
        Idempotency { key: first(&key.finalize()), content: first(&Sha256::digest(content)) }
    }
}

fn first<const N: usize>(digest: &[u8]) -> [u8; N] {
    let Some(first) = digest.first_chunk() else {
        unreachable!("a SHA-256 digest is longer than what is kept of it");
    };
    *first
}

#[cfg(test)]
mod tests {
    use feed::{UserId, UserRef};

    use super::*;

    fn follow(user: u32, other: u32) -> Command {
        let [user, other] = [user, other].map(|id| UserRef::Id(UserId(id)));
        Command::Follow { user, other }
    }

    #[test]
    fn a_key_is_valid_for_one_scope_and_one_content() {
        let digest = |key: &str, scope, other| {
            IdempotencyKey::parse(key.as_bytes()).unwrap().digest(scope, &follow(1, other))
        };
        let first = digest("k", "s", 2);
        assert_eq!(first, digest("k", "s", 2));
        let content = digest("k", "s", 3);
        assert!(first.key == content.key && first.content != content.content);
        for other in [digest("l", "s", 2), digest("k", "t", 2), digest("sk", "", 2)] {
            assert_ne!(first.key, other.key);
        }
    }

    /// Digests must not change: otherwise a retry after an upgrade would not find the result of its first attempt.
    #[test]
    fn the_digest_of_a_command_stays_what_it_is() {
        let digest = IdempotencyKey::parse(b"k").unwrap().digest("s", &follow(1, 2));
        let json = r#"{"Follow":{"user":{"Id":1},"other":{"Id":2}}}"#;
        assert_eq!(digest.content, first(&Sha256::digest(json)));
    }

    #[test]
    fn malformed_keys_are_refused() {
        for (key, fine) in [
            ("k", true),
            ("a b", true),
            (" a", false),
            ("a ", false),
            (" ", false),
            ("", false),
            ("a\tb", false),
            ("caf\u{e9}", false),
        ] {
            assert_eq!(IdempotencyKey::parse(key.as_bytes()).is_some(), fine, "{key:?}");
        }
        let of_length = |bytes| IdempotencyKey::parse(&vec![b'k'; bytes]).is_some();
        assert!(of_length(255) && !of_length(256));
    }
}
