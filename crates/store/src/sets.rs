//! Reads of the rows of sets from a keyspace, packed or with one row per item.

use std::iter::Peekable;
use std::vec::IntoIter;

use fjall::Slice;
use rows::{Order, SetTable, Span};

use crate::error::{StoreError, unreadable};
use crate::keyspace::{Keyspace, RowGuard, RowIter};
use crate::layout::{self, PackedRow};
use crate::owners::State;
use crate::packed::{self, Change};

/// Maximum number of deltas that are read one by one, by their keys. More deltas are read as a range, which costs about
/// as much as reading four rows.
const DELTAS_BY_KEY_MAX: u8 = 4;

/// Items of one owner in a keyspace.
#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) table: SetTable,
    pub(crate) owner: u64,
    /// Kinds of rows that the owner may have in the keyspace.
    pub(crate) state: State,
}

impl<'a> Set<'a> {
    /// Returns the number stored with `item`; `None` if there is no such member.
    pub(crate) fn member(self, item: u64) -> Option<u64> {
        if !self.table.is_packed() {
            let row = self.row(&layout::set(self.table, self.owner, item));
            return row.map(|number| layout::decode_number(&number));
        }
        let find = |items: &[Change]| {
            let place = items.binary_search_by_key(&item, |(item, _)| *item).ok()?;
            items.get(place).map(|(_, number)| *number)
        };
        find(&self.deltas()).or_else(|| find(&self.chunk_of(item)?))?
    }

    /// Returns the items between `span.low` and `span.high`, in the order of `span`; some may be marked as removed.
    /// They are read on demand. The caller must apply the limit of `span`.
    pub(crate) fn items(self, span: Span) -> Items<'a> {
        if self.table.is_packed() {
            return Items::Packed(PackedItems::new(self, span));
        }
        let low = layout::set(self.table, self.owner, span.low);
        let high = layout::set(self.table, self.owner, span.high);
        Items::Plain { rows: self.keyspace.range(low..=high), order: span.order }
    }

    fn row(self, key: &[u8]) -> Option<Slice> {
        self.keyspace.get(key).unwrap_or_else(|error| unreadable("reading a set", &error))
    }

    /// Returns the merged deltas, in ascending order.
    ///
    /// Read deltas before chunks: if a checkpoint folds the deltas meanwhile, their items are in the chunks.
    fn deltas(self) -> Vec<Change> {
        let count = self.state.deltas();
        let key = |number| layout::delta(self.table, self.owner, number);
        let mut all = Vec::new();
        let mut add = |row: &[u8]| all = packed::overlay(&items(0, row), &all);
        if count <= DELTAS_BY_KEY_MAX {
            (1..=count).filter_map(|number| self.row(&key(number))).for_each(|row| add(&row));
        } else {
            let rows = self.keyspace.range(key(1)..=key(State::DELTAS_MAX));
            rows.for_each(|row| add(&read(row).1));
        }
        all
    }

    /// Returns the first chunk, if it is certainly the only one.
    fn only_chunk(self) -> Option<Slice> {
        self.row(&layout::chunk(self.table, self.owner, 0)).filter(|row| packed::is_alone(row))
    }

    /// Returns the items of the chunk to which `item` belongs.
    fn chunk_of(self, item: u64) -> Option<Vec<Change>> {
        if let Some(row) = self.only_chunk() {
            return Some(items(0, &row));
        }
        let (low, row) = chunk(self.chunks(0, item).next_back()?);
        Some(items(low, &row))
    }

    /// Returns all rows of a packed set: first the deltas, oldest first, then the chunks.
    pub(crate) fn rows(self) -> RowIter {
        let first = layout::delta(self.table, self.owner, 1);
        let last = layout::chunk(self.table, self.owner, u64::MAX);
        self.keyspace.range(first.as_slice()..=last.as_slice())
    }

    /// Returns the chunks whose low end is between `low` and `high`.
    fn chunks(self, low: u64, high: u64) -> RowIter {
        let key = |low| layout::chunk(self.table, self.owner, low);
        self.keyspace.range(key(low)..=key(high))
    }
}

fn read(row: RowGuard) -> (Slice, Slice) {
    row.into_inner().unwrap_or_else(|error| unreadable("reading a set", &error))
}

