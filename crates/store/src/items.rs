//! Changed items of one owner in memory: an ordered map from items to `Option<u64>` (`None` means removed). While every
//! number is 0, which is nearly always so, it takes 8 bytes per item.
//!
//! Items are in sorted chunks of at most [`CHUNK`] items. If a number in a chunk is not 0, the chunk has a second
//! vector for the numbers. Appending in order fills chunks completely; inserting in random order fills them to about 70
//! %.
//!
//! **Invariants:** Chunks, and the items in them, are in strictly ascending order. No chunk is empty. `low` is at most
//! the chunk's first item, and greater than every item of earlier chunks.

use std::mem::size_of;

use rows::{Order, Span};

/// Maximum number of items in a chunk. An insertion moves 1 KiB on average, which costs less than a cache miss.
const CHUNK: usize = 256;
/// Overhead of the allocator for each allocation, in bytes.
const ALLOCATION: usize = 16;

/// State of a row in a layer: unknown, removed, or a value.
pub(crate) type LayerRow<T> = Option<Option<T>>;

/// Ordered map of one owner's dirty items.
#[derive(Default)]
pub(crate) struct Items {
    chunks: Vec<Chunk>,
}

/// Numbers of present and removed items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) present: usize,
    pub(crate) removed: usize,
}

struct Chunk {
    low: u64,
    items: Vec<u64>,
    /// Code of each item: 0 if it is removed, otherwise the number plus 1. Empty while every item is present and has
    /// the number 0.
    codes: Vec<u64>,
}

const PLAIN: u64 = 1;

fn encode(state: Option<u64>) -> u64 {
    state.map_or(0, |number| {
        assert!(number < u64::MAX, "a set row's number leaves room for one more state");
        number + 1
    })
}

impl Chunk {
    fn empty(low: u64) -> Self {
        Self { low, items: Vec::new(), codes: Vec::new() }
    }

    fn state(&self, place: usize) -> Option<u64> {
        self.codes.get(place).copied().unwrap_or(PLAIN).checked_sub(1)
    }

    /// Sets an item. Returns its previous code, if there was one.
    fn put(&mut self, item: u64, code: u64) -> Option<u64> {
        if code != PLAIN && self.codes.is_empty() {
            self.codes = vec![PLAIN; self.items.len()];
        }
        match self.items.binary_search(&item) {
            Ok(place) => match self.codes.get_mut(place) {
                Some(old) => Some(std::mem::replace(old, code)),
                None => Some(PLAIN),
            },
            Err(place) => {
                if code != PLAIN || !self.codes.is_empty() {
                    self.codes.insert(place, code);
                }
                self.items.insert(place, item);
                self.low = self.low.min(item);
                None
            }
        }
    }

    /// Removes the upper half and returns it.
    fn split(&mut self) -> Self {
        let middle = self.items.len() / 2;
        let items = self.items.split_off(middle);
        let codes = self.codes.split_off(middle.min(self.codes.len()));
        let low = items.first().copied().unwrap_or(self.low);
        Self { low, items, codes }
    }

    fn bytes(&self) -> usize {
        let vectors = usize::from(!self.items.is_empty()) + usize::from(!self.codes.is_empty());
        (self.items.capacity() + self.codes.capacity()) * size_of::<u64>() + vectors * ALLOCATION
    }
}

impl Items {
    /// Returns the index of the chunk to which `item` belongs.
    fn chunk_of(&self, item: u64) -> usize {
        self.chunks.partition_point(|chunk| chunk.low <= item).saturating_sub(1)
    }

    /// Loads the memory that a change of a high item needs into the processor's cache.
    pub(crate) fn touch(&self) -> u64 {
        self.chunks.last().and_then(|chunk| chunk.items.last()).copied().unwrap_or_default()
    }

    /// Returns the state of `item`: unknown, removed, or a number.
    pub(crate) fn find(&self, item: u64) -> Option<Option<u64>> {
        let chunk = self.chunks.get(self.chunk_of(item))?;
        chunk.items.binary_search(&item).ok().map(|place| chunk.state(place))
    }

