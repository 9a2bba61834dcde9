//! The recognizer's samples in memory: a view of the facts, and the built-in digits.
//!
//! A reader takes a snapshot of a set and searches it without a lock: taking the snapshot only raises a reference count
//! under a lock. So a change never waits for a search. If a reader holds a snapshot during a change, the change first
//! copies a part of at most 4,096 samples (0.6 MB). Other readers may wait for such a copy and for 64 changes.
//!
//! **Invariant:** all sets and snapshots together fit into the memory for samples. The sets may take a third of it: the
//! sequencer refuses more samples. Snapshots are given out only while sets and snapshots take at most two thirds. The
//! last third is enough for one more copy of the sets, which then share nothing with any snapshot.

use std::sync::Arc;

use feed::limits::{SAMPLE_SETS_MAX, SET_LABELS_MAX};
use feed::{Effect, Facts, Label, Sample, SampleId, SampleSetId, SetName};
use knn::{Bits, LABEL_BYTES, LABEL_PLACE_BYTES, Meter, SAMPLE_BYTES, SET_BYTES, Samples};
use parking_lot::RwLock;
use rows::Rows;

/// Maximum size of all sets in addition to the taught samples, in bytes: the built-in digits, and the free space of
/// each set.
const SETS_BYTES: usize = 5 << 20;
/// Minimum memory for samples in bytes: enough for the built-in digits alone.
pub const SAMPLE_MEMORY_MIN: usize = 3 * SETS_BYTES;
/// Maximum memory of a sample with a new label, in bytes.
pub(crate) const TAUGHT_BYTES: usize = SAMPLE_BYTES + LABEL_BYTES;

const _: () = {
    let set = SET_BYTES + SET_LABELS_MAX as usize * LABEL_PLACE_BYTES;
    let digits = 2_339 * SAMPLE_BYTES + 10 * LABEL_BYTES;
    assert!((SAMPLE_SETS_MAX + 1) * set + digits <= SETS_BYTES);
};

/// Returns the maximum size in bytes of all taught samples, if samples and snapshots together may take `sample_memory`.
pub(crate) fn taught_bytes_max(sample_memory: usize) -> usize {
    (sample_memory / 3).saturating_sub(SETS_BYTES)
}

/// Returns the memory for samples, in bytes, into which `taught` bytes fit.
pub(crate) fn memory_for(taught: usize) -> usize {
    3 * (taught + SETS_BYTES)
}

/// Returns the maximum size of the taught samples in bytes, without [`SETS_BYTES`]. Reads a row or two of each set.
pub(crate) fn taught_bytes<R: Rows + ?Sized>(facts: Facts<'_, R>) -> usize {
    let of_set = |set: feed::SampleSet| {
        set.samples as usize * SAMPLE_BYTES + set.labels as usize * LABEL_BYTES
    };
    facts.sample_sets().map(of_set).sum()
}

/// Error: the snapshots in use hold all the memory that snapshots may take. Try again after some are dropped.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("running searches use too much memory for earlier states of the samples")]
pub struct TooManySnapshots;

/// Number of effects that are applied per lock. They share one copy of a part, and a reader waits for at most so many.
const PIECE: usize = 64;

/// All sets of samples. Only the writer changes them.
pub(crate) struct SampleSets {
    sets: RwLock<Vec<Set>>,
    /// Size of all sets and of all their snapshots.
    meter: Meter,
    /// Size above which no snapshot is given out, in bytes.
    snapshot_bytes_max: usize,
}

struct Set {
    name: SetName,
    /// Id of the set in the facts, if any of its samples were taught.
    id: Option<SampleSetId>,
    samples: Arc<Samples>,
}

enum Change {
    Add(SampleSetId, SampleId, Box<Sample>),
    Remove(SampleSetId, SampleId),
}

impl SampleSets {
    /// Loads the samples of the facts, which [`taught_bytes_max`] bounds. Blocks. Reads them in one scan, because
    /// single look-ups take several times as long.
    pub(crate) fn load<R: Rows + ?Sized>(facts: Facts<'_, R>, sample_memory: usize) -> Self {
        let meter = Meter::default();
        let mut samples = Samples::counted_by(&meter);
        let digits = knn::digits();
        digits.iter().for_each(|(id, label, bits)| samples.push(id, digits.name(label), &bits));
        let samples = Arc::new(samples);
        let mut sets = vec![Set { name: SetName::digits(), id: None, samples }];
        facts.each_sample(|id, sample| {
            let set = set_named(&mut sets, &sample.set, &meter);
            set.id = set.id.or_else(|| facts.sample_set(&sample.set).map(|known| known.id));
            set.push(id, &sample);
        });
        Self { sets: RwLock::new(sets), meter, snapshot_bytes_max: sample_memory / 3 * 2 }
    }

