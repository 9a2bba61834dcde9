//! Speed of actions: a constant factor, and the hours of a day.
//!
//! If actions have exponential intervals by a uniform clock, they also have them by a clock whose speed changes, with a
//! rate that follows the speed. The sequences of actions therefore do not depend on the speed.

use std::time::Duration;

use super::Action;

/// Relative activity of users in each hour of a day, from midnight. It is lowest at four in the morning and highest in
/// the evening.
const HOURS: [f64; 24] = [
    0.72, 0.50, 0.36, 0.28, 0.25, 0.30, 0.45, 0.68, 0.88, 1.00, 1.08, 1.14, 1.20, 1.20, 1.16, 1.14,
    1.16, 1.22, 1.32, 1.46, 1.60, 1.66, 1.44, 1.06,
];
/// Number of pieces of a day. Activity is constant in a piece.
const PIECES: usize = 24 * 60;

#[derive(Debug)]
pub(crate) struct Tempo {
    factor: f64,
    day: Option<Day>,
}

#[derive(Debug)]
struct Day {
    length_s: f64,
    /// Share of the day's actions that are due before the end of each piece; the last share is 1.
    done: Vec<f64>,
}

impl Tempo {
    /// Creates a clock that is `factor` times as fast on average: uniform, or varying over days of this length.
    pub(crate) fn new(factor: f64, day: Option<Duration>) -> Tempo {
        assert!(factor > 0.0, "the factor must be above 0");
        Tempo { factor, day: day.filter(|length| !length.is_zero()).map(Day::new) }
    }

    /// Converts a due time of a uniform clock to a time of this clock.
    pub(crate) fn at(&self, due: Duration) -> Duration {
        let even_s = due.as_secs_f64() / self.factor;
        Duration::from_secs_f64(self.day.as_ref().map_or(even_s, |day| day.at(even_s)))
    }

    /// Returns the actions with due times of this clock.
    pub(crate) fn apply(
        self,
        actions: impl Iterator<Item = Action>,
    ) -> impl Iterator<Item = Action> {
        actions.map(move |action| Action { due: self.at(action.due), ..action })
    }
}

impl Day {
    fn new(length: Duration) -> Day {
        let mut done = Vec::with_capacity(PIECES);
        let mut sum = 0.0;
        for piece in 0..PIECES {
            // From the middle of an hour to the middle of the next, activity changes linearly.
            let hour = (piece as f64 + 0.5) / 60.0 + 23.5;
            let [before, after] = [hour, hour + 1.0].map(|hour| {
                let Some(active) = HOURS.get(hour as usize % 24) else { unreachable!("below 24") };
                *active
            });
            sum += before + (after - before) * hour.fract();
            done.push(sum);
        }
        done.iter_mut().for_each(|part| *part /= sum);
        Day { length_s: length.as_secs_f64(), done }
    }

    fn at(&self, even_s: f64) -> f64 {
        let days = even_s / self.length_s;
        let part = days.fract();
        let piece = self.done.partition_point(|done| *done < part).min(PIECES - 1);
        let done_at =
            |end: Option<usize>| end.and_then(|end| self.done.get(end)).map_or(0.0, |d| *d);
        let (from, to) = (done_at(piece.checked_sub(1)), done_at(Some(piece)));
        let within = if to > from { (part - from) / (to - from) } else { 0.0 };
        (days.trunc() + (piece as f64 + within) / PIECES as f64) * self.length_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_shortens_time() {
        let tempo = Tempo::new(4.0, None);
        assert_eq!(tempo.at(Duration::from_secs(10)), Duration::from_millis(2_500));
    }

    #[test]
    fn a_day_has_as_many_actions_as_an_even_one_and_they_come_by_its_hours() {
        let tempo = Tempo::new(1.0, Some(Duration::from_secs(24)));
        // Counts a thousand actions per second for two days of 24 s. Each second is an hour.
        let mut hours = [0_u32; 48];
        let mut last = Duration::ZERO;
        for due_ms in 0..48_000 {
            let at = tempo.at(Duration::from_millis(due_ms));
            assert!(at >= last, "time does not go back");
            last = at;
            hours[(at.as_secs_f64() + 1e-9) as usize] += 1;
        }
        let mean: f64 = HOURS.iter().sum::<f64>() / 24.0;
        for (hour, count) in hours.iter().enumerate() {
            let around = [23, 24, 25].map(|next| HOURS[(hour + next) % 24]);
            let expect = (around[0] + 6.0 * around[1] + around[2]) / 8.0 / mean * 1_000.0;
            assert!((f64::from(*count) - expect).abs() < 6.0, "{hour}: {count} for {expect}");
        }
        assert_eq!(hours[..24].iter().sum::<u32>(), 24_000);
    }
}
