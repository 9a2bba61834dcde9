//! Prints what a query costs on this machine: `cargo run --release -p knn --example figures --
//! [ROUNDS] [REFERENCES]` (default 31 rounds and the built-in digits). Every round measures every way
//! once, so that all of them meet the same disturbances; the table has the median and the extremes of the
//! rounds.
//!
//! More references than the built-in ones are these with a fifth of their bits flipped, and so are the
//! queries. The control is what one would write first: every distance with `count_ones`, sorted, and
//! the first K taken. `read` reads as many bytes as the references have and does nothing else.
#![allow(clippy::indexing_slicing, reason = "a wrong index ends the program, which is fine")]

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use knn::{Bits, InstructionSet, K, Samples};

/// Queries in a round: as many as make this many comparisons, but not too few or too many.
const COMPARISONS: usize = 4_000_000;
const QUERIES_MIN: usize = 16;
const QUERIES_MAX: usize = 1_000;
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

    /// One of `vectors` with a fifth of its bits flipped.
    fn near(&mut self, vectors: &[Bits]) -> Bits {
        let vector = &vectors[(self.next() >> 33) as usize % vectors.len()];
        Bits::from_fn(|index| vector.bit(index) != (self.next() >> 33).is_multiple_of(5))
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

    fn measure(&mut self, queries: usize) {
        let start = Instant::now();
        (self.answer)();
        self.micros.push(start.elapsed().as_secs_f64() * 1e6 / queries as f64);
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

/// Reads memory from beginning to end.
fn read(rows: &[[u64; 16]]) -> u64 {
    let mut sums = [0; 16];
    for row in rows {
        sums.iter_mut().zip(row).for_each(|(sum, word)| *sum ^= word);
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = env::args().nth(1).map_or(Ok(31), |rounds| rounds.parse())?;
    let digits: Vec<Bits> = knn::digits().iter().map(|(_, _, bits)| bits).collect();
    let count: usize = env::args().nth(2).map_or(Ok(digits.len()), |count| count.parse())?;
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut references = digits.clone();
    references.resize_with(count, || noise.near(&digits));
    let query_count = (COMPARISONS / count).clamp(QUERIES_MIN, QUERIES_MAX);
    let queries: Vec<Bits> = (0..query_count).map(|_| noise.near(&digits)).collect();
    let mut best = Samples::new();
    for (id, bits) in (0..).zip(&references) {
        best.push(id, "", bits);
    }

    let control = || {
        for query in &queries {
            black_box(sort_all(&references, black_box(query)));
        }
    };
    let rows = vec![[1; 16]; count];
    let read_all = || {
        for _ in &queries {
            black_box(read(black_box(&rows)));
        }
    };
    let mut ways = vec![Way::new("control".into(), control), Way::new("read".into(), read_all)];
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
        let mut samples = best.clone();
        samples.scan_with(set)?;
        let queries = &queries;
        ways.push(Way::new(set.to_string(), move || one_by_one(&samples, queries)));
    }
    let name = format!("{}, batch, {THREADS} threads", best.instructions());
    ways.push(Way::new(name, || on_threads(&best, &queries)));
    for _ in 0..rounds {
        ways.iter_mut().for_each(|way| way.measure(query_count));
    }
    println!(
        "{count} references, K = {}, {query_count} queries, {rounds} rounds",
        K::DEFAULT.count()
    );
    println!("microseconds a query            median      least       most     of control");
    let mut control_median = None;
    for way in &mut ways {
        way.micros.sort_by(f64::total_cmp);
        let (median, last) = (way.micros[way.micros.len() / 2], way.micros.len() - 1);
        let ratio = median / *control_median.get_or_insert(median);
        let (least, most) = (way.micros[0], way.micros[last]);
        println!("{:28} {median:>10.2} {least:>10.2} {most:>10.2}     {ratio:10.4}", way.name);
    }
    Ok(())
}