/// Returns the low end of a chunk, and its row.
fn chunk(row: RowGuard) -> (u64, Slice) {
    let (key, row) = read(row);
    match layout::read_packed(&key) {
        Some((_, PackedRow::Chunk(low))) => (low, row),
        _ => unreadable(
            "reading a set",
            &StoreError::Damaged("the key of a chunk must have 18 bytes"),
        ),
    }
}

fn items(low: u64, row: &[u8]) -> Vec<Change> {
    let mut items = Vec::new();
    match packed::decode(low, row, &mut items) {
        Some(()) => items,
        None => unreadable("reading a set", &StoreError::Damaged("a row of items is malformed")),
    }
}

/// Items of one owner on disk.
pub(crate) enum Items<'a> {
    /// One row per item.
    Plain { rows: RowIter, order: Order },
    /// Many items per row.
    Packed(PackedItems<'a>),
}

impl Iterator for Items<'_> {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        let (rows, order) = match self {
            Self::Plain { rows, order } => (rows, *order),
            Self::Packed(items) => return items.next(),
        };
        let (key, number) = read(next(rows, order)?);
        let Some(item) = layout::item_of(&key) else {
            unreadable(
                "reading a set",
                &StoreError::Damaged("the key of a set row must have 17 bytes"),
            )
        };
        Some((item, Some(layout::decode_number(&number))))
    }
}

fn next(rows: &mut RowIter, order: Order) -> Option<RowGuard> {
    match order {
        Order::Ascending => rows.next(),
        Order::Descending => rows.next_back(),
    }
}

/// Merged items of deltas and chunks, read chunk by chunk.
pub(crate) struct PackedItems<'a> {
    set: Set<'a>,
    span: Span,
    deltas: Peekable<IntoIter<Change>>,
    /// Items of the chunk that is being read.
    chunk: Peekable<IntoIter<Change>>,
    rest: Rest,
}

/// Chunks that were not read yet.
enum Rest {
    /// All chunks.
    All,
    Some(RowIter),
    None,
}

impl<'a> PackedItems<'a> {
    fn new(set: Set<'a>, span: Span) -> Self {
        let (deltas, chunk) = (within(set.deltas(), span), Vec::new().into_iter().peekable());
        Self { set, span, deltas, chunk, rest: Rest::All }
    }

    /// Reads chunks until one has items within the span.
    fn fill(&mut self) {
        while self.chunk.peek().is_none() {
            let Some((low, row)) = self.next_chunk() else { return };
            self.chunk = within(items(low, &row), self.span);
            if self.span.order == Order::Descending && low <= self.span.low {
                self.rest = Rest::None;
            }
        }
    }

    fn next_chunk(&mut self) -> Option<(u64, Slice)> {
        let Span { low, high, order, .. } = self.span;
        if matches!(self.rest, Rest::All) {
            if let Some(row) = self.set.only_chunk() {
                self.rest = Rest::None;
                return Some((0, row));
            }
            // The chunk before the first one with its low end in the span may also have items in the span.
            let first = match order {
                Order::Ascending if low > 0 => {
                    self.set.chunks(0, low).next_back().map_or(low, |row| chunk(row).0)
                }
                _ => 0,
            };
            self.rest = Rest::Some(self.set.chunks(first, high));
        }
        match &mut self.rest {
            Rest::Some(rows) => next(rows, order).map(chunk),
            _ => None,
        }
    }
}

/// Returns the items within the span, in the order of the span.
fn within(mut items: Vec<Change>, span: Span) -> Peekable<IntoIter<Change>> {
    items.retain(|(item, _)| (span.low..=span.high).contains(item));
    if span.order == Order::Descending {
        items.reverse();
    }
    items.into_iter().peekable()
}

impl Iterator for PackedItems<'_> {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        self.fill();
        let Some((in_chunk, _)) = self.chunk.peek().copied() else { return self.deltas.next() };
        let Some((in_deltas, _)) = self.deltas.peek().copied() else { return self.chunk.next() };
        if in_deltas == in_chunk {
            self.chunk.next();
            return self.deltas.next();
        }
        match (in_deltas < in_chunk, self.span.order) {
            (true, Order::Ascending) | (false, Order::Descending) => self.deltas.next(),
            _ => self.chunk.next(),
        }
    }
}
