//! Designs in which the requesting task itself computes the distances, with one instruction set.

use std::sync::Arc;

use knn::{Bits, InstructionSet, Samples, Unavailable};

use crate::recognizer::{Design, NEIGHBORS, Nearest};

/// Samples with the instruction set to scan them.
#[derive(Clone)]
pub(super) struct Inline(Arc<Samples>);

impl Inline {
    /// Uses the given instruction set.
    ///
    /// # Errors
    /// If this processor does not have the instruction set.
    pub(super) fn with(instructions: InstructionSet) -> Result<Self, Unavailable> {
        let mut samples = knn::digits();
        samples.scan_with(instructions)?;
        Ok(Self(Arc::new(samples)))
    }

    /// Uses the best instruction set of this processor.
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
