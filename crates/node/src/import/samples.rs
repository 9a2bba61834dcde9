//! Import of samples and their sets.

use std::collections::BTreeMap;

use feed::limits::{SAMPLE_SETS_MAX, SET_LABELS_MAX, SET_SAMPLES_MAX};
use feed::{Label, Refusal, SampleId, SampleSet, SampleSetId, SetName, write};
use store::Loader;

use super::Wrong;
use super::ids::{Ids, Rising};
use crate::export::bytes::from_hex;
use crate::export::lines::Sample;

/// Sets that were read. Limits bound their number and that of their labels.
#[derive(Default)]
pub(super) struct Samples {
    ids: Rising,
    sets: BTreeMap<SetName, (SampleSet, BTreeMap<Label, u32>)>,
}

impl Samples {
    pub(super) fn add(
        &mut self,
        loader: &mut Loader,
        ids: &mut Ids,
        line: &Sample<'_>,
    ) -> Result<(), Wrong> {
        let id = SampleId(ids.next(&mut self.ids, line.id, line.time)?);
        let (name, label) = (SetName::parse(&line.set)?, Label::parse(&line.label)?);
        let bits: [u8; 128] =
            from_hex(&line.sample).ok_or("a sample must have 256 hexadecimal digits")?;
        if !self.sets.contains_key(&name) && self.sets.len() >= SAMPLE_SETS_MAX {
            return Err(Refusal::TooManySets.into());
        }
        let empty = SampleSet { id: SampleSetId(id.0), samples: 0, labels: 0 };
        let (set, labels) =
            self.sets.entry(name.clone()).or_insert_with(|| (empty, BTreeMap::new()));
        if set.samples >= SET_SAMPLES_MAX {
            return Err(Refusal::SetFull.into());
        }
        if !labels.contains_key(&label) && set.labels >= SET_LABELS_MAX {
            return Err(Refusal::TooManyLabels.into());
        }
        set.samples += 1;
        *labels.entry(label.clone()).or_insert(0) += 1;
        set.labels = labels.len() as u32;
        let sample = feed::Sample { set: name, label, bits: bits.into() };
        write::sample(loader, id, &sample, set.id);
        Ok(())
    }

    /// Writes the sets.
    pub(super) fn finish(self, loader: &mut Loader) {
        for (name, (set, labels)) in self.sets {
            write::sample_set(loader, &name, set);
            for (label, samples) in labels {
                write::sample_label(loader, set.id, &label, samples);
            }
        }
    }
}
