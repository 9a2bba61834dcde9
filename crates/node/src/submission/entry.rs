//! Entries of the log and their encoding: the payload of a group is a sequence of entries.
//!
//! An entry of the feed is a [`Request`] in postcard encoding: an optional idempotency key, the number of the command,
//! its fields. Other entries have no idempotency key, and a one-byte number that no command has.

use feed::{Idempotency, Request};
use kv::KeyOps;
use postcard::ser_flavors::Size;
use serde::{Deserialize, Serialize};

/// Mark of operations on keys, in place of the number of a command.
const KEYS: u32 = 127;
/// Mark of the limit of samples.
const SAMPLE_BYTES: u32 = 126;
/// Mark of the status of a node.
const STATUS: u32 = 125;
/// Mark of the origin of a group.
const ORIGIN: u32 = 124;

/// Status that a node reports about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Position up to which the node needs no group.
    pub(crate) checkpoint: u64,
    /// Position of the digest.
    pub(crate) position: u64,
    pub(crate) digest: u64,
    /// Version of commands that the node can apply; see [`crate::submission::versions`].
    pub(crate) commands: u32,
    /// Identifier of the rules by which the node applies commands.
    pub(crate) rules: u64,
}

/// Origin of a group in a log of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Identifier of the rules that made the acknowledged outcomes; see [`crate::submission::versions::rules`].
    pub(crate) rules: u64,
    /// Digest of the outcomes of the previous group; `None` if an earlier process applied that group.
    pub(crate) outcomes_before: Option<u64>,
}

/// Entry of the log.
#[derive(Debug)]
pub(crate) enum Entry {
    /// Command of the feed. Takes one stamp.
    Feed(Request),
    /// Operations on keys of buckets. Takes one stamp per operation.
    Kv(KeyOps),
    /// Maximum size of samples in bytes, by the settings of the node. Only in a shared log, before the first sample
    /// that a group adds. Takes no stamp.
    SampleBytes(u64),
    /// Status of the node. Only in a shared log. Takes no stamp.
    Status(Status),
    /// Origin of the group, its first entry. Only in a log of one node. Takes no stamp.
    Origin(Origin),
}

impl Entry {
    /// Returns the number of stamps that the entry takes.
    pub(crate) fn stamps(&self) -> usize {
        match self {
            Self::Feed(_) => 1,
            Self::Kv(ops) => ops.stamps(),
            Self::SampleBytes(_) | Self::Status(_) | Self::Origin(_) => 0,
        }
    }

    /// Appends the encoded entry to `bytes`.
    pub(crate) fn write(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Feed(request) => extend(request, bytes),
            Self::Kv(ops) => extend(&(None::<Idempotency>, KEYS, ops), bytes),
            Self::SampleBytes(max) => extend(&(None::<Idempotency>, SAMPLE_BYTES, max), bytes),
            Self::Status(status) => extend(&(None::<Idempotency>, STATUS, status), bytes),
            Self::Origin(origin) => extend(&(None::<Idempotency>, ORIGIN, origin), bytes),
        }
    }

    /// Decodes the first entry of `bytes`; returns the rest.
    ///
    /// # Errors
    /// The bytes are not an entry, which the checksum of the log makes very unlikely.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, &[u8]), postcard::Error> {
        let (idempotency, rest) = postcard::take_from_bytes::<Option<Idempotency>>(bytes)?;
        let (number, rest) = postcard::take_from_bytes::<u32>(rest)?;
        if (idempotency, number) == (None, KEYS) {
            let (ops, rest) = postcard::take_from_bytes(rest)?;
            return Ok((Self::Kv(ops), rest));
        }
        if (idempotency, number) == (None, SAMPLE_BYTES) {
            let (max, rest) = postcard::take_from_bytes(rest)?;
            return Ok((Self::SampleBytes(max), rest));
        }
        if (idempotency, number) == (None, STATUS) {
            let (status, rest) = postcard::take_from_bytes(rest)?;
            return Ok((Self::Status(status), rest));
        }
        if (idempotency, number) == (None, ORIGIN) {
            let (origin, rest) = postcard::take_from_bytes(rest)?;
            return Ok((Self::Origin(origin), rest));
        }
        let (request, rest) = postcard::take_from_bytes(bytes)?;
        Ok((Self::Feed(request), rest))
    }
}

