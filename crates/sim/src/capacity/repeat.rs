//! One measurement of the capacity: bisects a bracket until it is narrower than the resolution.
//!
//! Bisection is biased towards the middle of its bracket. The bracket is therefore centered at the result of the
//! previous repeat, and then shifted by up to half of its width, so that neither end has been tried. It is as wide as
//! that of the climb. If bisection has not replaced an end, that end is tried afterwards, and moved outwards if the
//! limit is beyond it. If the upper end is too high for the generator, the search ends.

use super::{Bracket, FLOOR_PER_S, Finding, Hunt, Search, Stop, Trials, Verdict};

/// Maximum number of moves of a wrong end, each twice as far as the previous one. With a resolution of 5 %, the moves
/// add up to a factor of two. If the capacity has changed more than this since the previous repeat, the search gives
/// up.
const MOVES_MAX: usize = 4;
/// Golden ratio. The fractional parts of its multiples are spread evenly for any number of repeats.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Maximum number of trials of one repeat: for bisecting the bracket, for trying and moving an end, and for bisecting
/// the distance of the last move, which doubles with each move after the first.
pub(super) fn trials_max(search: &Search) -> usize {
    search.halvings() + (MOVES_MAX + 1) + (MOVES_MAX - 1)
}

/// Shift of a repeat's bracket, from about -1/2 to 1/2, as a power of the bracket's width. Bisection ends with a
/// bracket called a cell. The whole cells of the shift change the path of the bisection and the side from which it
/// approaches; the fraction of a cell changes the last two rates.
fn shift(repeat: usize, search: &Search) -> f64 {
    let cells = f64::from(1_u32 << search.halvings());
    let turns = (0.5 + repeat as f64 * GOLDEN).fract() - 0.5;
    let part = (repeat as f64 + 0.5) / search.repeats as f64 - 0.5;
    ((turns * cells).round() + part) / cells
}

impl<T: Trials + Send> Hunt<'_, T> {
    /// Measures the capacity in repeat number `repeat` (from 0). The bracket is around `center`, and its ends have the
    /// ratio `width`.
    pub(super) async fn measure(
        &mut self,
        repeat: usize,
        center: f64,
        width: f64,
    ) -> Result<f64, Stop> {
        let by = shift(repeat, self.search);
        let low = (center * width.powf(by - 0.5)).max(FLOOR_PER_S);
        let high = (center * width.powf(by + 0.5)).max(low * (1.0 + self.search.resolution));
        let mut bracket = self.halve(Bracket { low, high }).await?;
        if bracket.high == high || self.ceiling.is_over(bracket.high) {
            bracket = self.raise(bracket).await?;
        }
        if bracket.low == low {
            bracket = self.lower(bracket).await?;
        }
        let bracket = self.halve(bracket).await?;
        if self.ceiling.is_over(bracket.high) {
            return Err(Stop::Found(self.at_most_tried()));
        }
        Ok(bracket.middle())
    }

    async fn holds(&mut self, rate: f64) -> Result<bool, Stop> {
        match self.attempt(rate).await? {
            Verdict::Holds => Ok(true),
            Verdict::Fails => Ok(false),
            Verdict::Unknown => Err(Stop::Found(self.at_most_tried())),
        }
    }

    async fn halve(&mut self, mut bracket: Bracket) -> Result<Bracket, Stop> {
        // The factor allows for rounding, which could cause one more trial.
        let near = (1.0 + self.search.resolution) * (1.0 + 1e-9);
        while bracket.high / bracket.low > near {
            let middle = bracket.middle();
            match self.attempt(middle).await? {
                Verdict::Holds => bracket.low = middle,
                // A rate may be too high for the generator, and the limit may be below it.
                Verdict::Fails | Verdict::Unknown => bracket.high = middle,
            }
        }
        Ok(bracket)
    }

    /// Tries the upper end and moves it up until it fails.
    async fn raise(&mut self, mut bracket: Bracket) -> Result<Bracket, Stop> {
        let mut factor = 1.0 + self.search.resolution;
        for _ in 0..=MOVES_MAX {
            if !self.holds(bracket.high).await? {
                return Ok(bracket);
            }
            bracket = Bracket { low: bracket.high, high: bracket.high * factor };
            factor *= factor;
        }
        Err(Stop::Found(Finding::Unsteady { rate_per_s: bracket.low }))
    }

    /// Tries the lower end and moves it down until it holds.
    async fn lower(&mut self, mut bracket: Bracket) -> Result<Bracket, Stop> {
        let mut factor = 1.0 + self.search.resolution;
        for _ in 0..=MOVES_MAX {
            if self.holds(bracket.low).await? {
                return Ok(bracket);
            }
            if bracket.low == FLOOR_PER_S {
                return Err(Stop::Found(Finding::Nothing { rate_per_s: FLOOR_PER_S }));
            }
            let low = (bracket.low / factor).max(FLOOR_PER_S);
            bracket = Bracket { low, high: bracket.low };
            factor *= factor;
        }
        Err(Stop::Found(Finding::Unsteady { rate_per_s: bracket.high }))
    }
}
