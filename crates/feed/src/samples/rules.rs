//! Adding and deleting samples.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{SampleId, SampleSetId};
use crate::limits;
use crate::refusal::Refusal;
use crate::samples::{Sample, SampleSet};

pub(crate) fn add(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    sample: &Sample,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let id = SampleId(stamp.0);
    if id.is_built_in() {
        // This is possible only in the first millisecond of stamps.
        return Err(Refusal::SampleBuiltIn);
    }
    let set = match txn.facts().sample_set(&sample.set) {
        Some(set) => set,
        None if txn.facts().sample_sets().count() >= limits::SAMPLE_SETS_MAX => {
            return Err(Refusal::TooManySets);
        }
        None => SampleSet { id: SampleSetId(stamp.0), samples: 0, labels: 0 },
    };
    if set.samples >= limits::SET_SAMPLES_MAX {
        return Err(Refusal::SetFull);
    }
    let is_new = txn.facts().samples_labelled(set.id, &sample.label) == 0;
    if is_new && set.labels >= limits::SET_LABELS_MAX {
        return Err(Refusal::TooManyLabels);
    }
    txn.put_sample(id, sample, set);
    effects.push(Effect::Sample { set: set.id, sample: id, is_added: true });
    Ok(Done::SampleAdded { sample: id })
}

pub(crate) fn delete(txn: &mut Txn<'_>, id: SampleId, effects: &mut Vec<Effect>) -> Outcome {
    if id.is_built_in() {
        return Err(Refusal::SampleBuiltIn);
    }
    let sample = txn.facts().sample(id).ok_or(Refusal::SampleNotFound)?;
    let Some(set) = txn.facts().sample_set(&sample.set) else {
        unreachable!("a set exists as long as it has samples")
    };
    txn.remove_sample(id, &sample, set);
    effects.push(Effect::Sample { set: set.id, sample: id, is_added: false });
    Ok(Done::SampleDeleted)
}