/// Returns the origin of a group with this payload; `None` if it has none that this program can read.
pub(crate) fn origin_of(payload: &[u8]) -> Option<Origin> {
    match Entry::read(payload) {
        Ok((Entry::Origin(origin), _)) => Some(origin),
        _ => None,
    }
}

/// Returns the size of [`Entry::Feed`] with this request, in bytes.
pub(crate) fn request_bytes(request: &Request) -> usize {
    match postcard::serialize_with_flavor(request, Size::default()) {
        Ok(bytes) => bytes,
        Err(error) => unreachable!("a request serializes: {error}"),
    }
}

fn extend<T: Serialize>(entry: &T, bytes: Vec<u8>) -> Vec<u8> {
    match postcard::to_extend(entry, bytes) {
        Ok(bytes) => bytes,
        Err(error) => unreachable!("an entry serializes into memory: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use feed::{Command, ErasurePhase, SampleId, UserId, UserRef};
    use kv::{BucketId, Bytes, KeyOp};

    use super::*;

    /// Logs contain these bytes, so they are written out here.
    #[test]
    fn entries_of_logs_have_these_bytes() {
        let ops =
            [KeyOp::Remove { bucket: BucketId(3), keys: vec![Bytes::new(b"ab")] }, KeyOp::Sweep];
        let keys = Entry::Kv(ops.into_iter().collect());
        let key = Idempotency { key: [7; 16], content: [9; 8] };
        let forget = Command::DeleteSample { sample: SampleId(300) };
        let plain = Entry::Feed(forget.clone().into());
        let delete = Entry::Feed(Command::DeleteUser { user: UserRef::Id(UserId(9)) }.into());
        let (user, phase, from) = (UserId(9), ErasurePhase::LAST, 300);
        let erase = Entry::Feed(Command::EraseUser { user, phase, from }.into());
        let once = Entry::Feed(Request { idempotency: Some(key), command: forget });
        let once_bytes = [&[1][..], &[7; 16], &[9; 8], &[11, 0xac, 2]].concat();
        // Two operations of 7 bytes together: the first has a number, a bucket and a key of two bytes; the second only
        // a number.
        let keys_bytes = [0, 127, 2, 7, 2, 3, 1, 2, b'a', b'b', 18];
        let cases = [
            (plain, &[0, 11, 0xac, 2][..]),
            (once, &once_bytes),
            (keys, &keys_bytes),
            (delete, &[0, 12, 0, 9]),
            (erase, &[0, 13, 9, 0, 0xac, 2]),
            (Entry::SampleBytes(300), &[0, 126, 0xac, 2]),
            (
                Entry::Status(Status {
                    checkpoint: 300,
                    position: 5,
                    digest: 6,
                    commands: 7,
                    rules: 8,
                }),
                &[0, 125, 0xac, 2, 5, 6, 7, 8],
            ),
            (
                Entry::Origin(Origin { rules: 300, outcomes_before: Some(5) }),
                &[0, 124, 0xac, 2, 1, 5],
            ),
        ];
        for (entry, bytes) in cases {
            assert_eq!(entry.write(Vec::new()), bytes, "{entry:?}");
            if let Entry::Feed(request) = &entry {
                assert_eq!(request_bytes(request), bytes.len());
            }
            let followed = [bytes, b"next"].concat();
            let (read, rest) = Entry::read(&followed).unwrap();
            assert_eq!((read.write(Vec::new()).as_slice(), rest), (bytes, &b"next"[..]));
        }
    }

    #[test]
    fn bytes_that_are_no_entry_are_refused() {
        let ops_once = [&[1][..], &[7; 24], &[127, 0, 0]].concat();
        for bytes in
            [&[][..], &[0], &[2], &[0, 127], &[0, 127, 1, 3, 0], &[0, 0xff, 0xff, 3], &ops_once]
        {
            assert!(Entry::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