    /// Applies the effects of a group. Called by the writer only, after the facts have the group.
    pub(crate) fn apply<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, effects: &[Effect]) {
        for piece in effects.chunks(PIECE) {
            let changes: Vec<_> =
                piece.iter().filter_map(|effect| Change::of(facts, effect)).collect();
            if !changes.is_empty() {
                let mut sets = self.sets.write();
                changes.into_iter().for_each(|change| change.apply(&mut sets, &self.meter));
            }
        }
    }

    /// Returns the size of all sets in bytes, including what snapshots hold.
    pub(crate) fn bytes(&self) -> usize {
        self.meter.bytes()
    }

    /// Returns a snapshot of a set, which never changes; `None` if the set does not exist. Waits at most while a few
    /// samples are added.
    pub(crate) fn get(&self, name: &SetName) -> Result<Option<Arc<Samples>>, TooManySnapshots> {
        self.share(|sets| {
            sets.iter().find(|known| known.name == *name).map(|set| Arc::clone(&set.samples))
        })
    }

    /// Returns snapshots of all sets, sorted by name.
    pub(crate) fn all(&self) -> Result<Vec<(SetName, Arc<Samples>)>, TooManySnapshots> {
        let shared = |set: &Set| (set.name.clone(), Arc::clone(&set.samples));
        let mut sets: Vec<_> = self.share(|sets| sets.iter().map(shared).collect())?;
        sets.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(sets)
    }

    /// Returns a built-in sample.
    pub(crate) fn built_in(&self, id: SampleId) -> Option<Sample> {
        let set = SetName::digits();
        let sets = self.sets.read();
        let digits = &sets.iter().find(|known| known.name == set)?.samples;
        let (label, bits) = digits.sample(id.0)?;
        let Ok(label) = Label::parse(digits.name(label)) else {
            unreachable!("the labels of the digits are digits")
        };
        Some(Sample { set, label, bits: bits.to_bytes().into() })
    }

    /// Returns the result of `read` for the sets, which do not change while it runs.
    fn share<T>(&self, read: impl FnOnce(&[Set]) -> T) -> Result<T, TooManySnapshots> {
        let sets = self.sets.read();
        // Only the writer adds bytes, and the writer waits for this lock.
        if self.meter.bytes() > self.snapshot_bytes_max {
            return Err(TooManySnapshots);
        }
        Ok(read(&sets))
    }
}

impl Change {
    fn of<R: Rows + ?Sized>(facts: Facts<'_, R>, effect: &Effect) -> Option<Self> {
        match *effect {
            // The sample is `None` if it was deleted within the same group.
            Effect::Sample { set, sample, is_added: true } => {
                facts.sample(sample).map(|found| Self::Add(set, sample, Box::new(found)))
            }
            Effect::Sample { set, sample, .. } => Some(Self::Remove(set, sample)),
            _ => None,
        }
    }

    fn apply(self, sets: &mut Vec<Set>, meter: &Meter) {
        match self {
            Self::Add(id, sample, taught) => {
                let set = set_named(sets, &taught.set, meter);
                set.id = Some(id);
                set.push(sample, &taught);
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

impl Set {
    fn push(&mut self, id: SampleId, sample: &Sample) {
        let bits = Bits::from_bytes(&sample.bits.into());
        Arc::make_mut(&mut self.samples).push(id.0, sample.label.as_str(), &bits);
    }
}

/// Returns the set of this name, creating it if necessary.
fn set_named<'a>(sets: &'a mut Vec<Set>, name: &SetName, meter: &Meter) -> &'a mut Set {
    let at = sets.iter().position(|set| set.name == *name).unwrap_or_else(|| {
        let samples = Arc::new(Samples::counted_by(meter));
        sets.push(Set { name: name.clone(), id: None, samples });
        sets.len() - 1
    });
    let Some(set) = sets.get_mut(at) else { unreachable!("found or pushed") };
    set
}
