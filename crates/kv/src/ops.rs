//! Sequences of operations on keys, as the log stores them: a client's pipeline, a transaction, or simultaneous
//! operations of several clients.

use rows::Cost;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::op::KeyOp;

/// Sequence of operations, as the log stores it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KeyOps {
    count: u32,
    bytes: ByteBuf,
    /// Total cost, if it depends only on the operations. Not logged.
    #[serde(skip)]
    cost: KnownCost,
}

/// Value of [`KeyOps::known_cost`].
#[derive(Clone, Copy, Debug)]
struct KnownCost(Option<Cost>);

/// The default is the cost of no operations. Deserialized operations also have it, and [`KeyOps::known_cost`] ignores
/// it.
impl Default for KnownCost {
    fn default() -> Self {
        Self(Some(Cost::default()))
    }
}

/// Compares the operations only, without their known cost.
impl PartialEq for KeyOps {
    fn eq(&self, other: &Self) -> bool {
        (self.count, &self.bytes) == (other.count, &other.bytes)
    }
}

impl Eq for KeyOps {}

/// Place between two operations of a [`KeyOps`]; the default is the place before the first operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpPlace {
    /// Number of operations before the place.
    pub ops: usize,
    /// Size of the operations before the place, in bytes.
    bytes: usize,
}

impl KeyOps {
    /// Appends an operation.
    pub fn push(&mut self, op: &KeyOp<'_>) {
        let bytes = std::mem::take(&mut self.bytes).into_vec();
        self.bytes = match postcard::to_extend(op, bytes) {
            Ok(bytes) => ByteBuf::from(bytes),
            Err(error) => unreachable!("an operation must serialize into memory: {error}"),
        };
        self.count += 1;
        let cost = op.known_cost();
        self.cost = KnownCost(self.cost.0.and_then(|sum| Some(sum.and(cost?))));
    }

    /// Total cost; `None` if it depends on existing values. If it is known, no key has to be looked up, and no
    /// operation belongs to a transaction.
    #[must_use]
    pub fn known_cost(&self) -> Option<Cost> {
        // Deserialized operations have the default cost, which is not theirs.
        self.cost.0.filter(|cost| cost.rows > 0 || self.count == 0)
    }

    /// Moves all operations of `other` to the end.
    pub fn append(&mut self, other: &mut Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
        self.cost = KnownCost(None);
        other.clear();
    }

    /// Removes all operations, and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.cost = KnownCost::default();
    }

    /// Number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of stamps that the operations need: one each.
    #[must_use]
    pub fn stamps(&self) -> usize {
        self.len().max(1)
    }

    /// Size in memory and in the log, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Checks operations from another program, which may be a newer version with operations that this version does not
    /// know.
    pub fn check(&self) -> Result<(), postcard::Error> {
        let mut rest = self.bytes.as_slice();
        for _ in 0..self.count {
            (_, rest) = postcard::take_from_bytes::<KeyOp<'_>>(rest)?;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(postcard::Error::DeserializeBadEncoding),
        }
    }

    /// Iterates over the operations.
    ///
    /// # Panics
    /// If the bytes are not operations. Bytes written by [`KeyOps::push`] or [checked](KeyOps::check) always are.
    pub fn iter(&self) -> impl Iterator<Item = KeyOp<'_>> {
        let mut place = OpPlace::default();
        std::iter::from_fn(move || {
            let (op, next) = self.next(place)?;
            place = next;
            Some(op)
        })
    }

    /// Place after the last operation.
    #[must_use]
    pub fn end(&self) -> OpPlace {
        OpPlace { ops: self.len(), bytes: self.bytes.len() }
    }

    /// Operation after `place`, and the place after that operation.
    ///
    /// # Panics
    /// Like [`KeyOps::iter`]; also if `place` belongs to other operations.
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
            Err(error) => panic!("an operation must be readable: {error}"),
        }
    }

    /// Size of the operations between two places, in bytes.
    #[must_use]
    pub fn bytes_between(&self, from: OpPlace, to: OpPlace) -> usize {
        to.bytes - from.bytes
    }

    /// Copies the operations between two places.
    #[must_use]
    pub fn between(&self, from: OpPlace, to: OpPlace) -> Self {
        let bytes = self.bytes.get(from.bytes..to.bytes).unwrap_or_default();
        let (count, cost) = ((to.ops - from.ops) as u32, KnownCost(None));
        Self { count, bytes: ByteBuf::from(bytes), cost }
    }
}

impl<'a> FromIterator<KeyOp<'a>> for KeyOps {
    fn from_iter<T: IntoIterator<Item = KeyOp<'a>>>(ops: T) -> Self {
        let mut all = Self::default();
        ops.into_iter().for_each(|op| all.push(&op));
        all
    }
}
