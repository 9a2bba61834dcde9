//! Noise of the machine, measured by the times of a fixed calibration loop that runs between trials.
//!
//! The loop always does the same work, so the measured program does not cause variations of its time. Causes are other
//! work on the machine, a throttled processor, or another virtual machine on the same core.

use crate::describe::{finite, median, quantile};

/// Maximum deviation of a time from the usual time; with a greater deviation, the time is off. 0.05 is 5 %.
pub const TOLERANCE: f64 = 0.05;
/// Minimum number of times from which the usual time is determined.
pub const CALIBRATIONS_MIN: usize = 5;
/// Maximum share of times that are off on a quiet machine.
const OFF_SHARE_MAX: f64 = 0.1;

/// The usual time of the loop on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    median: f64,
}

/// Judgement of a machine in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseVerdict {
    /// At most one time in ten is off, and both spread and drift are within [`TOLERANCE`].
    Quiet,
    /// The times vary too much.
    Noisy,
    /// The machine became slower or faster during the run.
    Drifting,
}

/// Noise of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Summary in one word.
    pub verdict: NoiseVerdict,
    /// The distance between the 10 % and the 90 % quantile, as a share of the median.
    pub spread: f64,
    /// The median of the last third of the times minus the median of the first third, as a share of the latter. Below
    /// 0, the machine became faster.
    pub drift: f64,
    /// The share of times that are off.
    pub off_share: f64,
}

impl Calibration {
    /// Determines the usual time from times before the first trial. `None` if there are fewer than 5 times or one is
    /// not above 0.
    pub fn of(before: &[f64]) -> Option<Calibration> {
        let before = finite(before, CALIBRATIONS_MIN)?;
        let is_time = before.iter().all(|&time| time > 0.0);
        is_time.then(|| median(before)).flatten().map(|median| Calibration { median })
    }

    /// The usual time, in the unit of the given times.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// Whether a time differs from the usual time by more than [`TOLERANCE`]. Reports must mark trials next to such a
    /// time.
    pub fn is_off(&self, time: f64) -> bool {
        let allowed = self.median / (1.0 + TOLERANCE)..=self.median * (1.0 + TOLERANCE);
        !allowed.contains(&time)
    }

    /// Judges the machine by the times during the run, in their order. `None` if there are fewer than 5 times or one is
    /// not finite.
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
        // A single stall does not make a machine noisy; only the trial next to it is marked.
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

    /// The times are equal to each other, but differ from the times before the run.
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
