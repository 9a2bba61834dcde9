//! Labelled vectors, packed so that a scan reads them once, in order, eight at a time.
//!
//! [`Samples`] owns vectors, ids and labels in parallel lists: what stands at one position belongs
//! together. **Invariant:** the last block has the lanes of positions that exist; lanes behind them
//! may hold anything and are never told.

use std::collections::BTreeMap;

use crate::bits::Bits;
use crate::nearest::{K, Neighbour};
use crate::scan::{Block, Chunk, InstructionSet, LANES, Scan, Unavailable};

/// A label: a place in the table of names of the [`Samples`] that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(u32);

/// Labelled vectors.
#[derive(Clone, Debug)]
pub struct Samples {
    blocks: Vec<Block>,
    ids: Vec<u64>,
    labels: Vec<Label>,
    names: Vec<Named>,
    by_name: BTreeMap<Box<str>, Label>,
    scan: Scan,
}

#[derive(Clone, Debug)]
struct Named {
    name: Box<str>,
    count: usize,
}

impl Default for Samples {
    fn default() -> Self {
        Self::new()
    }
}

impl Samples {
    /// No samples yet. They will be scanned with the best instructions of this processor.
    #[must_use]
    pub fn new() -> Self {
        Self {
            blocks: Vec::new(),
            ids: Vec::new(),
            labels: Vec::new(),
            names: Vec::new(),
            by_name: BTreeMap::new(),
            scan: Scan::best(),
        }
    }

    /// Scans with these instructions from now on. The answers are the same.
    ///
    /// # Errors
    /// This processor does not have them.
    pub fn scan_with(&mut self, instructions: InstructionSet) -> Result<(), Unavailable> {
        self.scan = Scan::with(instructions)?;
        Ok(())
    }

    /// The instructions in use.
    #[must_use]
    pub fn instructions(&self) -> InstructionSet {
        self.scan.instructions()
    }

    /// How many samples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds a sample. Ids are the caller's, who gives each one once.
    ///
    /// # Panics
    /// If there are 2^32 different labels.
    pub fn push(&mut self, id: u64, name: &str, bits: &Bits) {
        let (block, lane) = (self.len() / LANES, self.len() % LANES);
        if block == self.blocks.len() {
            self.blocks.push(Block::default());
        }
        let label = self.intern(name);
        self.named(label).count += 1;
        self.block(block).put(lane, bits);
        self.ids.push(id);
        self.labels.push(label);
    }

    /// Removes the sample with this id; `false` if there is none. The last sample takes its place.
    /// Takes time in proportion to the number of samples, to find it.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some(at) = self.ids.iter().position(|other| *other == id) else { return false };
        let last = self.len() - 1;
        let moved = self.block(last / LANES).take(last % LANES);
        self.block(at / LANES).put(at % LANES, &moved);
        self.blocks.truncate(last.div_ceil(LANES));
        self.ids.swap_remove(at);
        let label = self.labels.swap_remove(at);
        self.named(label).count -= 1;
        true
    }

    /// Every sample: its id, label and vector, in no promised order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Label, Bits)> {
        let lanes = self.blocks.iter().flat_map(|block| (0..LANES).map(|lane| block.take(lane)));
        let heads = self.ids.iter().zip(&self.labels);
        heads.zip(lanes).map(|((id, label), bits)| (*id, *label, bits))
    }

    /// The name of a label.
    ///
    /// # Panics
    /// If other samples gave the label.
    #[must_use]
    pub fn name(&self, label: Label) -> &str {
        let Some(named) = self.names.get(label.0 as usize) else {
            unreachable!("a label is of the samples that gave it")
        };
        &named.name
    }

    /// The names in use with the number of their samples, in the order of the names.
    pub fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        let named = self.by_name.values().filter_map(|label| self.names.get(label.0 as usize));
        named.filter(|named| named.count > 0).map(|named| (&*named.name, named.count))
    }

    /// Puts the `k` samples nearest to `query` into `out`, nearest first, those of the same distance
    /// by id; fewer if there are fewer. Exact: every sample is compared. What `out` held is gone; it is the
    /// only memory used and grows to `k` once.
    pub fn nearest(&self, query: &Bits, k: K, out: &mut Vec<Neighbour>) {
        out.clear();
        for chunk in self.chunks() {
            self.scan.search(query, &chunk, k, out);
        }
    }

    /// [`Samples::nearest`] for each of `queries`: `out` gets as many lists. Samples stay in the nearest
    /// cache while all queries are compared with them.
    pub fn nearest_batch(&self, queries: &[Bits], k: K, out: &mut Vec<Vec<Neighbour>>) {
        out.resize_with(queries.len(), Vec::new);
        out.iter_mut().for_each(Vec::clear);
        for chunk in self.chunks() {
            for (query, found) in queries.iter().zip(&mut *out) {
                self.scan.search(query, &chunk, k, found);
            }
        }
    }

    fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        let heads = self.ids.chunks(Chunk::SAMPLES).zip(self.labels.chunks(Chunk::SAMPLES));
        let chunks = self.blocks.chunks(Chunk::BLOCKS).zip(heads);
        chunks.map(|(blocks, (ids, labels))| Chunk { blocks, ids, labels })
    }

    fn intern(&mut self, name: &str) -> Label {
        if let Some(label) = self.by_name.get(name) {
            return *label;
        }
        let Ok(place) = u32::try_from(self.names.len()) else {
            unreachable!("as many names do not fit into memory")
        };
        self.names.push(Named { name: name.into(), count: 0 });
        self.by_name.insert(name.into(), Label(place));
        Label(place)
    }

    fn named(&mut self, label: Label) -> &mut Named {
        let Some(named) = self.names.get_mut(label.0 as usize) else {
            unreachable!("names are never removed")
        };
        named
    }

    fn block(&mut self, index: usize) -> &mut Block {
        let Some(block) = self.blocks.get_mut(index) else {
            unreachable!("there is a block for every eight positions")
        };
        block
    }
}
