//! Key of a bucket with its value, in memory.

use std::sync::atomic::{AtomicBool, Ordering};

use rows::Stamp;
use smallvec::SmallVec;
use triomphe::ThinArc;

use crate::bucket::Space;
use crate::limits::KEY_BYTES_MAX;

/// A key with its value, expiry and version, or the mark that it was removed. Clones share the memory, so a reader can
/// keep a long value without copying it.
///
/// Each row is a single allocation of 32 bytes, the key, the value, and 8 bytes if it expires. A million rows must not
/// take more memory than in Redis.
#[derive(Clone)]
pub struct KeyRow(ThinArc<Head, u8>);

struct Head {
    version: Stamp,
    space: Space,
    /// Length of the key in bytes, minus 1.
    key_rest: u16,
    kind: Kind,
    /// Whether the row was read since it was last considered for eviction.
    used: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Removed,
    Stays,
    Expires,
}

/// Parts of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyParts<'a> {
    /// Space of the key's bucket.
    pub space: Space,
    /// The key: 1 to [`KEY_BYTES_MAX`] bytes.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Time of expiry, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// Version: time and command of the last change.
    pub version: Stamp,
}

impl KeyRow {
    /// Creates the row of an existing key.
    ///
    /// # Panics
    /// If the key is empty or longer than [`KEY_BYTES_MAX`]: such commands are refused before they are applied.
    #[must_use]
    pub fn new(parts: KeyParts<'_>) -> Self {
        let kind = if parts.expires_ms.is_some() { Kind::Expires } else { Kind::Stays };
        let mut bytes =
            SmallVec::<[u8; 256]>::with_capacity(parts.key.len() + parts.value.len() + 8);
        bytes.extend_from_slice(parts.key);
        bytes.extend_from_slice(parts.value);
        bytes.extend(parts.expires_ms.into_iter().flat_map(u64::to_le_bytes));
        Self::with_kind(kind, &parts, &bytes)
    }

    /// Creates the mark that the key was removed.
    ///
    /// # Panics
    /// If the key is empty or longer than [`KEY_BYTES_MAX`].
    #[must_use]
    pub fn removed(space: Space, key: &[u8], version: Stamp) -> Self {
        let parts = KeyParts { space, key, value: &[], expires_ms: None, version };
        Self::with_kind(Kind::Removed, &parts, key)
    }

    fn with_kind(kind: Kind, parts: &KeyParts<'_>, bytes: &[u8]) -> Self {
        let (1..=KEY_BYTES_MAX, Some(Ok(key_rest))) =
            (parts.key.len(), parts.key.len().checked_sub(1).map(u16::try_from))
        else {
            panic!("a key has 1 to {KEY_BYTES_MAX} bytes, not {}", parts.key.len());
        };
        let (version, space) = (parts.version, parts.space);
        let head = Head { version, space, key_rest, kind, used: AtomicBool::new(true) };
        Self(ThinArc::from_header_and_slice(head, bytes))
    }

    fn head(&self) -> &Head {
        &self.0.header.header
    }

    /// The key, and the bytes after it.
    fn split(&self) -> (&[u8], &[u8]) {
        self.0.slice.split_at(usize::from(self.head().key_rest) + 1)
    }

    /// Space of the key's bucket.
    #[must_use]
    pub fn space(&self) -> Space {
        self.head().space
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.split().0
    }

    /// The value; empty for a removed key.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        let (_, rest) = self.split();
        match self.head().kind {
            Kind::Expires => rest.split_last_chunk::<8>().map_or(rest, |(value, _)| value),
            Kind::Removed | Kind::Stays => rest,
        }
    }

    /// Time of expiry, in milliseconds since 1970.
    #[must_use]
    pub fn expires_ms(&self) -> Option<u64> {
        let expires = self.head().kind == Kind::Expires;
        expires
            .then(|| self.split().1.last_chunk().map(|bytes| u64::from_le_bytes(*bytes)))
            .flatten()
    }

    /// Version: time and command of the last change. Different after every change of the key.
    #[must_use]
    pub fn version(&self) -> Stamp {
        self.head().version
    }

    /// Whether the row only marks that the key was removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.head().kind == Kind::Removed
    }

    /// Whether the key is live at `now_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        let now_ms = now_ms - u64::from(rows::has_bug("show-expired-key"));
        !self.is_removed() && self.expires_ms().is_none_or(|expires| now_ms < expires)
    }

    /// All parts. A removed key has an empty value.
    #[must_use]
    pub fn parts(&self) -> KeyParts<'_> {
        KeyParts {
            space: self.space(),
            key: self.key(),
            value: self.value(),
            expires_ms: self.expires_ms(),
            version: self.version(),
        }
    }

    /// Size of key and value, in bytes.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        (self.key().len() + self.value().len()) as u64
    }

    /// Approximate memory of the row, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        const FIXED: usize = size_of::<Head>() + 2 * size_of::<usize>();
        (FIXED + self.0.slice.len()).next_multiple_of(16)
    }

    /// Address in memory, for prefetching. Nothing is read from it.
    #[must_use]
    pub fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Marks the row as read. Does not write a flag that is already set, so that threads that read the same key do not
    /// compete for its cache line.
    pub fn touch(&self) {
        let used = &self.head().used;
        if !used.load(Ordering::Relaxed) {
            used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the row was read since the last call.
    #[must_use]
    pub fn take_used(&self) -> bool {
        self.head().used.swap(false, Ordering::Relaxed)
    }
}

impl PartialEq for KeyRow {
    fn eq(&self, other: &Self) -> bool {
        self.is_removed() == other.is_removed() && self.parts() == other.parts()
    }
}

impl Eq for KeyRow {}

impl std::fmt::Debug for KeyRow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = if self.is_removed() { "Removed" } else { "KeyRow" };
        let text =
            |bytes: &[u8]| bytes.escape_ascii().take(200).map(char::from).collect::<String>();
        out.debug_struct(name)
            .field("space", &self.space().0)
            .field("key", &text(self.key()))
            .field("value", &text(self.value()))
            .field("expires_ms", &self.expires_ms())
            .field("version", &self.version().0)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_returns_the_parts_it_was_made_of() {
        let longest = vec![7; KEY_BYTES_MAX];
        for key in [&b"k"[..], b"\0\xff", &longest] {
            for value in [&b""[..], b"12345678", &[0; 5_000]] {
                for expires_ms in [None, Some(0), Some(u64::MAX)] {
                    let (space, version) = (Space(3), Stamp(9));
                    let parts = KeyParts { space, key, value, expires_ms, version };
                    let row = KeyRow::new(parts);
                    assert_eq!(row.parts(), parts);
                    assert_eq!(row.is_live(5), expires_ms.is_none_or(|at| at > 5));
                }
            }
        }
        let removed = KeyRow::removed(Space(3), b"12345678", Stamp(9));
        assert_eq!((removed.key(), removed.value()), (&b"12345678"[..], &b""[..]));
        assert!(!removed.is_live(0) && removed.expires_ms().is_none());
    }

    #[test]
    fn a_short_row_takes_at_most_32_bytes_in_addition_to_its_contents() {
        assert_eq!(size_of::<Head>(), 16);
        assert_eq!(size_of::<KeyRow>(), 8);
    }
}
