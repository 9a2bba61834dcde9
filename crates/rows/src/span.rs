//! Range of an owner's items, and the order in which it is read.

/// Order in which a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest item first.
    Ascending,
    /// Largest item first.
    Descending,
}

/// Range of an owner's items: `low..=high`, at most `limit` of them, read in the order of `order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Smallest item of the range.
    pub low: u64,
    /// Largest item of the range.
    pub high: u64,
    /// Maximum number of items.
    pub limit: usize,
    /// Direction of reading.
    pub order: Order,
}

impl Span {
    /// All items, ascending.
    pub const ALL: Self =
        Self { low: 0, high: u64::MAX, limit: usize::MAX, order: Order::Ascending };

    /// Returns the span of the largest items less than `before`, largest first.
    #[must_use]
    pub fn below(before: Option<u64>, limit: usize) -> Option<Self> {
        let high = match before {
            None => u64::MAX,
            Some(before) => before.checked_sub(1)?,
        };
        Some(Self { low: 0, high, limit, order: Order::Descending })
    }

    /// Returns the span of the smallest items greater than `after`, smallest first.
    #[must_use]
    pub fn above(after: u64, limit: usize) -> Option<Self> {
        let low = after.checked_add(1)?;
        Some(Self { low, high: u64::MAX, limit, order: Order::Ascending })
    }

    /// Returns the rest of the span after `last`, the last item read, with another limit.
    #[must_use]
    pub fn beyond(self, last: u64, limit: usize) -> Option<Self> {
        let rest = match self.order {
            Order::Descending => Self { high: last.checked_sub(1)?, limit, ..self },
            Order::Ascending => Self { low: last.checked_add(1)?, limit, ..self },
        };
        (rest.low <= rest.high).then_some(rest)
    }

    /// Returns the part of the span before `end`.
    #[must_use]
    pub fn until(self, end: u64) -> Option<Self> {
        let part = match self.order {
            Order::Descending => Self { low: self.low.max(end.checked_add(1)?), ..self },
            Order::Ascending => Self { high: self.high.min(end.checked_sub(1)?), ..self },
        };
        (part.low <= part.high).then_some(part)
    }
}
