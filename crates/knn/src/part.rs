//! A part of the samples: as many as a scan looks at together.
//!
//! **Invariant:** the last block has the lanes of positions that exist; lanes behind them may hold
//! anything and are never told. No id is outside `low..=high`.

use crate::bits::Bits;
use crate::samples::Label;
use crate::scan::{Block, Chunk, LANES};

/// Vectors, ids and labels, side by side.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    blocks: Vec<Block>,
    ids: Vec<u64>,
    labels: Vec<Label>,
    low: u64,
    high: u64,
}

impl Default for Part {
    fn default() -> Self {
        let (blocks, ids, labels) = (Vec::new(), Vec::new(), Vec::new());
        Self { blocks, ids, labels, low: u64::MAX, high: 0 }
    }
}

impl Part {
    pub(crate) fn is_full(&self) -> bool {
        self.ids.len() >= Chunk::SAMPLES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether the two together fill at most half a part.
    pub(crate) fn is_half_with(&self, other: &Self) -> bool {
        self.ids.len() + other.ids.len() <= Chunk::SAMPLES / 2
    }

    pub(crate) fn push(&mut self, id: u64, label: Label, bits: &Bits) {
        let (block, lane) = (self.ids.len() / LANES, self.ids.len() % LANES);
        if block == self.blocks.len() {
            self.blocks.push(Block::default());
        }
        self.block(block).put(lane, bits);
        self.ids.push(id);
        self.labels.push(label);
        (self.low, self.high) = (self.low.min(id), self.high.max(id));
    }

    /// Takes in all samples of `other`.
    pub(crate) fn append(&mut self, other: &Self) {
        for (id, label, bits) in other.iter() {
            self.push(id, label, &bits);
        }
    }

    /// Where the sample with this id is, if it is here.
    pub(crate) fn position(&self, id: u64) -> Option<usize> {
        let may_be_here = (self.low..=self.high).contains(&id);
        if may_be_here { self.ids.iter().position(|other| *other == id) } else { None }
    }

    /// Removes the sample at a position that exists and tells its label. The last one takes its place.
    pub(crate) fn remove(&mut self, at: usize) -> Label {
        let last = self.ids.len() - 1;
        let moved = self.block(last / LANES).take(last % LANES);
        self.block(at / LANES).put(at % LANES, &moved);
        self.blocks.truncate(last.div_ceil(LANES));
        self.ids.swap_remove(at);
        self.labels.swap_remove(at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Label, Bits)> {
        let lanes = self.blocks.iter().flat_map(|block| (0..LANES).map(|lane| block.take(lane)));
        let heads = self.ids.iter().zip(&self.labels);
        heads.zip(lanes).map(|((id, label), bits)| (*id, *label, bits))
    }

    pub(crate) fn chunk(&self) -> Chunk<'_> {
        Chunk { blocks: &self.blocks, ids: &self.ids, labels: &self.labels }
    }

    fn block(&mut self, index: usize) -> &mut Block {
        let Some(block) = self.blocks.get_mut(index) else {
            unreachable!("there is a block for every eight positions")
        };
        block
    }
}
