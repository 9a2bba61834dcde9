//! Reading the recognizer's samples.

use std::sync::Arc;

use feed::{Sample, SampleId, SetName};
use knn::Samples;

use super::Node;
use crate::views::samples::TooManySnapshots;

impl Node {
    /// Returns a snapshot of a set's samples, which never changes, or `None` if the set does not exist. Waits at most
    /// while a few samples are added.
    ///
    /// # Errors
    /// [`TooManySnapshots`]; try again later.
    pub fn samples(&self, set: &SetName) -> Result<Option<Arc<Samples>>, TooManySnapshots> {
        self.shared.samples.get(set)
    }

    /// Returns snapshots of all sets, sorted by name.
    ///
    /// # Errors
    /// [`TooManySnapshots`]; try again later.
    pub fn sample_sets(&self) -> Result<Vec<(SetName, Arc<Samples>)>, TooManySnapshots> {
        self.shared.samples.all()
    }

    /// Returns a taught or built-in sample. May block.
    #[must_use]
    pub fn sample(&self, id: SampleId) -> Option<Sample> {
        if id.is_built_in() { self.shared.samples.built_in(id) } else { self.facts().sample(id) }
    }
}
