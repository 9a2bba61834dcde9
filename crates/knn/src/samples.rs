//! Labeled vectors, packed so that a scan reads them once, in order, eight at a time.
//!
//! [`Samples`] keeps them in [`Part`]s, which own vectors, ids and labels in parallel lists: the entries at
//! one position belong together. Parts are shared by clones until one of them is changed, so a clone is a
//! cheap snapshot, and a change while one exists copies one part.
//!
//! **Invariant:** two adjacent parts together are more than half as long as the longest part, so there are few
//! parts, whatever was removed.

use std::sync::Arc;

use crate::bits::Bits;
use crate::labels::{Label, Labels};
use crate::meter::Meter;
use crate::nearest::{K, Neighbor};
use crate::part::Part;
use crate::scan::{InstructionSet, Scan, Unavailable};

/// Bytes that a sample takes at most: 140, and what its part has free.
pub const SAMPLE_BYTES: usize = 176;
/// Bytes that [`Samples`] take at most beside that, and beside their labels.
pub const SET_BYTES: usize = 24 << 10;

/// Labeled vectors. A clone shares the vectors, and copies the names of the labels.
#[derive(Clone, Debug)]
pub struct Samples {
    parts: Vec<Arc<Part>>,
    len: usize,
    labels: Labels,
    meter: Meter,
    scan: Scan,
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
        Self::counted_by(&Meter::default())
    }

    /// The same, and `meter` counts what they hold.
    #[must_use]
    pub fn counted_by(meter: &Meter) -> Self {
        let (parts, labels) = (Vec::new(), Labels::new(meter));
        Self { parts, len: 0, labels, meter: meter.clone(), scan: Scan::best() }
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

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a sample. Ids are the caller's, who gives each one once.
    ///
    /// # Panics
    /// If there are 2^32 different labels.
    pub fn push(&mut self, id: u64, name: &str, bits: &Bits) {
        let label = self.labels.add(name);
        self.len += 1;
        if self.parts.last().is_none_or(|part| part.is_full()) {
            self.parts.push(Arc::new(Part::new(&self.meter)));
        }
        let Some(part) = self.parts.last_mut() else { unreachable!("one was pushed") };
        Arc::make_mut(part).push(id, label, bits);
    }

    /// Removes the sample with this id; `false` if there is none. Finding it is cheapest if ids were
    /// given in rising order.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some((at, position)) = self.position(id) else { return false };
        let label = self.part(at).remove(position);
        self.len -= 1;
        if self.part(at).is_empty() {
            self.parts.remove(at);
        }
        self.merge(at);
        if let Some(before) = at.checked_sub(1) {
            self.merge(before);
        }
        self.labels.release(label);
        true
    }

    /// The label and vector of the sample with this id. As expensive as [`Samples::remove`].
    #[must_use]
    pub fn sample(&self, id: u64) -> Option<(Label, Bits)> {
        let (at, position) = self.position(id)?;
        self.parts.get(at).map(|part| part.sample(position))
    }

    /// Every sample: its id, label and vector, in no promised order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Label, Bits)> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// The name of a label.
    ///
    /// # Panics
    /// If other samples gave the label.
    #[must_use]
    pub fn name(&self, label: Label) -> &str {
        let Some(name) = self.labels.name(label) else {
            unreachable!("a label is of the samples that gave it")
        };
        name
    }

    /// The names in use with the number of their samples, in the order of the names.
    pub fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.labels.counts()
    }

    /// Puts the `k` samples nearest to `query` into `out`, nearest first, those of the same distance
    /// by id; fewer if there are fewer. Exact: every sample is compared. Clears `out` first; it is the only
    /// memory used and grows to `k` once.
    pub fn nearest(&self, query: &Bits, k: K, out: &mut Vec<Neighbor>) {
        out.clear();
        for part in &self.parts {
            self.scan.search(query, &part.chunk(), k, out);
        }
    }

    /// [`Samples::nearest`] for each of `queries`: `out` gets as many lists. Samples stay in the nearest
    /// cache while all queries are compared with them.
    pub fn nearest_batch(&self, queries: &[Bits], k: K, out: &mut Vec<Vec<Neighbor>>) {
        out.resize_with(queries.len(), Vec::new);
        out.iter_mut().for_each(Vec::clear);
        for part in &self.parts {
            for (query, found) in queries.iter().zip(&mut *out) {
                self.scan.search(query, &part.chunk(), k, found);
            }
        }
    }

    /// Puts two parts together if they would leave half of one free.
    fn merge(&mut self, at: usize) {
        let (Some(part), Some(next)) = (self.parts.get(at), self.parts.get(at + 1)) else { return };
        if part.is_half_with(next) {
            let next = self.parts.remove(at + 1);
            self.part(at).append(&next);
        }
    }

    /// The part that has the sample with this id, and where in it.
    fn position(&self, id: u64) -> Option<(usize, usize)> {
        let mut parts = self.parts.iter().enumerate();
        parts.find_map(|(at, part)| Some((at, part.position(id)?)))
    }

    fn part(&mut self, at: usize) -> &mut Part {
        let Some(part) = self.parts.get_mut(at) else { unreachable!("a part that was found") };
        Arc::make_mut(part)
    }
}
