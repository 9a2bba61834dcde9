//! Checks samples, and the counts of sets and labels.

use std::collections::BTreeMap;

use rows::{NameTable, RowsMut, Scan, decode, encode};

use crate::ids::{SampleId, SampleSetId};
use crate::index;
use crate::mend::{CountedSamples, From, Mend, Rows, at};
use crate::samples::{Sample, SampleSet};
use crate::write::label_key;

impl Mend {
    pub(crate) fn sample<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let sample: Sample = decode(value);
        self.counted.last_stamp = self.counted.last_stamp.max(key);
        let facts = step.facts();
        let set = self.sets.entry(sample.set.clone()).or_insert_with(|| {
            // A lost id of the set is replaced by the id of its oldest sample, which no other set can have.
            let id = facts.sample_set(&sample.set).map_or(SampleSetId(key), |set| set.id);
            CountedSamples { id, samples: 0, labels: BTreeMap::new() }
        });
        set.samples += 1;
        *set.labels.entry(sample.label).or_default() += 1;
        let row = index::of_sample(SampleId(key), set.id);
        step.put_index(|| format!("sample {}", at(key)), [row]);
    }

    /// Compares the rows of sets and labels with the counts.
    pub(crate) fn finish_samples<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
    ) -> Option<From> {
        let mut labels = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (name, set) in &self.sets {
            let described =
                SampleSet { id: set.id, samples: set.samples, labels: set.labels.len() as u32 };
            names.insert(name.as_str().as_bytes().to_vec(), encode(&described));
            let counted = set.labels.iter();
            labels.extend(
                counted.map(|(label, count)| (label_key(set.id, label).to_vec(), encode(count))),
            );
        }
        for (table, expected) in [(NameTable::SampleSet, names), (NameTable::SampleLabel, labels)] {
            let found = step.rows.first_names(table, &[], usize::MAX);
            for name in found.iter().filter(|name| !expected.contains_key(*name)) {
                step.derived(format!("{table:?} {}: no sample has it", name.escape_ascii()));
                step.rows.put_name(table, name, None);
            }
            for (name, value) in expected {
                if step.rows.name(table, &name).as_ref() != Some(&value) {
                    step.derived(format!("{table:?} {}: missing or wrong", name.escape_ascii()));
                    step.rows.put_name(table, &name, Some(value));
                }
            }
        }
        None
    }
}