    /// Makes the state of `item` unknown. Returns whether no item is left.
    pub(crate) fn forget(&mut self, item: u64) -> bool {
        let at = self.chunk_of(item);
        if let Some(chunk) = self.chunks.get_mut(at)
            && let Ok(place) = chunk.items.binary_search(&item)
        {
            chunk.items.remove(place);
            if !chunk.codes.is_empty() {
                chunk.codes.remove(place);
            }
            if chunk.items.is_empty() {
                self.chunks.remove(at);
            }
        }
        self.chunks.is_empty()
    }

    /// Sets `item`. Returns the growth of memory in bytes, and the previous state.
    pub(crate) fn put(&mut self, item: u64, state: Option<u64>) -> (usize, LayerRow<u64>) {
        let list = self.chunks.capacity();
        let (at, split_off) = self.room_for(item);
        let Some(chunk) = self.chunks.get_mut(at) else { unreachable!("room was just made") };
        let before = chunk.bytes();
        let old = chunk.put(item, encode(state)).map(|code| code.checked_sub(1));
        let growth = chunk.bytes() - before;
        let list_growth = (self.chunks.capacity() - list) * size_of::<Chunk>();
        let first = if list == 0 { ALLOCATION } else { 0 };
        (growth + list_growth + first + split_off, old)
    }

    /// Returns the index of a chunk that has `item` or room for it. To make room, a chunk may be split; also returns
    /// the size of the new chunk in bytes.
    fn room_for(&mut self, item: u64) -> (usize, usize) {
        let at = self.chunk_of(item);
        let count = self.chunks.len();
        let Some(chunk) = self.chunks.get_mut(at) else {
            // Reserve capacity for exactly one chunk, because most owners never need a second one.
            self.chunks.reserve_exact(1);
            self.chunks.push(Chunk::empty(item));
            return (0, 0);
        };
        if chunk.items.len() < CHUNK || chunk.items.binary_search(&item).is_ok() {
            return (at, 0);
        }
        if at + 1 == count && chunk.items.last() < Some(&item) {
            // Items that arrive in ascending order fill the last chunk before another begins.
            self.chunks.push(Chunk::empty(item));
            return (at + 1, 0);
        }
        let upper = chunk.split();
        let (above, bytes) = (item >= upper.low, upper.bytes());
        self.chunks.insert(at + 1, upper);
        (at + usize::from(above), bytes)
    }

    /// Returns the numbers of present and removed items.
    pub(crate) fn shape(&self) -> Shape {
        let mut shape = Shape::default();
        for chunk in &self.chunks {
            let removed = chunk.codes.iter().filter(|code| **code == 0).count();
            shape.removed += removed;
            shape.present += chunk.items.len() - removed;
        }
        shape
    }

    /// Returns every item in order, including removed ones.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, Option<u64>)> {
        self.between(0, u64::MAX)
    }

    /// Appends the items within `span` to `found`, in the order of `span`, including removed items.
    pub(crate) fn range(&self, span: Span, found: &mut Vec<(u64, Option<u64>)>) {
        let items = self.between(span.low, span.high);
        match span.order {
            Order::Ascending => found.extend(items.take(span.limit)),
            Order::Descending => found.extend(items.rev().take(span.limit)),
        }
    }

    fn between(&self, low: u64, high: u64) -> impl DoubleEndedIterator<Item = (u64, Option<u64>)> {
        let last = (self.chunk_of(high) + 1).min(self.chunks.len());
        let chunks = self.chunks.get(self.chunk_of(low)..last).unwrap_or_default();
        chunks.iter().flat_map(move |chunk| {
            let from = chunk.items.partition_point(|item| *item < low);
            let to = chunk.items.partition_point(|item| *item <= high);
            let items = chunk.items.get(from..to).unwrap_or_default().iter().copied();
            items.enumerate().map(move |(place, item)| (item, chunk.state(from + place)))
        })
    }
}
