//! The first bracket: the rate is halved until the server meets the objective, then doubled until it fails twice.
//!
//! A single failure may be an outlier, and every repeat would then start at the wrong rate. A success by chance does no
//! harm, because the next rate fails.

use super::{Bracket, FLOOR_PER_S, Finding, Hunt, Search, Stop, Trials, Verdict};

/// Maximum number of trials to find the first bracket.
pub(super) fn trials_max(search: &Search) -> usize {
    let doublings = |from: f64, to: f64| (to / from).log2().ceil() as usize;
    // The floor and every rate on the way up may be tried twice. Below a rate that is too high for the generator, the
    // rest of a doubling is bisected.
    let down = doublings(FLOOR_PER_S, search.start_per_s) + 2;
    let up = doublings(FLOOR_PER_S, search.rate_per_s_max) + 1 + search.halvings();
    down + 2 * up
}

impl<T: Trials + Send> Hunt<'_, T> {
    /// Finds two rates, at most a factor of two apart: the lower one holds and the higher one fails.
    pub(super) async fn climb(&mut self) -> Result<Bracket, Stop> {
        let mut failed = None;
        let mut low = self.search.start_per_s;
        loop {
            match self.attempt(low).await? {
                Verdict::Holds => break,
                Verdict::Fails if failed == Some(FLOOR_PER_S) => {
                    return Err(Stop::Found(Finding::Nothing { rate_per_s: FLOOR_PER_S }));
                }
                Verdict::Fails => failed = Some(low),
                Verdict::Unknown if low == FLOOR_PER_S => {
                    return Err(Stop::Found(self.at_most_tried()));
                }
                Verdict::Unknown => {}
            }
            low = (low / 2.0).max(FLOOR_PER_S);
        }
        while let Some(next) = self.above(low) {
            match self.attempt(next).await? {
                Verdict::Holds => low = next,
                Verdict::Fails if failed == Some(next) => {
                    return Ok(Bracket { low, high: next });
                }
                Verdict::Fails => failed = Some(next),
                Verdict::Unknown => {}
            }
        }
        Err(Stop::Found(self.at_most_tried()))
    }

    /// The next rate to try above one that holds; `None` if the ceiling is reached.
    fn above(&self, low: f64) -> Option<f64> {
        let (ceiling, double) = (self.ceiling.per_s, 2.0 * low);
        if double < ceiling {
            return Some(double);
        }
        if self.ceiling.unheard.is_none() {
            return (low < ceiling).then_some(ceiling);
        }
        let middle = Bracket { low, high: ceiling }.middle();
        (ceiling / low > 1.0 + self.search.resolution).then_some(middle)
    }
}
