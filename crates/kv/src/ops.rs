//! Many operations on keys, in order, as the log stores them: a client's pipeline, a transaction, or operations
//! of several clients at the same time.

use rows::Cost;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::op::KeyOp;

/// Operations one after the other, as the log keeps them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KeyOps {
    count: u32,
    bytes: ByteBuf,
    /// The total cost, if it depends only on the operations. Not logged.
    #[serde(skip)]
    cost: KnownCost,
}

/// See [`KeyOps::known_cost`].
#[derive(Clone, Copy, Debug)]
struct KnownCost(Option<Cost>);

/// The cost of operations that are read back is not known; the cost of none is zero.
impl Default for KnownCost {
    fn default() -> Self {
        Self(Some(Cost::default()))
    }
}

/// Compares the operations; their known cost is not compared.
impl PartialEq for KeyOps {
    fn eq(&self, other: &Self) -> bool {
        (self.count, &self.bytes) == (other.count, &other.bytes)
    }
}

impl Eq for KeyOps {}

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
            Err(error) => unreachable!("an operation must serialize into memory: {error}"),
        };
        self.count += 1;
        let cost = op.known_cost();
        self.cost = KnownCost(self.cost.0.and_then(|sum| Some(sum.and(cost?))));
    }

    /// What they cost together, if it does not depend on existing values: nothing has to be looked up then,
    /// and no operation belongs to a transaction.
    #[must_use]
    pub fn known_cost(&self) -> Option<Cost> {
        // Operations that were read from the log have a count and no cost.
        self.cost.0.filter(|cost| cost.rows > 0 || self.count == 0)
    }

    /// Moves all of `other` to the end.
    pub fn append(&mut self, other: &mut Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
        self.cost = KnownCost(None);
        other.clear();
    }

    /// Removes all of them and keeps the memory.
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

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of stamps that they need: one each.
    #[must_use]
    pub fn stamps(&self) -> usize {
        self.len().max(1)
    }

    /// Bytes in memory and in the log.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Checks operations that another program wrote: a newer one may have operations that this one does not know.
    ///
    /// # Errors
    /// If one cannot be read, or there are fewer or more than they say.
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

    /// Reads them back.
    ///
    /// # Panics
    /// While reading, if the bytes are not operations: they were written by [`KeyOps::push`], or
    /// [checked](KeyOps::check).
    pub fn iter(&self) -> impl Iterator<Item = KeyOp<'_>> {
        let mut place = OpPlace::default();
        std::iter::from_fn(move || {
            let (op, next) = self.next(place)?;
            place = next;
            Some(op)
        })
    }

    /// The place after the last operation.
    #[must_use]
    pub fn end(&self) -> OpPlace {
        OpPlace { ops: self.len(), bytes: self.bytes.len() }
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
            Err(error) => panic!("an operation must be readable: {error}"),
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
