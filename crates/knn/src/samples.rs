//! Labeled vectors, stored in the order in which a scan reads them, eight at a time.
//!
//! [`Samples`] consists of [`Part`]s, which store vectors, ids and labels in parallel lists: the entries at one
//! position belong together. Clones share a part until one of them changes it. So a clone is a cheap snapshot, and a
//! change while a clone exists copies only one part.
//!
//! **Invariant:** two adjacent parts together are more than half as long as a full part, so few parts remain after many
//! removals.

use std::sync::Arc;

use crate::bits::Bits;
use crate::labels::{Label, Labels};
use crate::meter::Meter;
use crate::nearest::{K, Neighbor};
use crate::part::Part;
use crate::scan::{InstructionSet, Scan, Unavailable};

/// Maximum memory per sample, in bytes: 140, plus spare capacity of its part.
pub const SAMPLE_BYTES: usize = 176;
/// Maximum memory of [`Samples`] in addition to samples and labels, in bytes.
pub const SET_BYTES: usize = 24 << 10;

/// Labeled vectors. A clone shares the vectors, but copies the names of the labels.
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
    /// Creates an empty set, which is scanned with the best instructions of this processor.
    #[must_use]
    pub fn new() -> Self {
        Self::counted_by(&Meter::default())
    }

    /// Creates an empty set whose memory `meter` counts.
    #[must_use]
    pub fn counted_by(meter: &Meter) -> Self {
        let (parts, labels) = (Vec::new(), Labels::new(meter));
        Self { parts, len: 0, labels, meter: meter.clone(), scan: Scan::best() }
    }

    /// Scans with these instructions from now on. The instructions do not change the results.
    ///
    /// # Errors
    /// If this processor does not have the instructions.
    pub fn scan_with(&mut self, instructions: InstructionSet) -> Result<(), Unavailable> {
        self.scan = Scan::with(instructions)?;
        Ok(())
    }

    /// Instructions with which the samples are scanned.
    #[must_use]
    pub fn instructions(&self) -> InstructionSet {
        self.scan.instructions()
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a sample. The caller chooses the ids, which must be unique.
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

    /// Removes the sample with this id; returns `false` if there is none. The search for the id is fastest if ids were
    /// added in ascending order.
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

    /// Label and vector of the sample with this id. The search for the id takes as long as in [`Samples::remove`].
    #[must_use]
    pub fn sample(&self, id: u64) -> Option<(Label, Bits)> {
        let (at, position) = self.position(id)?;
        self.parts.get(at).map(|part| part.sample(position))
    }

    /// All samples (id, label and vector) in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Label, Bits)> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// Name of a label.
    ///
    /// # Panics
    /// If the label belongs to other samples.
    #[must_use]
    pub fn name(&self, label: Label) -> &str {
        let Some(name) = self.labels.name(label) else {
            unreachable!("a label is of the samples that gave it")
        };
        name
    }

    /// Names in use with the number of their samples, in ascending order.
    pub fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.labels.counts()
    }

    /// Writes the `k` samples nearest to `query` into `out`, or all samples if there are fewer. They are sorted by
    /// distance, then by id. The result is exact: every sample is compared. `out` is cleared first; it is the only
    /// memory that the search allocates.
    pub fn nearest(&self, query: &Bits, k: K, out: &mut Vec<Neighbor>) {
        out.clear();
        for part in &self.parts {
            self.scan.search(query, &part.chunk(), k, out);
        }
    }

    /// Runs [`Samples::nearest`] for each of `queries`, and writes one list per query into `out`. Each chunk of samples
    /// stays in the processor's cache while all queries are compared with it.
    pub fn nearest_batch(&self, queries: &[Bits], k: K, out: &mut Vec<Vec<Neighbor>>) {
        out.resize_with(queries.len(), Vec::new);
        out.iter_mut().for_each(Vec::clear);
        for part in &self.parts {
            for (query, found) in queries.iter().zip(&mut *out) {
                self.scan.search(query, &part.chunk(), k, found);
            }
        }
    }

    /// Merges two adjacent parts if they together fill at most half a part.
    fn merge(&mut self, at: usize) {
        let (Some(part), Some(next)) = (self.parts.get(at), self.parts.get(at + 1)) else { return };
        if part.is_half_with(next) {
            let next = self.parts.remove(at + 1);
            self.part(at).append(&next);
        }
    }

    /// Index of the part that contains the sample, and position of the sample in that part.
    fn position(&self, id: u64) -> Option<(usize, usize)> {
        let mut parts = self.parts.iter().enumerate();
        parts.find_map(|(at, part)| Some((at, part.position(id)?)))
    }

    fn part(&mut self, at: usize) -> &mut Part {
        let Some(part) = self.parts.get_mut(at) else { unreachable!("a part that was found") };
        Arc::make_mut(part)
    }
}
