//! Searches inside this process. The instruction sets alternate with each other, with a read of as much memory, and
//! with FAISS if the given Python has it. Then a million references are compared with the memory bandwidth.

use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use knn::{Bits, InstructionSet, K, Neighbor, Samples};

use crate::Plan;
use crate::faiss::Faiss;
use crate::report::{Report, Target};

const QUERIES: usize = 1_000;
const THREADS: usize = 2;
/// Number of rounds of the short searches in a run. A round takes a quarter of a second.
const ROUNDS_PER_RUN: usize = 12;
const MILLION: usize = 1_000_000;
const MILLION_QUERIES: usize = 8;

/// Searches the built-in references, and then a million references generated from them.
pub(crate) fn measure(plan: &Plan, python: &Path, report: &mut Report) -> anyhow::Result<()> {
    let digits: Vec<Bits> = knn::digits().iter().map(|(_, _, bits)| bits).collect();
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let queries: Vec<Bits> = (0..QUERIES).map(|_| noise.near(&digits)).collect();
    built_in(plan, python, &digits, &queries, report)?;
    let mut references = digits.clone();
    references.resize_with(MILLION, || noise.near(&digits));
    million(plan, &references, queries.get(..MILLION_QUERIES).unwrap_or(&queries), report)
}

fn built_in(
    plan: &Plan,
    python: &Path,
    references: &[Bits],
    queries: &[Bits],
    report: &mut Report,
) -> anyhow::Result<()> {
    let best = samples(references);
    let (set, rows) = (best.instructions(), rows(references.len()));
    let faiss = Faiss::start(python, references, queries, K::DEFAULT)?.map(RefCell::new);
    let mut ways = Vec::new();
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
        let mut samples = best.clone();
        samples.scan_with(set)?;
        let search = move || timed(|| one_by_one(&samples, queries));
        ways.push(Way::new(format!("{set}, one by one"), search).at_most(target(set)));
    }
    ways.push(Way::new(format!("{set}, a list"), || timed(|| list(&best, queries))));
    let threads = || timed(|| on_threads(&best, queries));
    ways.push(Way::new(format!("{set}, a list on 2 threads"), threads).at_most(Some(2.2)));
    ways.push(Way::new("a read of as much memory".into(), || read(&rows, queries.len())));
    let theirs = [("single", "one by one"), ("list", "a list"), ("threads", "a list on 2 threads")];
    if let Some(faiss) = &faiss {
        let version = faiss.borrow().version.clone();
        println!("FAISS {version}");
        let number = version.split(' ').next().unwrap_or_default();
        for (way, name) in theirs {
            let answer = || faiss.borrow_mut().answer(way);
            ways.push(Way::new(format!("FAISS {number}, {name}"), answer));
        }
    } else {
        println!("FAISS: skipped, {} cannot import it (pip: faiss-cpu)", python.display());
    }
    take_turns(&mut ways, plan.runs * ROUNDS_PER_RUN, queries.len())?;
    for way in ways {
        let name = format!("{} references: {}", references.len(), way.name);
        report.add(name, "us", way.micros, way.target);
    }
    Ok(())
}

/// Target of the time per query, in microseconds.
fn target(set: InstructionSet) -> Option<f64> {
    match set {
        InstructionSet::Plain => None,
        InstructionSet::Popcnt => Some(12.0),
        InstructionSet::Avx2 => Some(8.0),
        InstructionSet::Avx512 => Some(4.0),
    }
}

/// Searches more references than any cache can hold, so that memory is the limit.
fn million(
    plan: &Plan,
    references: &[Bits],
    queries: &[Bits],
    report: &mut Report,
) -> anyhow::Result<()> {
    let best = samples(references);
    let (set, rows) = (best.instructions(), rows(references.len()));
    let mut ways = [
        Way::new(format!("{set}, one by one"), || timed(|| one_by_one(&best, queries))),
        Way::new("a read of as much memory".into(), || read(&rows, queries.len())),
        Way::new("as much memory compared".into(), || compare(&rows, queries.len())),
        Way::new(format!("{set}, a list on 2 threads"), || timed(|| on_threads(&best, queries))),
    ];
    take_turns(&mut ways, plan.runs * 3, queries.len())?;
    let [search, read, compare, _] = &ways;
    let fastest = read.micros.iter().zip(&compare.micros).map(|(a, b)| a.min(*b));
    let shares = search.micros.iter().zip(fastest).map(|(search, memory)| memory / search);
    let shares = shares.collect();
    for way in ways {
        let millis = way.micros.iter().map(|micros| micros / 1e3).collect();
        report.add(format!("1,000,000 references: {}", way.name), "ms", millis, None);
    }
    let name = "1,000,000 references: share of memory bandwidth, one thread";
    report.add(name, "ratio", shares, Some(Target::AtLeast(0.8)));
    Ok(())
}

