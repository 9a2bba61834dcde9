//! Prints what a query costs on this machine: `cargo run --release -p knn --example figures --
//! [ROUNDS]` (default 31). Every round measures every way once, so that all of them meet the same
//! disturbances; the table has the median and the extremes of the rounds.
//!
//! References and queries are ten random vectors with a fifth of their bits flipped. The control is what one
//! would write first: every distance with `count_ones`, sorted, and the first K taken.

#![allow(clippy::indexing_slicing, reason = "a wrong index ends the program, which is fine")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use knn::{Bits, InstructionSet, K, Samples};

const REFERENCES: usize = 2_339;
const QUERIES: usize = 1_000;
const THREADS: usize = 2;

/// xorshift64: the same numbers every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn vector(&mut self) -> Bits {
        Bits::from_fn(|_| self.next() >> 63 == 1)
    }

    /// One of `centres` with a fifth of its bits flipped.
    fn near(&mut self, centres: &[Bits]) -> Bits {
        let centre = &centres[(self.next() >> 33) as usize % centres.len()];
        Bits::from_fn(|index| centre.bit(index) != (self.next() >> 33).is_multiple_of(5))
    }
}

/// One way to answer all queries, and the microseconds a query took in each round.
struct Way<'a> {
    name: String,
    answer: Box<dyn Fn() + 'a>,
    micros: Vec<f64>,
}

impl<'a> Way<'a> {
    fn new(name: String, answer: impl Fn() + 'a) -> Self {
        Self { name, answer: Box::new(answer), micros: Vec::new() }
    }

    fn measure(&mut self) {
        let start = Instant::now();
        (self.answer)();
        self.micros.push(start.elapsed().as_secs_f64() * 1e6 / QUERIES as f64);
    }
}

/// The control.
fn sort_all(references: &[Bits], query: &Bits) -> Vec<(u32, usize)> {
    let distances = references.iter().enumerate().map(|(id, bits)| (query.distance(bits), id));
    let mut found: Vec<_> = distances.collect();
    found.sort_unstable();
    found.truncate(K::DEFAULT.count());
    found
}

fn one_by_one(samples: &Samples, queries: &[Bits]) {
    let mut found = Vec::new();
    for query in queries {
        samples.nearest(black_box(query), K::DEFAULT, &mut found);
        black_box(&found);
    }
}

fn on_threads(samples: &Samples, queries: &[Bits]) {
    std::thread::scope(|scope| {
        for share in queries.chunks(queries.len().div_ceil(THREADS)) {
            scope.spawn(move || {
                let mut found = Vec::new();
                samples.nearest_batch(black_box(share), K::DEFAULT, &mut found);
                black_box(&found);
            });
        }
    });
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(31), |rounds| rounds.parse())?;
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let centres: Vec<Bits> = (0..10).map(|_| noise.vector()).collect();
    let references: Vec<Bits> = (0..REFERENCES).map(|_| noise.near(&centres)).collect();
    let queries: Vec<Bits> = (0..QUERIES).map(|_| noise.near(&centres)).collect();
    let mut best = Samples::new();
    for (id, bits) in (0..).zip(&references) {
        best.push(id, "", bits);
    }

    let mut ways = vec![Way::new("control".into(), || {
        for query in &queries {
            black_box(sort_all(&references, black_box(query)));
        }
    })];
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
        let mut samples = best.clone();
        samples.scan_with(set)?;
        let queries = &queries;
        ways.push(Way::new(set.to_string(), move || one_by_one(&samples, queries)));
    }
    let name = format!("{}, batch, {THREADS} threads", best.instructions());
    ways.push(Way::new(name, || on_threads(&best, &queries)));

    for _ in 0..rounds {
        ways.iter_mut().for_each(Way::measure);
    }
    println!("{REFERENCES} references, K = {}, microseconds a query", K::DEFAULT.count());
    println!("{:28} {:>8} {:>8} {:>8}   {rounds} rounds", "", "median", "least", "most");
    for way in &mut ways {
        way.micros.sort_by(f64::total_cmp);
        let [median, least, most] = [way.micros.len() / 2, 0, way.micros.len() - 1];
        let [median, least, most] = [median, least, most].map(|at| way.micros[at]);
        println!("{:28} {median:>8.2} {least:>8.2} {most:>8.2}", way.name);
    }
    Ok(())
}
