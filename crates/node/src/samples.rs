//! The recogniser's samples in memory: a view of the facts, and the digits that every server has.
//!
//! A reader takes a snapshot of a set, which costs a count under a lock held for a moment, and searches it
//! without any lock for as long as it likes. A change under way therefore waits for no reader; if a
//! snapshot is held meanwhile, it copies a part of at most 4,096 samples (0.6 MB) first, and that is what
//! a reader may wait for. A sample takes 140 bytes, so the limits bound all of it.

use std::sync::Arc;

use feed::{Effect, Facts, Sample, SampleId, SampleSetId, SetName};
use knn::{Bits, Samples};
use parking_lot::RwLock;
use rows::{Rows, Span};

/// Changes made under one lock: one copy serves them all, and a reader waits for no more of them.
const PIECE: usize = 64;

/// Every set there is. The writer changes it.
pub(crate) struct SampleSets(RwLock<Vec<Set>>);

struct Set {
    name: SetName,
    /// Of the samples that were taught, if there are any.
    id: Option<SampleSetId>,
    samples: Arc<Samples>,
}

enum Change {
    Add(SampleSetId, SampleId, Box<Sample>),
    Remove(SampleSetId, SampleId),
}

impl SampleSets {
    /// What the facts hold. Blocks.
    pub(crate) fn load<R: Rows + ?Sized>(facts: Facts<'_, R>) -> Self {
        let samples = Arc::new(knn::digits());
        let mut sets = vec![Set { name: SetName::digits(), id: None, samples }];
        for set in facts.sample_sets() {
            for id in facts.samples_of(set.id, Span::ALL) {
                let Some(sample) = facts.sample(id) else {
                    unreachable!("a sample of a set stands")
                };
                Change::Add(set.id, id, Box::new(sample)).apply(&mut sets);
            }
        }
        Self(RwLock::new(sets))
    }

    /// Takes in what a group of commands did. Writer only; the facts hold it already.
    pub(crate) fn take_in<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, effects: &[Effect]) {
        for piece in effects.chunks(PIECE) {
            let changes: Vec<_> =
                piece.iter().filter_map(|effect| Change::of(facts, effect)).collect();
            if !changes.is_empty() {
                let mut sets = self.0.write();
                changes.into_iter().for_each(|change| change.apply(&mut sets));
            }
        }
    }

    /// The samples of a set as they are now: a snapshot, which never changes. Waits for no more than
    /// some samples being put in.
    pub(crate) fn get(&self, name: &SetName) -> Option<Arc<Samples>> {
        let sets = self.0.read();
        sets.iter().find(|known| known.name == *name).map(|set| Arc::clone(&set.samples))
    }

    /// All sets, by name, as [`SampleSets::get`] gives them.
    pub(crate) fn all(&self) -> Vec<(SetName, Arc<Samples>)> {
        let sets = self.0.read();
        let shared = |set: &Set| (set.name.clone(), Arc::clone(&set.samples));
        let mut sets: Vec<_> = sets.iter().map(shared).collect();
        sets.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        sets
    }
}

impl Change {
    fn of<R: Rows + ?Sized>(facts: Facts<'_, R>, effect: &Effect) -> Option<Self> {
        match *effect {
            // Forgotten within the same group, it is not there any more.
            Effect::Taught { set, sample } => {
                facts.sample(sample).map(|found| Self::Add(set, sample, Box::new(found)))
            }
            Effect::SampleForgotten { set, sample } => Some(Self::Remove(set, sample)),
            _ => None,
        }
    }

    fn apply(self, sets: &mut Vec<Set>) {
        match self {
            Self::Add(id, sample, taught) => {
                let at = sets.iter().position(|set| set.name == taught.set);
                let at = at.unwrap_or_else(|| {
                    let (name, samples) = (taught.set.clone(), Arc::default());
                    sets.push(Set { name, id: None, samples });
                    sets.len() - 1
                });
                let Some(set) = sets.get_mut(at) else { unreachable!("found or pushed") };
                set.id = Some(id);
                let bits = Bits::from_bytes(&taught.bits.into());
                Arc::make_mut(&mut set.samples).push(sample.0, taught.label.as_str(), &bits);
            }
            Self::Remove(id, sample) => {
                if let Some(set) = sets.iter_mut().find(|set| set.id == Some(id)) {
                    Arc::make_mut(&mut set.samples).remove(sample.0);
                    sets.retain(|set| !set.samples.is_empty());
                }
            }
        }
    }
}