/// Method of answering all queries, with the microseconds per query in each round.
struct Way<'a> {
    name: String,
    target: Option<Target>,
    answer: Box<dyn FnMut() -> anyhow::Result<Answered> + 'a>,
    micros: Vec<f64>,
}

/// Time of all queries; and the sum of all distances, if the method computes them.
pub(crate) struct Answered {
    pub(crate) seconds: f64,
    pub(crate) distances: Option<u64>,
}

impl<'a> Way<'a> {
    fn new(name: String, answer: impl FnMut() -> anyhow::Result<Answered> + 'a) -> Self {
        Self { name, target: None, answer: Box::new(answer), micros: Vec::new() }
    }

    fn at_most(self, micros: Option<f64>) -> Self {
        Self { target: micros.map(Target::AtMost), ..self }
    }
}

/// Runs every method once per round, so that disturbances affect all methods. All methods must find the same distances.
/// The first round warms up.
fn take_turns(ways: &mut [Way<'_>], rounds: usize, queries: usize) -> anyhow::Result<()> {
    let mut expected = None;
    for round in 0..=rounds {
        for way in &mut *ways {
            let Answered { seconds, distances } = (way.answer)()?;
            if let Some(found) = distances {
                let expected = *expected.get_or_insert(found);
                ensure!(found == expected, "{}: {found} and not {expected}", way.name);
            }
            if round > 0 {
                way.micros.push(seconds * 1e6 / queries as f64);
            }
        }
    }
    Ok(())
}

fn samples(references: &[Bits]) -> Samples {
    let mut samples = Samples::new();
    for (id, bits) in (0..).zip(references) {
        samples.push(id, "", bits);
    }
    samples
}

fn timed(answer: impl FnOnce() -> u64) -> anyhow::Result<Answered> {
    let start = Instant::now();
    let distances = answer();
    Ok(Answered { seconds: start.elapsed().as_secs_f64(), distances: Some(distances) })
}

fn sum(found: &[Neighbor]) -> u64 {
    found.iter().map(|neighbor| u64::from(neighbor.distance)).sum()
}

fn one_by_one(samples: &Samples, queries: &[Bits]) -> u64 {
    let mut found = Vec::new();
    let mut answer = |query| {
        samples.nearest(query, K::DEFAULT, &mut found);
        sum(&found)
    };
    queries.iter().map(&mut answer).sum()
}

fn list(samples: &Samples, queries: &[Bits]) -> u64 {
    let mut found = Vec::new();
    samples.nearest_batch(queries, K::DEFAULT, &mut found);
    found.iter().map(|found| sum(found)).sum()
}

fn on_threads(samples: &Samples, queries: &[Bits]) -> u64 {
    std::thread::scope(|scope| {
        let shares = queries.chunks(queries.len().div_ceil(THREADS));
        let threads: Vec<_> = shares.map(|share| scope.spawn(|| list(samples, share))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    })
}

/// Memory as large as `count` references.
fn rows(count: usize) -> Vec<[u64; 16]> {
    vec![[1; 16]; count]
}

/// Only reads all memory once for each query.
fn read(rows: &[[u64; 16]], queries: usize) -> anyhow::Result<Answered> {
    timed_read(queries, || {
        let mut sums = [0; 16];
        for row in black_box(rows) {
            sums.iter_mut().zip(row).for_each(|(sum, word)| *sum ^= word);
        }
        black_box(sums);
    })
}

/// Compares the two halves of the memory for each query, which the C library does at the speed of memory.
fn compare(rows: &[[u64; 16]], queries: usize) -> anyhow::Result<Answered> {
    let (left, right) = rows.split_at(rows.len() / 2);
    timed_read(queries, || {
        black_box(black_box(left) == black_box(right));
    })
}

fn timed_read(queries: usize, mut read: impl FnMut()) -> anyhow::Result<Answered> {
    let start = Instant::now();
    (0..queries).for_each(|_| read());
    Ok(Answered { seconds: start.elapsed().as_secs_f64(), distances: None })
}

/// Random numbers by xorshift64; the sequence is always the same.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A random one of `vectors`, with a fifth of its bits flipped.
    fn near(&mut self, vectors: &[Bits]) -> Bits {
        let at = (self.next() >> 33) as usize % vectors.len();
        let vector = vectors.get(at).copied().unwrap_or(Bits::ZERO);
        Bits::from_fn(|index| vector.bit(index) != (self.next() >> 33).is_multiple_of(5))
    }
}
