//! Adding and deleting samples: the outcome of each command and the rows after it.

use std::collections::BTreeMap;

use crate::support::World;
use feed::{
    Command, Done, Effect, Facts, Label, Refusal, Sample, SampleBits, SampleId, SampleSet,
    SampleSetId, SetName, StampedCommand, Txn, apply, limits,
};
use proptest::prelude::*;
use rows::{NameTable, PutRows as _, Span, Stamp, encode};
use testkit::MemoryRows;

fn set(name: &str) -> SetName {
    SetName::parse(name).unwrap()
}

fn add(name: &str, label: &str, byte: u8) -> Command {
    let bits = Box::new(SampleBits::from([byte; 128]));
    Command::AddSample { set: set(name), label: Label::parse(label).unwrap(), bits }
}

fn added(world: &mut World, name: &str, label: &str, byte: u8) -> SampleId {
    match world.run(add(name, label, byte)) {
        Ok(Done::SampleAdded { sample }) => sample,
        other => panic!("{other:?}"),
    }
}

fn delete(sample: SampleId) -> Command {
    Command::DeleteSample { sample }
}

#[test]
fn an_added_sample_exists_until_it_is_deleted_once() {
    let mut world = World::new();
    let before = world.snapshot();
    let id = added(&mut world, "letters", "a", 7);
    assert!(!id.is_built_in());
    let expected =
        Sample { set: set("letters"), label: Label::parse("a").unwrap(), bits: [7; 128].into() };
    assert_eq!(world.facts().sample(id), Some(expected));
    let found = world.facts().sample_set(&set("letters")).unwrap();
    assert_eq!(found, SampleSet { id: SampleSetId(id.0), samples: 1, labels: 1 });
    let changed = |is_added| Effect::Sample { set: found.id, sample: id, is_added };
    assert_eq!(world.effects, [changed(true)]);
    assert_eq!(world.run(delete(id)), Ok(Done::SampleDeleted));
    assert_eq!(world.effects, [changed(false)]);
    assert_eq!(world.snapshot(), before);
    assert_eq!(world.run(delete(id)), Err(Refusal::SampleNotFound));
}

#[test]
fn built_in_samples_stay_and_unknown_ones_are_not_found() {
    let mut world = World::new();
    for (id, refusal) in [
        (0, Refusal::SampleBuiltIn),
        (2_338, Refusal::SampleBuiltIn),
        (SampleId::TAUGHT_MIN, Refusal::SampleNotFound),
        (u64::MAX >> 1, Refusal::SampleNotFound),
    ] {
        assert_eq!(world.run(delete(SampleId(id))), Err(refusal), "{id}");
    }
}

#[test]
fn no_sample_is_added_under_an_id_of_a_built_in_sample() {
    let mut rows = MemoryRows::default();
    for (stamp, outcome) in [
        (SampleId::TAUGHT_MIN - 1, Err(Refusal::SampleBuiltIn)),
        (SampleId::TAUGHT_MIN, Ok(Done::SampleAdded { sample: SampleId(SampleId::TAUGHT_MIN) })),
    ] {
        let entry =
            StampedCommand { stamp: Stamp(stamp), idempotency: None, command: add("a", "b", 0) };
        let reply = apply(&mut Txn::new(&mut rows), &entry, &mut Vec::new());
        assert_eq!(reply.outcome, outcome);
    }
}

/// Checks which samples are refused in a world with a set `full` with these counts.
fn check_full(full: SampleSet, refusals: &[(&str, &str, Option<Refusal>)]) {
    for (name, label, refusal) in refusals {
        let mut world = World::new();
        let first = added(&mut world, "full", "known", 0);
        let full = encode(&SampleSet { id: SampleSetId(first.0), ..full });
        world.rows.put_name(NameTable::SampleSet, b"full", Some(full));
        let before = world.snapshot();
        let outcome = world.run(add(name, label, 1));
        assert_eq!(outcome.err(), *refusal, "{name} {label}");
        assert_eq!(world.snapshot() == before, refusal.is_some(), "{name} {label}");
    }
}

#[test]
fn the_samples_and_labels_of_a_set_are_limited() {
    let set = SampleSet { id: SampleSetId(0), samples: limits::SET_SAMPLES_MAX, labels: 1 };
    check_full(set, &[("full", "known", Some(Refusal::SetFull)), ("other", "known", None)]);
    let set = SampleSet { samples: limits::SET_SAMPLES_MAX - 1, ..set };
    check_full(set, &[("full", "known", None), ("full", "new", None)]);
    let set = SampleSet { labels: limits::SET_LABELS_MAX, ..set };
    check_full(set, &[("full", "new", Some(Refusal::TooManyLabels)), ("full", "known", None)]);
}

#[test]
fn the_number_of_sets_is_limited_and_an_emptied_set_no_longer_counts() {
    let mut world = World::new();
    let first = added(&mut world, "set-0", "x", 0);
    for number in 1..limits::SAMPLE_SETS_MAX {
        added(&mut world, &format!("set-{number}"), "x", 0);
    }
    assert_eq!(world.run(add("another", "x", 0)), Err(Refusal::TooManySets));
    let second = added(&mut world, "set-0", "x", 0);
    world.run(delete(first)).unwrap();
    assert_eq!(world.run(add("another", "x", 0)), Err(Refusal::TooManySets));
    world.run(delete(second)).unwrap();
    added(&mut world, "another", "x", 0);
    assert_eq!(world.facts().sample_sets().count(), limits::SAMPLE_SETS_MAX);
}

/// All samples, read with the scan that a node uses at its start.
fn held<R: rows::Rows>(facts: Facts<'_, R>) -> BTreeMap<SampleId, (String, String)> {
    let mut held = BTreeMap::new();
    facts.each_sample(|id, sample| {
        assert_eq!(facts.sample(id).as_ref(), Some(&sample));
        held.insert(id, (sample.set.as_str().to_owned(), sample.label.as_str().to_owned()));
    });
    for set in facts.sample_sets() {
        let ids = facts.samples_of(set.id, Span::ALL);
        assert!(ids.len() == set.samples as usize && ids.iter().all(|id| held.contains_key(id)));
    }
    held
}

proptest! {
    #[test]
    fn added_and_deleted_samples_equal_those_of_a_map(
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0..3, 0..3, 0..2), 0..60),
    ) {
        let (mut world, mut model) = (World::new(), BTreeMap::new());
        for (index, name, label, choice) in steps {
            if choice == 0 || model.is_empty() {
                let (name, label) = (format!("set{name}"), format!("label {label}"));
                let id = added(&mut world, &name, &label, 1);
                model.insert(id, (name, label));
            } else {
                let id = *model.keys().nth(index.index(model.len())).unwrap();
                prop_assert_eq!(world.run(delete(id)), Ok(Done::SampleDeleted));
                model.remove(&id);
            }
            prop_assert_eq!(&held(world.facts()), &model);
            for set in world.facts().sample_sets() {
                let of_set = |id| world.facts().samples_of(set.id, Span::ALL).contains(id);
                let mut labels = BTreeMap::<_, u32>::new();
                let labelled = model.iter().filter(|(id, _)| of_set(id));
                labelled.for_each(|(_, (_, label))| *labels.entry(label).or_default() += 1);
                prop_assert_eq!(set.labels as usize, labels.len());
                for (label, count) in labels {
                    let label = Label::parse(label).unwrap();
                    prop_assert_eq!(world.facts().samples_labelled(set.id, &label), count);
                }
            }
        }
    }
}
