//! Tests of the search against a plain model, which computes every distance bit by bit, sorts, and takes the first K.
//! All instruction sets give the same results.

use knn::{BITS, Bits, InstructionSet, K, Samples};
use proptest::prelude::*;

/// (distance, id), nearest first.
type Found = Vec<(u32, u64)>;

fn model(samples: &[(u64, Bits)], query: &Bits, k: K) -> Found {
    let distance = |bits: &Bits| (0..BITS).filter(|at| bits.bit(*at) != query.bit(*at)).count();
    let mut all: Found = samples.iter().map(|(id, bits)| (distance(bits) as u32, *id)).collect();
    all.sort_unstable();
    all.truncate(k.count());
    all
}

/// Instruction sets that this processor has; prints the names of the others.
fn instructions() -> Vec<InstructionSet> {
    let (available, missing): (Vec<_>, Vec<_>) =
        InstructionSet::ALL.into_iter().partition(|set| set.is_available());
    if !missing.is_empty() {
        println!("skipped: this processor lacks {missing:?}");
    }
    available
}

fn check(samples: &[(u64, Bits)], queries: &[Bits], k: K) {
    let expected: Vec<Found> = queries.iter().map(|query| model(samples, query, k)).collect();
    let mut set = Samples::new();
    for (id, bits) in samples {
        set.push(*id, "", bits);
    }
    for instructions in instructions() {
        set.scan_with(instructions).unwrap();
        let (mut one, mut batch) = (Vec::new(), vec![Vec::new(); 3]);
        set.nearest_batch(queries, k, &mut batch);
        assert_eq!(batch.len(), queries.len());
        for ((query, expected), in_batch) in queries.iter().zip(&expected).zip(&batch) {
            set.nearest(query, k, &mut one);
            let found: Found = one.iter().map(|one| (one.distance, one.id)).collect();
            assert_eq!(&found, expected, "{instructions} k {k:?} of {}", samples.len());
            assert_eq!(&one, in_batch, "{instructions}");
        }
    }
}

fn ramp(ones: usize) -> Bits {
    Bits::from_fn(|at| at < ones)
}

#[test]
fn every_kernel_counts_every_distance() {
    // The first query has every possible distance from the samples.
    let samples: Vec<_> = (0..=BITS).map(|ones| (ones as u64, ramp(ones))).collect();
    let queries = [ramp(0), ramp(BITS), ramp(512), Bits::from_fn(|at| at % 2 == 0)];
    for k in [1, 15, 100] {
        check(&samples, &queries, K::new(k).unwrap());
    }
}

#[test]
fn every_kernel_sees_every_bit() {
    let samples: Vec<_> =
        (0..BITS).map(|one| (one as u64, Bits::from_fn(|at| at == one))).collect();
    let queries: Vec<_> = (0..BITS).step_by(37).map(|one| Bits::from_fn(|at| at == one)).collect();
    check(&samples, &queries, K::new(3).unwrap());
}

#[test]
fn ties_go_to_the_smaller_id_wherever_it_lies() {
    for (name, id) in [
        ("rising", &(|at| at) as &dyn Fn(u64) -> u64),
        ("falling", &|at| 9_999 - at),
        ("mixed", &|at| at * 7_919 % 10_007),
    ] {
        println!("{name}");
        // These are more samples than a chunk has, so that ties also occur across chunks.
        let equal: Vec<_> = (0..5_000).map(|at| (id(at), ramp(7))).collect();
        let two: Vec<_> = (0..5_000).map(|at| (id(at), ramp(at as usize % 2))).collect();
        check(&equal, &[ramp(0), ramp(7)], K::DEFAULT);
        check(&two, &[ramp(0), ramp(BITS)], K::MAX);
    }
}

#[test]
fn the_nearest_are_found_at_the_end_of_a_long_set_and_at_its_beginning() {
    let falling: Vec<_> = (0..9_001).map(|at| (at, ramp((9_001 - at as usize) / 9))).collect();
    let rising: Vec<_> = (0..9_001).map(|at| (at, ramp(at as usize / 9))).collect();
    for samples in [falling, rising] {
        check(&samples, &[ramp(0), ramp(500)], K::DEFAULT);
    }
}

#[test]
fn no_samples_have_no_neighbors() {
    check(&[], &[ramp(3)], K::DEFAULT);
    check(&[(4, ramp(9))], &[], K::DEFAULT);
}

/// Vectors with frequent ties, made from a few centers by flipping few bits; and random vectors.
fn vector() -> impl Strategy<Value = Bits> {
    let centers = [ramp(0), ramp(BITS), ramp(300), Bits::from_fn(|at| at % 3 == 0)];
    prop_oneof![
        3 => (0..4usize, prop::collection::vec(0..BITS, 0..4)).prop_map(move |(center, flips)| {
            Bits::from_fn(|at| centers[center].bit(at) != flips.contains(&at))
        }),
        1 => prop::array::uniform32(any::<u32>()).prop_map(|words| {
            Bits::from_fn(|at| words[at / 32] >> (at % 32) & 1 == 1)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_nearest_are_those_of_a_sort(
        vectors in prop::collection::vec(vector(), 0..200),
        queries in prop::collection::vec(vector(), 1..4),
        k in 1..=100usize,
        multiplier in prop::sample::select(vec![1u64, 7_919]),
    ) {
        let samples: Vec<_> = (0..).map(|at: u64| at * multiplier % 10_007).zip(vectors).collect();
        check(&samples, &queries, K::new(k).unwrap());
    }
}
