//! Many operations on keys, one after the other: what the log keeps of a client's pipeline, of a
//! transaction, or of what several clients sent at the same time.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::op::KeyOp;

/// Operations one after the other, as the log keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyOps {
    count: u32,
    bytes: ByteBuf,
}

/// A place between two operations of a [`KeyOps`]; the default is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpPlace {
    /// Operations before it.
    pub ops: usize,
    /// Bytes of these.
    bytes: usize,
}

impl KeyOps {
    /// Adds one at the end.
    pub fn push(&mut self, op: &KeyOp<'_>) {
        let bytes = std::mem::take(&mut self.bytes).into_vec();
        self.bytes = match postcard::to_extend(op, bytes) {
            Ok(bytes) => ByteBuf::from(bytes),
            Err(error) => unreachable!("an operation serialises into memory: {error}"),
        };
        self.count += 1;
    }

    /// Moves all of `other` to the end.
    pub fn append(&mut self, other: &mut Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
        other.clear();
    }

    /// Forgets all of them and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many stamps they take: one each.
    #[must_use]
    pub fn stamps(&self) -> usize {
        self.len().max(1)
    }

    /// Bytes in memory and in the log.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Reads them back.
    ///
    /// # Panics
    /// While reading, if the bytes are not operations: they were written by [`KeyOps::push`] and came
    /// through the log's checksum.
    pub fn iter(&self) -> impl Iterator<Item = KeyOp<'_>> {
        let mut place = OpPlace::default();
        std::iter::from_fn(move || {
            let (op, next) = self.next(place)?;
            place = next;
            Some(op)
        })
    }

    /// The operation after `place`, and the place after it.
    ///
    /// # Panics
    /// As [`KeyOps::iter`]; also if `place` is one of other operations.
    #[must_use]
    pub fn next(&self, place: OpPlace) -> Option<(KeyOp<'_>, OpPlace)> {
        if place.ops >= self.len() {
            return None;
        }
        let rest = self.bytes.get(place.bytes..).unwrap_or_default();
        match postcard::take_from_bytes(rest) {
            Ok((op, after)) => {
                let bytes = self.bytes.len() - after.len();
                Some((op, OpPlace { ops: place.ops + 1, bytes }))
            }
            Err(error) => panic!("an operation reads back: {error}"),
        }
    }

    /// Bytes of the operations between two places.
    #[must_use]
    pub fn bytes_between(&self, from: OpPlace, to: OpPlace) -> usize {
        to.bytes - from.bytes
    }

    /// A copy of the operations between two places.
    #[must_use]
    pub fn between(&self, from: OpPlace, to: OpPlace) -> Self {
        let bytes = self.bytes.get(from.bytes..to.bytes).unwrap_or_default();
        Self { count: (to.ops - from.ops) as u32, bytes: ByteBuf::from(bytes) }
    }
}

impl<'a> FromIterator<KeyOp<'a>> for KeyOps {
    fn from_iter<T: IntoIterator<Item = KeyOp<'a>>>(ops: T) -> Self {
        let mut all = Self::default();
        ops.into_iter().for_each(|op| all.push(&op));
        all
    }
}
