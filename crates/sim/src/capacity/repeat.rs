//! One measurement of the capacity: a bracket is halved until its ends are near enough.
//!
//! Its bracket is as wide as that of the climb and lies about the repeat before, since halving leans
//! towards the middle of its bracket: about the right place that does no harm. It is then shifted by
//! up to half of its width, so neither end has been tried. An end that halving never came away from
//! is tried then, and moved outwards if it is wrong. So is one that was too much for the generator;
//! it still is, and the search is over.

use super::{Bracket, FLOOR_PER_S, Finding, Hunt, Search, Stop, Trials, Verdict};

/// How often a wrong end is moved, each time twice as far: together by a doubling at 5 %. A server
/// whose capacity moves further between repeats has none that could be found.
const MOVES_MAX: usize = 4;
/// Multiples of the golden ratio spread evenly however many there are, one far from the next.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The most trials of one repeat: halving the bracket, trying and moving an end, and halving the
/// last move, which was as far as two to the power of all moves but the first.
pub(super) fn trials_max(search: &Search) -> usize {
    search.halvings() + (MOVES_MAX + 1) + (MOVES_MAX - 1)
}

/// The shift of a repeat's bracket, as a power of its width, from about -1/2 to 1/2: some whole
/// cells, by which halving takes other turns and comes from the other side, and a part of a cell, by
/// which the last two rates are others.
fn shift(repeat: usize, search: &Search) -> f64 {
    let cells = f64::from(1_u32 << search.halvings());
    let turns = (0.5 + repeat as f64 * GOLDEN).fract() - 0.5;
    let part = (repeat as f64 + 0.5) / search.repeats as f64 - 0.5;
    ((turns * cells).round() + part) / cells
}

impl<T: Trials + Send> Hunt<'_, T> {
    /// The capacity as repeat number `repeat`, from 0, finds it about `centre` from a bracket whose
    /// ends are `width` apart.
    pub(super) async fn measure(
        &mut self,
        repeat: usize,
        centre: f64,
        width: f64,
    ) -> Result<f64, Stop> {
        let by = shift(repeat, self.search);
        let low = (centre * width.powf(by - 0.5)).max(FLOOR_PER_S);
        let high = (centre * width.powf(by + 0.5)).max(low * (1.0 + self.search.resolution));
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
        // Rounding must not cost a trial.
        let near = (1.0 + self.search.resolution) * (1.0 + 1e-9);
        while bracket.high / bracket.low > near {
            let middle = bracket.middle();
            match self.attempt(middle).await? {
                Verdict::Holds => bracket.low = middle,
                // The limit may well lie below a rate that is too much for the generator.
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
