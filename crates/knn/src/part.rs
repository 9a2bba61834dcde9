//! Part of the samples, at most as many as one chunk of a scan.
//!
//! **Invariant:** lanes of the last block after the last sample have arbitrary content, which is never returned. No id
//! is outside `low..=high`.

use std::mem::size_of;

use crate::bits::Bits;
use crate::labels::Label;
use crate::meter::{Counted, Meter};
use crate::scan::{Block, Chunk, LANES};

/// Spare capacity up to which a part does not shrink, in addition to an eighth of its samples.
const SPARE: usize = 128;

/// Vectors, ids and labels in parallel lists.
#[derive(Debug)]
pub(crate) struct Part {
    blocks: Vec<Block>,
    ids: Vec<u64>,
    labels: Vec<Label>,
    low: u64,
    high: u64,
    counted: Counted,
}

/// A clone has capacity for the samples that a change may add.
impl Clone for Part {
    fn clone(&self) -> Self {
        let mut part = Self::new(self.counted.meter());
        part.reserve(self.ids.len());
        part.blocks.extend_from_slice(&self.blocks);
        part.ids.extend_from_slice(&self.ids);
        part.labels.extend_from_slice(&self.labels);
        (part.low, part.high) = (self.low, self.high);
        part
    }
}

impl Part {
    /// Creates a part without samples.
    pub(crate) fn new(meter: &Meter) -> Self {
        let (blocks, ids, labels) = (Vec::new(), Vec::new(), Vec::new());
        Self { blocks, ids, labels, low: u64::MAX, high: 0, counted: Counted::new(meter) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.ids.len() >= Chunk::SAMPLES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether both parts together fill at most half a part.
    pub(crate) fn is_half_with(&self, other: &Self) -> bool {
        self.ids.len() + other.ids.len() <= Chunk::SAMPLES / 2
    }

    pub(crate) fn push(&mut self, id: u64, label: Label, bits: &Bits) {
        let (block, lane) = (self.ids.len() / LANES, self.ids.len() % LANES);
        if self.ids.len() == self.ids.capacity() {
            self.reserve(self.ids.len() + 1);
        }
        if block == self.blocks.len() {
            self.blocks.push(Block::default());
        }
        self.block(block).put(lane, bits);
        self.ids.push(id);
        self.labels.push(label);
        (self.low, self.high) = (self.low.min(id), self.high.max(id));
    }

    /// Adds all samples of `other`.
    pub(crate) fn append(&mut self, other: &Self) {
        for (id, label, bits) in other.iter() {
            self.push(id, label, &bits);
        }
    }

    /// Position of the sample with this id; `None` if this part does not have it.
    pub(crate) fn position(&self, id: u64) -> Option<usize> {
        let may_be_here = (self.low..=self.high).contains(&id);
        if may_be_here { self.ids.iter().position(|other| *other == id) } else { None }
    }

    /// Removes the sample at an existing position, and returns its label. The last sample takes its position.
    pub(crate) fn remove(&mut self, at: usize) -> Label {
        let last = self.ids.len() - 1;
        let moved = self.block(last / LANES).take(last % LANES);
        self.block(at / LANES).put(at % LANES, &moved);
        self.blocks.truncate(last.div_ceil(LANES));
        self.ids.swap_remove(at);
        let label = self.labels.swap_remove(at);
        self.shrink();
        label
    }

    /// Label and vector at an existing position.
    pub(crate) fn sample(&self, at: usize) -> (Label, Bits) {
        let (Some(label), Some(block)) = (self.labels.get(at), self.blocks.get(at / LANES)) else {
            unreachable!("a position that was found")
        };
        (*label, block.take(at % LANES))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Label, Bits)> {
        let lanes = self.blocks.iter().flat_map(|block| (0..LANES).map(|lane| block.take(lane)));
        let heads = self.ids.iter().zip(&self.labels);
        heads.zip(lanes).map(|((id, label), bits)| (*id, *label, bits))
    }

    pub(crate) fn chunk(&self) -> Chunk<'_> {
        Chunk { blocks: &self.blocks, ids: &self.ids, labels: &self.labels }
    }

    /// Reserves capacity for `len` samples and an eighth more. A list that grows by itself would double its capacity.
    fn reserve(&mut self, len: usize) {
        let room = roomy(len);
        self.blocks.reserve_exact((room / LANES).saturating_sub(self.blocks.len()));
        self.ids.reserve_exact(room.saturating_sub(self.ids.len()));
        self.labels.reserve_exact(room.saturating_sub(self.labels.len()));
        self.count();
    }

    /// Shrinks the lists if much of their capacity is unused.
    fn shrink(&mut self) {
        let len = self.ids.len();
        if self.ids.capacity() > len + len / 8 + SPARE {
            let room = roomy(len);
            self.blocks.shrink_to(room / LANES);
            self.ids.shrink_to(room);
            self.labels.shrink_to(room);
            self.count();
        }
    }

    fn count(&mut self) {
        let lists = self.blocks.capacity() * size_of::<Block>()
            + self.ids.capacity() * size_of::<u64>()
            + self.labels.capacity() * size_of::<Label>();
        self.counted.set(size_of::<Self>() + lists);
    }

    fn block(&mut self, index: usize) -> &mut Block {
        let Some(block) = self.blocks.get_mut(index) else {
            unreachable!("there is a block for every eight positions")
        };
        block
    }
}

/// Capacity to reserve for `len` samples: whole blocks, at most those of a full part.
fn roomy(len: usize) -> usize {
    (len + len / 8).next_multiple_of(LANES).min(Chunk::SAMPLES.max(len.next_multiple_of(LANES)))
}
