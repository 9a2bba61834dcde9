//! Drawings to recognize: randomly distorted references.

use std::fmt::Write as _;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::stories::at_random_times;
use super::{Action, What};

/// Rows of a drawing, 32 pixels each.
const ROWS: usize = 32;
/// Number of pixels flipped by a distortion.
const FLIPS: usize = 20;

/// Drawings to recognize.
#[derive(Debug, Clone)]
pub struct Drawings {
    /// Reference drawings, at least one: 32 rows of 32 pixels. The first pixel is the highest bit of the first byte.
    pub references: Arc<[[u8; 128]]>,
    /// Number of drawings per second.
    pub per_second: u32,
}

/// Returns recognitions of one drawing each, at random times.
pub(crate) fn recognize(per_second: u32, seed: u64) -> impl Iterator<Item = Action> {
    at_random_times(1, per_second.into(), seed, |_, rng| What::Recognize { seed: rng.random() })
}

/// Returns a reference drawing, moved by up to a pixel in both directions and with some pixels flipped, as 256
/// hexadecimal digits. It depends only on the seed.
pub(crate) fn distorted(references: &[[u8; 128]], seed: u64) -> String {
    let mut rng = StdRng::seed_from_u64(seed);
    let Some(reference) = references.choose(&mut rng) else { unreachable!("there is a reference") };
    let rows = reference.as_chunks().0.iter().map(|row| u32::from_be_bytes(*row));
    let across = rng.random_range(0..=2);
    let mut rows: Vec<u32> = rows.map(|row| (row << 1) >> across).collect();
    match rng.random_range(0..3) {
        0 => rows.rotate_left(1),
        1 => rows.rotate_right(1),
        _ => {}
    }
    for _ in 0..FLIPS {
        if let Some(row) = rows.get_mut(rng.random_range(0..ROWS)) {
            *row ^= 1 << rng.random_range(0..32);
        }
    }
    let mut digits = String::with_capacity(2 * 128);
    for row in rows {
        let Ok(()) = write!(digits, "{row:08x}") else { unreachable!("a string takes all") };
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distorted_drawing_is_near_to_its_reference_and_the_same_for_a_seed() {
        let mut reference = [0; 128];
        reference[40..80].copy_from_slice(&[0x0f; 40]);
        let references = [reference];
        let mut seen = std::collections::HashSet::new();
        for seed in 0..200 {
            let digits = distorted(&references, seed);
            assert_eq!(digits, distorted(&references, seed));
            assert_eq!(digits.len(), 256);
            let ones: u32 =
                digits.chars().map(|digit| digit.to_digit(16).unwrap().count_ones()).sum();
            assert!(ones.abs_diff(160) <= FLIPS as u32, "{ones}");
            seen.insert(digits);
        }
        assert!(seen.len() > 190);
    }
}
