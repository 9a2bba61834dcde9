//! Whether the machine was quiet, from the times of a fixed calibration loop that runs between trials.
//!
//! The loop always does the same work, so what its time varies by is not the program: other work on
//! the machine, a processor that is throttled, another virtual machine on the same core.

use crate::describe::{finite, median, quantile};

/// Times that differ by more than this from the median of a quiet machine are off; 0.05 is 5 %.
pub const TOLERANCE: f64 = 0.05;
/// The least number of times to know what is usual.
pub const CALIBRATIONS_MIN: usize = 5;
/// The share of times that may be off on a quiet machine.
const OFF_SHARE_MAX: f64 = 0.1;

/// The usual time of the loop on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    median: f64,
}

/// What the machine was like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseVerdict {
    /// At most one time in ten is off, the spread is within [`TOLERANCE`], and so is the drift.
    Quiet,
    /// The times vary.
    Noisy,
    /// The machine became slower or faster while it was measured.
    Drifting,
}

/// How much the machine varied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// In one word.
    pub verdict: NoiseVerdict,
    /// The distance between the 10 % and the 90 % point, as a share of the median.
    pub spread: f64,
    /// How far the median of the last third of the times is above that of the first third, as a share
    /// of it; below 0 if the machine became faster.
    pub drift: f64,
    /// The share of times that are off.
    pub off_share: f64,
}

impl Calibration {
    /// What is usual, from times before the first trial. `None` with fewer than 5 times, or unless
    /// all are above 0.
    pub fn of(before: &[f64]) -> Option<Calibration> {
        let before = finite(before, CALIBRATIONS_MIN)?;
        let is_time = before.iter().all(|&time| time > 0.0);
        is_time.then(|| median(before)).flatten().map(|median| Calibration { median })
    }

    /// The usual time, in the unit of the times given.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// Whether a time differs from the usual by more than [`TOLERANCE`]. A trial next to such a time
    /// is to be marked.
    pub fn is_off(&self, time: f64) -> bool {
        let allowed = self.median / (1.0 + TOLERANCE)..=self.median * (1.0 + TOLERANCE);
        !allowed.contains(&time)
    }

    /// What the machine was like during these times, which are in their order. `None` with fewer
    /// than 5, or if one is not finite.
    pub fn judge(&self, during: &[f64]) -> Option<Noise> {
        let during = finite(during, CALIBRATIONS_MIN)?;
        let off = during.iter().filter(|&&time| self.is_off(time)).count();
        let off_share = off as f64 / during.len() as f64;
        let spread = (quantile(during, 0.9)? - quantile(during, 0.1)?) / median(during)?;
        let third = during.len() / 3;
        let first = median(during.get(..third)?)?;
        let drift = median(during.get(during.len() - third..)?)? / first - 1.0;
        let verdict = if drift.abs() > TOLERANCE {
            NoiseVerdict::Drifting
        } else if off_share > OFF_SHARE_MAX || spread > TOLERANCE {
            NoiseVerdict::Noisy
        } else {
            NoiseVerdict::Quiet
        };
        Some(Noise { verdict, spread, drift, off_share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(during: &[f64]) -> Noise {
        Calibration::of(&[100.0, 101.0, 99.0, 100.0, 100.5]).unwrap().judge(during).unwrap()
    }

    #[test]
    fn a_quiet_machine_varies_little() {
        let mut times: Vec<f64> = (0..30).map(|at| 100.0 + f64::from(at % 4)).collect();
        assert_eq!(judge(&times).verdict, NoiseVerdict::Quiet);
        // A single stall does not make a machine noisy; the trial beside it is marked.
        times[12] = 180.0;
        let found = judge(&times);
        assert_eq!(found.verdict, NoiseVerdict::Quiet);
        assert!((found.off_share - 1.0 / 30.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_machine_with_other_work_is_noisy() {
        let times: Vec<f64> = (0..30).map(|at| if at % 5 == 0 { 130.0 } else { 100.0 }).collect();
        assert_eq!(judge(&times).verdict, NoiseVerdict::Noisy);
        let wide: Vec<f64> = (0..30).map(|at| 100.0 + f64::from(at * 7 % 5) * 2.0).collect();
        let found = judge(&wide);
        assert_eq!((found.verdict, found.off_share > OFF_SHARE_MAX), (NoiseVerdict::Noisy, true));
    }

    #[test]
    fn a_machine_that_gets_slower_or_faster_drifts() {
        let slower: Vec<f64> = (0..30).map(|at| 100.0 + f64::from(at) / 2.0).collect();
        let faster: Vec<f64> = slower.iter().rev().copied().collect();
        let (slower, faster) = (judge(&slower), judge(&faster));
        assert_eq!([slower.verdict, faster.verdict], [NoiseVerdict::Drifting; 2]);
        // The medians of the first and the last third are 102.25 and 112.25.
        assert!((slower.drift - 10.0 / 102.25).abs() < 1e-9, "{slower:?}");
        assert!((faster.drift + 10.0 / 112.25).abs() < 1e-9, "{faster:?}");
    }

    /// All the same as each other, but not as before the run.
    #[test]
    fn a_machine_that_is_slower_than_before_is_noisy() {
        let found = judge(&[120.0; 10]);
        assert_eq!((found.verdict, found.off_share), (NoiseVerdict::Noisy, 1.0));
    }

    #[test]
    fn times_differ_by_factors() {
        let calibration = Calibration::of(&[100.0; 5]).unwrap();
        for (time, is_off) in
            [(105.0, false), (105.1, true), (95.3, false), (95.2, true), (f64::NAN, true)]
        {
            assert_eq!(calibration.is_off(time), is_off, "{time}");
        }
    }

    #[test]
    fn few_times_say_nothing() {
        assert_eq!(Calibration::of(&[1.0; 4]), None);
        assert_eq!(Calibration::of(&[1.0, 1.0, 0.0, 1.0, 1.0]), None);
        assert_eq!(Calibration::of(&[100.0; 5]).unwrap().judge(&[1.0; 4]), None);
    }
}
