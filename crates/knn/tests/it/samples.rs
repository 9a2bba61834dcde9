//! Tests that a set of samples contains what a map would, and that the vote follows its rule.

use std::collections::{BTreeMap, BTreeSet};

use knn::{Bits, K, Neighbor, Samples};
use proptest::prelude::*;

fn ramp(ones: usize) -> Bits {
    Bits::from_fn(|at| at < ones)
}

#[test]
fn k_is_1_to_100() {
    for (count, expected) in [(0, None), (1, Some(1)), (100, Some(100)), (101, None)] {
        assert_eq!(K::new(count).map(K::count), expected);
    }
}

/// Checks the result of `vote` for samples given as (label, distance from the query).
#[track_caller]
fn check_vote(samples: &[(&str, usize)], expected: &[(&str, u32)]) {
    let mut set = Samples::new();
    for (id, (name, distance)) in (0..).zip(samples) {
        set.push(id, name, &ramp(*distance));
    }
    let mut found: Vec<Neighbor> = Vec::new();
    set.nearest(&ramp(0), K::DEFAULT, &mut found);
    let tallies = set.vote(&found);
    let said: Vec<_> = tallies.iter().map(|tally| (set.name(tally.label), tally.votes)).collect();
    assert_eq!(said, expected, "{samples:?}");
}

#[test]
fn the_vote_goes_to_the_majority_and_ties_to_the_nearer() {
    check_vote(&[], &[]);
    check_vote(&[("a", 9)], &[("a", 1)]);
    // More votes have priority over nearness.
    check_vote(&[("a", 1), ("b", 8), ("b", 9)], &[("b", 2), ("a", 1)]);
    // In a tie, the nearest neighbor decides.
    check_vote(&[("a", 2), ("b", 1)], &[("b", 1), ("a", 1)]);
    check_vote(&[("a", 2), ("a", 3), ("b", 1), ("b", 99)], &[("b", 2), ("a", 2)]);
    // Then the smaller sum of distances decides.
    check_vote(&[("a", 1), ("a", 5), ("b", 1), ("b", 4)], &[("b", 2), ("a", 2)]);
    // Then the smaller name decides, in any order of the samples.
    check_vote(&[("b", 1), ("a", 1)], &[("a", 1), ("b", 1)]);
    check_vote(&[("9", 1), ("10", 1)], &[("10", 1), ("9", 1)]);
    // Only the K nearest neighbors vote.
    let near = (0..15).map(|_| ("near", 1));
    let far = (0..40).map(|_| ("far", 2));
    check_vote(&far.chain(near).collect::<Vec<_>>(), &[("near", 15)]);
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize, usize),
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4usize, 0..=1024usize).prop_map(|(name, ones)| Step::Push(name, ones)),
        2 => any::<prop::sample::Index>().prop_map(|index| Step::Remove(index.index(60))),
    ]
}

/// Contents of a set, as (id, label, number of ones).
fn held(set: &Samples) -> BTreeSet<(u64, String, u32)> {
    set.iter().map(|(id, label, bits)| (id, set.name(label).to_owned(), bits.ones())).collect()
}

#[test]
fn a_clone_stays_as_it_was_while_thousands_come_and_go() {
    let mut set = Samples::new();
    let push = |set: &mut Samples, ids: std::ops::Range<u64>| {
        ids.for_each(|id| set.push(id, ["a", "b"][id as usize % 2], &ramp(id as usize % 1024)));
    };
    push(&mut set, 0..20_000);
    let (clone, before) = (set.clone(), held(&set));
    // Remove all except every 97th, in descending order within each ten, so that parts shrink and merge.
    for id in (0..20_000u64).map(|n| n / 10 * 10 + 9 - n % 10).filter(|id| id % 97 > 0) {
        assert!(set.remove(id), "{id}");
        assert!(!set.remove(id), "{id}");
    }
    push(&mut set, 20_000..29_000);
    assert_eq!((held(&clone), clone.len()), (before, 20_000));
    let mut expected = Samples::new();
    (0..20_000).filter(|id| id % 97 == 0).for_each(|id| push(&mut expected, id..id + 1));
    push(&mut expected, 20_000..29_000);
    assert_eq!((held(&set), set.len()), (held(&expected), expected.len()));
    let nearest = |set: &Samples| {
        let mut found = Vec::new();
        set.nearest(&ramp(300), K::MAX, &mut found);
        found.iter().map(|one| (one.id, one.distance)).collect::<Vec<_>>()
    };
    assert_eq!(nearest(&set), nearest(&expected));
}

#[test]
fn a_label_that_no_sample_has_makes_room_for_another() {
    let mut set = Samples::new();
    set.push(0, "stays", &ramp(0));
    for id in 1..5_000 {
        set.push(id, &format!("name {id}"), &ramp(1));
        assert_eq!(set.counts().last(), Some(("stays", 1)));
        let (_, label, _) = set.iter().find(|sample| sample.0 == id).unwrap();
        assert_eq!(set.name(label), format!("name {id}"));
        assert!(set.remove(id));
    }
    assert_eq!(set.counts().collect::<Vec<_>>(), [("stays", 1)]);
    // The table of names, which `Debug` shows, has not grown.
    assert!(format!("{set:?}").len() < 5_000);
}

proptest! {
    #[test]
    fn samples_that_come_and_go_are_those_of_a_map(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let names = ["zero", "one", "", "drei"];
        let (mut set, mut model, mut next) = (Samples::new(), BTreeMap::new(), 0);
        for step in steps {
            match step {
                Step::Push(name, ones) => {
                    set.push(next, names[name], &ramp(ones));
                    model.insert(next, (names[name], ramp(ones)));
                    next += 1;
                }
                Step::Remove(id) => {
                    prop_assert_eq!(set.remove(id as u64), model.remove(&(id as u64)).is_some());
                }
            }
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.is_empty(), model.is_empty());
        }
        let held: BTreeMap<_, _> =
            set.iter().map(|(id, label, bits)| (id, (set.name(label), bits))).collect();
        prop_assert_eq!(&held, &model);

        let mut counts = BTreeMap::new();
        model.values().for_each(|(name, _)| *counts.entry(*name).or_insert(0) += 1);
        prop_assert_eq!(set.counts().collect::<Vec<_>>(), counts.into_iter().collect::<Vec<_>>());

        let mut found = Vec::new();
        set.nearest(&ramp(500), K::MAX, &mut found);
        prop_assert_eq!(found.len(), model.len().min(100));
        for one in found {
            let (name, bits) = &model[&one.id];
            prop_assert_eq!((set.name(one.label), bits.distance(&ramp(500))), (*name, one.distance));
        }
    }
}
