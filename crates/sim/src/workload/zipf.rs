//! Random draws by Zipf's law: rank r is drawn r^-0.99 times as often as the first rank.
//!
//! A draw inverts an area that covers the law, and rejects points above it (Hörmann and Derflinger,
//! "Rejection-inversion to generate variates from monotone discrete distributions", 1996). Draws are exact for any
//! number of items and need no table, so the number of items may change with every draw.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// The exponent, as in YCSB.
const EXPONENT: f64 = 0.99;

/// Distribution of ranks for a number of items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zipf {
    items: f64,
    /// Area below the covering curve: up to the left of the first item, and up to the end.
    area_first: f64,
    area_all: f64,
    /// Distance to the left of an item within which a draw is never rejected.
    near: f64,
}

impl Zipf {
    /// Creates the distribution for `items` items, at least 1.
    pub(super) fn new(items: u64) -> Zipf {
        let items = items.max(1) as f64;
        Zipf {
            items,
            area_first: area(1.5) - 1.0,
            area_all: area(items + 0.5),
            near: 2.0 - position(area(2.5) - weight(2.0)),
        }
    }

    /// Draws a rank. Rank 0 is the most frequent.
    pub(super) fn rank(&self, rng: &mut StdRng) -> u64 {
        loop {
            let drawn = self.area_all + rng.random::<f64>() * (self.area_first - self.area_all);
            let position = position(drawn);
            let item = position.round().clamp(1.0, self.items);
            if item - position <= self.near || drawn >= area(item + 0.5) - weight(item) {
                return item as u64 - 1;
            }
        }
    }
}

fn weight(item: f64) -> f64 {
    item.powf(-EXPONENT)
}

/// The integral of the weight from 1.
fn area(position: f64) -> f64 {
    let rest = 1.0 - EXPONENT;
    (rest * position.ln()).exp_m1() / rest
}

/// The inverse of [`area`].
fn position(area: f64) -> f64 {
    let rest = 1.0 - EXPONENT;
    ((rest * area).ln_1p() / rest).exp()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        const DRAWS: u32 = 300_000;
        for items in [1, 2, 3, 10, 1_000] {
            let (zipf, mut rng) = (Zipf::new(items), StdRng::seed_from_u64(items));
            let mut counts = vec![0_u32; items as usize];
            for _ in 0..DRAWS {
                counts[zipf.rank(&mut rng) as usize] += 1;
            }
            let weights: Vec<f64> = (1..=items).map(|item| weight(item as f64)).collect();
            let all: f64 = weights.iter().sum();
            let square = |(count, weight): (u32, f64)| {
                let expected = f64::from(DRAWS) * weight / all;
                (f64::from(count) - expected).powi(2) / expected
            };
            let chi_square: f64 = counts.into_iter().zip(weights).map(square).sum();
            // The mean of chi square is the number of degrees of freedom; its variance is twice that number.
            let free = (items - 1) as f64;
            let bound = free + 4.5 * (2.0 * free).sqrt() + 1e-9;
            assert!(chi_square <= bound, "{items} items: {chi_square} of {bound}");
        }
    }

    #[test]
    fn the_first_of_ten_billion_items_comes_as_often_as_in_ycsb() {
        // Sum of all weights. YCSB has this number for its scrambled draws.
        const ALL: f64 = 26.469_028_201_783_02;
        const DRAWS: u32 = 200_000;
        let (zipf, mut rng) = (Zipf::new(10_000_000_000), StdRng::seed_from_u64(1));
        let mut first = 0;
        for _ in 0..DRAWS {
            let rank = zipf.rank(&mut rng);
            assert!(rank < 10_000_000_000);
            first += u32::from(rank == 0);
        }
        let expected = f64::from(DRAWS) / ALL;
        assert!((f64::from(first) - expected).abs() < 4.5 * expected.sqrt(), "{first}");
    }
}
