//! Facts about sets of labelled samples.
//!
//! **Invariant:** a set exists as long as it has samples, and its counts equal the numbers of its samples and labels.

use rows::{NameTable, PointTable, Rows, SetTable, Span, decode};

use crate::facts::{Facts, Txn};
use crate::ids::{SampleId, SampleSetId};
use crate::samples::{Sample, SampleSet};
use crate::text::{Label, SetName};
use crate::{index, write};

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Added sample with this id.
    #[must_use]
    pub fn sample(&self, sample: SampleId) -> Option<Sample> {
        self.rows.point(PointTable::Sample, sample.0).map(|row| decode(&row))
    }

    /// Calls `each` with every added sample, in the order of ids. Reads all of them in one scan.
    pub fn each_sample(&self, mut each: impl FnMut(SampleId, Sample)) {
        let each = &mut |id, row: &[u8]| each(SampleId(id), decode(row));
        self.rows.each_point(PointTable::Sample, each);
    }

    /// Set with this name, if it has added samples.
    #[must_use]
    pub fn sample_set(&self, name: &SetName) -> Option<SampleSet> {
        self.rows.name(NameTable::SampleSet, name.as_str().as_bytes()).map(|row| decode(&row))
    }

    /// Sets with added samples, in the order of names.
    pub fn sample_sets(&self) -> impl Iterator<Item = SampleSet> {
        let mut from = Vec::new();
        std::iter::from_fn(move || {
            let mut key = self.rows.first_name(NameTable::SampleSet, &from)?;
            let set = self.rows.name(NameTable::SampleSet, &key).map(|row| decode(&row));
            // Smallest key after this one.
            key.push(0);
            from = key;
            set
        })
    }

    /// Samples of a set within `span` of sample ids.
    #[must_use]
    pub fn samples_of(&self, set: SampleSetId, span: Span) -> Vec<SampleId> {
        let rows = self.rows.members(SetTable::Samples, set.0, span);
        rows.into_iter().map(|(sample, _)| SampleId(sample)).collect()
    }

    /// Number of samples of a set with this label.
    #[must_use]
    pub fn samples_labelled(&self, set: SampleSetId, label: &Label) -> u32 {
        let row = self.rows.name(NameTable::SampleLabel, &write::label_key(set, label));
        row.map_or(0, |row| decode(&row))
    }
}

impl Txn<'_> {
    /// Adds a sample to `set`, which may be empty.
    pub fn put_sample(&mut self, id: SampleId, sample: &Sample, mut set: SampleSet) {
        let labelled = self.facts().samples_labelled(set.id, &sample.label);
        set.samples += 1;
        set.labels += u32::from(labelled == 0);
        write::sample(self.rows, id, sample, set.id);
        self.put_set(sample, set, labelled + 1);
    }

    /// Removes a sample from `set`, and the set with its last sample.
    pub fn remove_sample(&mut self, id: SampleId, sample: &Sample, mut set: SampleSet) {
        let labelled = self.facts().samples_labelled(set.id, &sample.label) - 1;
        set.samples -= 1;
        set.labels -= u32::from(labelled == 0);
        self.rows.put_point(PointTable::Sample, id.0, None);
        index::of_sample(id, set.id).remove(self.rows);
        self.put_set(sample, set, labelled);
    }

    fn put_set(&mut self, Sample { set: name, label, .. }: &Sample, set: SampleSet, labelled: u32) {
        write::sample_label(self.rows, set.id, label, labelled);
        write::sample_set(self.rows, name, set);
    }
}
