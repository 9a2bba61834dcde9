//! Makes the built-in digits: `cargo run --profile dist -p knn --example make_references -- FOLDER`. FOLDER contains
//! the MNIST training images and labels as IDX files. The program writes `data/digits.bin` of this crate. It always
//! writes the same bytes for the same files.
//!
//! The program chooses the references among the first 50,000 images, and validates them with the other 10,000. It
//! starts with random images, in which each digit has its share of the pool. In each round, it recognizes all 50,000
//! images, and replaces references that voted wrongly in close recognitions by random images of the same digit. It
//! keeps the best set of all rounds.
#![allow(clippy::indexing_slicing, reason = "a wrong index ends the program, which is fine")]

mod mnist;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use knn::{Bits, K, Samples};
use mnist::Mnist;

const REFERENCES: usize = 2_339;
/// Number of images to choose from. The other images are for validation.
const POOL: usize = 50_000;
const ROUNDS: usize = 60;
/// Number of references replaced in the first round. It decreases to 0 in the last round.
const REPLACED: usize = REFERENCES / 10;
/// Minimum lead in votes of a recognition that is not close.
const CLOSE: i32 = 6;
/// Number of neighbors: one more than the default, because an image that is a reference finds itself.
const WITH_ITSELF: K = K::new(K::DEFAULT.count() + 1).unwrap();

/// Random numbers by xorshift64; the sequence is always the same.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

/// Chosen references, as indexes of images.
#[derive(Clone)]
struct Choice {
    places: Vec<usize>,
    is_chosen: Vec<bool>,
}

impl Choice {
    /// Chooses random images, so that each digit has its share of the pool.
    fn stratified(digits: &[u8], noise: &mut Noise) -> Self {
        let mut choice = Self { places: Vec::new(), is_chosen: vec![false; POOL] };
        let mut seen = 0;
        for digit in 0..10 {
            // Rounding the running sum gives each digit its share, and the right total.
            let before = seen * REFERENCES / POOL;
            seen += digits.iter().filter(|other| **other == digit).count();
            for _ in before..seen * REFERENCES / POOL {
                let place = choice.another(digit, digits, noise);
                choice.is_chosen[place] = true;
                choice.places.push(place);
            }
        }
        choice
    }

    /// Chooses a random unused image of the digit.
    fn another(&self, digit: u8, digits: &[u8], noise: &mut Noise) -> usize {
        loop {
            let place = noise.below(POOL);
            if digits[place] == digit && !self.is_chosen[place] {
                return place;
            }
        }
    }

    fn samples(&self, images: &Mnist) -> Samples {
        let mut samples = Samples::new();
        for place in &self.places {
            let name = images.digits[*place].to_string();
            samples.push(*place as u64, &name, &images.drawings[*place]);
        }
        samples
    }

    /// Replaces the `count` references with the lowest merit.
    fn replace(&mut self, count: usize, merits: &[i64], digits: &[u8], noise: &mut Noise) {
        self.places.sort_by_key(|place| (merits[*place], *place));
        for at in 0..count {
            let old = self.places[at];
            let new = self.another(digits[old], digits, noise);
            (self.is_chosen[old], self.is_chosen[new]) = (false, true);
            self.places[at] = new;
        }
    }
}

/// Quality of a choice on the pool.
struct Judgement {
    right: usize,
    /// Sum of the squares of how close each recognition was.
    loss: i64,
    /// Merit of each image: its right votes minus its wrong votes in close recognitions.
    merits: Vec<i64>,
}

fn judge(samples: &Samples, images: &Mnist) -> Judgement {
    let mut judgement = Judgement { right: 0, loss: 0, merits: vec![0; POOL] };
    let mut found = Vec::new();
    for (place, drawing) in images.drawings[..POOL].iter().enumerate() {
        samples.nearest(drawing, WITH_ITSELF, &mut found);
        found.retain(|one| one.id != place as u64);
        found.truncate(K::DEFAULT.count());
        let digit = images.digits[place];
        let mut votes = [0; 10];
        for one in &found {
            votes[usize::from(images.digits[one.id as usize])] += 1;
        }
        let right = std::mem::replace(&mut votes[usize::from(digit)], -1);
        let ahead = right - votes.iter().max().unwrap_or(&0);
        judgement.right += usize::from(ahead > 0);
        let weight = i64::from((CLOSE - ahead).clamp(0, 2 * CLOSE));
        judgement.loss += weight * weight;
        for one in &found {
            let voted = images.digits[one.id as usize];
            judgement.merits[one.id as usize] += if voted == digit { weight } else { -weight };
        }
    }
    judgement
}

/// Percentage of the images after the pool that are recognized.
fn validate(samples: &Samples, images: &Mnist) -> f64 {
    let mut found = Vec::new();
    let (drawings, digits) = (&images.drawings[POOL..], &images.digits[POOL..]);
    let mut is_right = |(drawing, digit): (&Bits, &u8)| {
        samples.nearest(drawing, K::DEFAULT, &mut found);
        samples.name(samples.vote(&found)[0].label) == digit.to_string()
    };
    let right = drawings.iter().zip(digits).filter(|pair| is_right(*pair)).count();
    right as f64 * 100.0 / digits.len() as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("which folder has the IDX files?")?;
    let images = Mnist::read(Path::new(&folder), "train")?;
    let digits = &images.digits[..POOL];
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut choice = Choice::stratified(digits, &mut noise);
    let mut best = choice.clone();
    let mut least = i64::MAX;
    println!("round    pool %       loss   validation %");
    for round in 0..ROUNDS {
        let samples = choice.samples(&images);
        let Judgement { right, loss, merits } = judge(&samples, &images);
        if loss < least {
            (least, best) = (loss, choice.clone());
        }
        let share = right as f64 * 100.0 / POOL as f64;
        println!("{round:5}   {share:7.2} {loss:10}        {:7.2}", validate(&samples, &images));
        let count = REPLACED * (ROUNDS - 1 - round) / (ROUNDS - 1);
        choice.replace(count, &merits, digits, &mut noise);
    }

    // Order the references like the images, so that ties favor no digit.
    best.places.sort_unstable();
    println!("chosen: {:.2} % on validation", validate(&best.samples(&images), &images));
    let mut bytes = Vec::new();
    for place in &best.places {
        bytes.push(images.digits[*place]);
        bytes.extend(images.drawings[*place].to_bytes());
    }
    fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/data/digits.bin"), bytes)?;
    Ok(())
}
