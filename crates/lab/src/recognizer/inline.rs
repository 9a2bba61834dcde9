//! Distances computed by the task that was asked, with the instructions of one kind: no boundary at all.

use std::sync::Arc;

use knn::{Bits, InstructionSet, Samples, Unavailable};

use crate::recognizer::{Design, NEIGHBORS, Nearest};

/// The samples, with the instructions to scan them.
#[derive(Clone)]
pub(super) struct Inline(Arc<Samples>);

impl Inline {
    /// With these instructions.
    ///
    /// # Errors
    /// This processor does not have them.
    pub(super) fn with(instructions: InstructionSet) -> Result<Self, Unavailable> {
        let mut samples = knn::digits();
        samples.scan_with(instructions)?;
        Ok(Self(Arc::new(samples)))
    }

    /// With the best instructions that this processor has.
    pub(super) fn best() -> Self {
        Self(Arc::new(knn::digits()))
    }

    /// Computes the answer.
    pub(super) fn compute(&self, query: &Bits) -> Nearest {
        let mut nearest = Vec::new();
        self.0.nearest(query, NEIGHBORS, &mut nearest);
        nearest.into_iter().map(|neighbor| (neighbor.distance, neighbor.id)).collect()
    }
}

impl Design for Inline {
    async fn nearest(&self, query: Bits) -> Nearest {
        self.compute(&query)
    }
}
