//! Reading the recogniser's samples.

use std::sync::Arc;

use feed::{Label, Sample, SampleId, SetName};
use knn::Samples;

use super::Node;

impl Node {
    /// The samples of a set as they stand now: a snapshot, which never changes. Waits for no more than
    /// some samples being put in.
    #[must_use]
    pub fn samples(&self, set: &SetName) -> Option<Arc<Samples>> {
        self.shared.samples.get(set)
    }

    /// All sets, by name, as [`Node::samples`] gives them.
    #[must_use]
    pub fn sample_sets(&self) -> Vec<(SetName, Arc<Samples>)> {
        self.shared.samples.all()
    }

    /// A sample that was taught or is built in. May block.
    #[must_use]
    pub fn sample(&self, id: SampleId) -> Option<Sample> {
        if !id.is_built_in() {
            return self.facts().sample(id);
        }
        let set = SetName::digits();
        let digits = self.samples(&set)?;
        let (_, label, bits) = digits.iter().find(|sample| sample.0 == id.0)?;
        let Ok(label) = Label::parse(digits.name(label)) else {
            unreachable!("the labels of the digits are digits")
        };
        Some(Sample { set, label, bits: bits.to_bytes().into() })
    }
}
