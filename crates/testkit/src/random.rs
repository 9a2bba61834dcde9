//! Random numbers from a seed. They are the same on every machine and with every version of the compiler and of
//! libraries, so that a seed repeats a run. (SplitMix64; Steele, Lea, Flood 2014.)

/// Random number generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a separate generator for one purpose. Other purposes then do not depend on how many numbers this one
    /// uses.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Next number of 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Index below `len`, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `times` on average.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Random item of `items`, which is not empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Random index with a probability proportional to its weight. At least one weight is not 0.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        unreachable!("less than the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_never_change() {
        let mut random = Random::new(1_234_567);
        // These numbers were published with the algorithm.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.next(), random.next()], expected);
    }

    #[test]
    fn numbers_are_within_their_range() {
        let mut random = Random::new(1);
        let mut seen = [0; 3];
        for _ in 0..1_000 {
            assert!(random.below(7) < 7);
            assert!((5..=6).contains(&random.between(5, 6)));
            seen[random.weighted(&[1, 0, 3])] += 1;
        }
        assert!(seen[0] > 150 && seen[1] == 0 && seen[2] > 600, "{seen:?}");
    }
}
