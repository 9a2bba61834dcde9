//! Axes: ticks, and the positions of values.

use crate::units;

/// Steps of round numbers within a power of ten, each about twice the previous one.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];
/// Distances between ticks within a power of ten.
const DISTANCES: [f64; 4] = [1.0, 2.0, 2.5, 5.0];
/// Distances between ticks of a time axis, in seconds.
const TIME_STEPS: [f64; 19] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0,
    1_800.0, 3_600.0, 7_200.0, 21_600.0,
];
/// Maximum number of ticks of a time axis.
const TIME_TICKS_MAX: f64 = 6.0;
/// Approximate number of ticks of a linear axis.
const LINEAR_TICKS: f64 = 5.0;
/// Maximum number of ticks of an axis of consecutive numbers.
const NUMBERS_MAX: f64 = 12.0;
/// Maximum number of ticks of an axis of thread counts.
const THREADS_MAX: f64 = 16.0;
/// Number of powers of ten above which only powers of ten have labels.
const DECADES_ALONE: f64 = 2.2;

/// Axis of a plot: its scale and its ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
    /// Values of the ticks with their labels. All are within the axis.
    pub ticks: Vec<(f64, String)>,
    /// Whether each tick is a separate group, not a value on a scale.
    grouped: bool,
}

impl Axis {
    /// Axis of the time since the start of a run.
    pub fn time(end_s: f64) -> Axis {
        let end_s = end_s.max(0.1);
        let fits = |step: &f64| end_s / step <= TIME_TICKS_MAX;
        let step = TIME_STEPS.into_iter().find(fits).unwrap_or(end_s / TIME_TICKS_MAX);
        let (unit_s, unit) = match step {
            ..60.0 => (1.0, "s"),
            ..3_600.0 => (60.0, "min"),
            _ => (3_600.0, "h"),
        };
        let label = |at: f64| format!("{} {unit}", units::plain(at / unit_s));
        Axis {
            low: 0.0,
            high: end_s,
            log: false,
            ticks: multiples(step, end_s, label),
            grouped: false,
        }
    }

    /// Linear axis from zero to at least `max`, which may be zero; `label` formats the number at a tick.
    pub fn linear(max: f64, label: impl Fn(f64) -> String) -> Axis {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = round_from(&DISTANCES, max / LINEAR_TICKS);
        let high = (max / step - 1e-9).ceil() * step;
        Axis { low: 0.0, high, log: false, ticks: multiples(step, high, label), grouped: false }
    }

    /// Axis of consecutive numbers from 1 to `count`, with half a unit of space at both ends.
    pub fn numbers(count: usize) -> Axis {
        let count = count.max(1) as f64;
        let step = round_from(&STEPS, (count / NUMBERS_MAX).max(1.0));
        let mut ticks = multiples(step, count, units::plain);
        ticks.retain(|(at, _)| *at > 0.0);
        if step > 1.0 {
            ticks.insert(0, (1.0, "1".to_owned()));
        }
        Axis { low: 0.5, high: count + 0.5, log: false, ticks, grouped: false }
    }

    /// Logarithmic axis of milliseconds from `min` to `max`, both above zero.
    pub fn log_ms(min: f64, max: f64) -> Axis {
        Axis::log(min, max, units::tick_ms)
    }

    /// Logarithmic axis of rates per second from `min` to `max`, both above zero.
    pub fn log_rate(min: f64, max: f64) -> Axis {
        Axis::log(min, max, units::tick_rate)
    }

    /// Logarithmic axis from `min` to `max`, both above zero; `label` formats the number at a tick.
    pub fn log(min: f64, max: f64, label: impl Fn(f64) -> String) -> Axis {
        let (low, mut high) = (step_to(min), step_from(max));
        if high <= low {
            high = step_from(low * 1.5);
        }
        let decades = (high / low).log10();
        let every = |value: f64| decades < DECADES_ALONE || is_power_of_ten(value);
        let mut ticks = Vec::new();
        let mut value = low;
        while value <= high * (1.0 + 1e-9) {
            if every(value) {
                ticks.push((value, label(value)));
            }
            value = step_from(value * 1.5);
        }
        Axis { low, high, log: true, ticks, grouped: false }
    }

    /// Axis of percentiles, up to the last that `count` values can show. On its logarithmic scale, a quantile is at `1
    /// / (1 - quantile)`, so percentiles near 100 % are far apart.
    pub fn rarity(count: u64) -> Axis {
        let high = (count as f64).max(100.0);
        let mut ticks = vec![(2.0, "50 %".to_owned()), (10.0, "90 %".to_owned())];
        let mut decimals = 0;
        while 10_f64.powi(decimals + 2) <= high {
            let places = decimals as usize;
            let percent = 100.0 - 10_f64.powi(-decimals);
            ticks.push((10_f64.powi(decimals + 2), format!("{percent:.places$} %")));
            decimals += 1;
        }
        Axis { low: 1.0, high, log: true, ticks, grouped: false }
    }

    /// Linear axis from `min` to `max`, not from zero; `label` formats the number at a tick.
    pub fn range(min: f64, max: f64, label: impl Fn(f64) -> String) -> Axis {
        // If all values are nearly equal, add a small range around them.
        let least = if max == 0.0 { 1.0 } else { max.abs() * 0.01 };
        let (middle, width) = (f64::midpoint(min, max), (max - min).max(least));
        let (min, max) = (middle - width / 2.0, middle + width / 2.0);
        let step = round_from(&DISTANCES, width / LINEAR_TICKS);
        let first = (min / step + 1e-9).floor();
        let last = (max / step - 1e-9).ceil().max(first + 1.0);
        let tick = |at: u32| (first + f64::from(at)) * step;
        let ticks = (0..=(last - first) as u32).map(tick).map(|value| (value, label(value)));
        let (low, high) = (first * step, last * step);
        Axis { low, high, log: false, ticks: ticks.collect(), grouped: false }
    }

    /// Axis of thread counts from 0, with ticks at the given places that do not overlap.
    pub fn threads(places: impl IntoIterator<Item = f64>) -> Axis {
        let mut places: Vec<f64> = places.into_iter().collect();
        places.sort_by(f64::total_cmp);
        let high = places.last().copied().filter(|&most| most > 0.0).unwrap_or(1.0);
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for place in places {
            let before = ticks.last().map_or(0.0, |(before, _)| *before);
            if place - before >= high / THREADS_MAX {
                ticks.push((place, units::plain(place)));
            }
        }
        Axis { low: 0.0, high, log: false, ticks, grouped: false }
    }

    /// Axis of groups, numbered from 1. On a vertical axis, the first group is at the top.
    pub fn groups<'a>(labels: impl IntoIterator<Item = &'a str>) -> Axis {
        let at = |(at, label): (usize, &str)| ((at + 1) as f64, label.to_owned());
        let ticks: Vec<_> = labels.into_iter().enumerate().map(at).collect();
        let count = ticks.len().max(1) as f64;
        Axis { low: count + 0.5, high: 0.5, log: false, ticks, grouped: true }
    }

    /// Whether each tick is a separate group instead of a value on a scale.
    pub fn is_grouped(&self) -> bool {
        self.grouped
    }

    /// Whether equal distances on the axis are equal ratios of values.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Position of a value, from 0 to 1. A value beyond an end of the axis is at that end.
    pub fn part(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        part.clamp(0.0, 1.0)
    }
}

fn multiples(step: f64, high: f64, label: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    let count = (high / step + 1e-9).floor() as u32;
    (0..=count).map(|at| f64::from(at) * step).map(|value| (value, label(value))).collect()
}

/// Smallest of the [`STEPS`], times any power of ten, that is at least `value`.
fn step_from(value: f64) -> f64 {
    round_from(&STEPS, value)
}

/// Smallest of `steps`, times any power of ten, that is at least `value`.
fn round_from(steps: &[f64], value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let enough = |step: &f64| step * power >= value * (1.0 - 1e-9);
    steps.iter().copied().find(enough).unwrap_or(10.0) * power
}

/// Greatest of the [`STEPS`], times any power of ten, that is at most `value`.
fn step_to(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let little = |step: &f64| step * power <= value * (1.0 + 1e-9);
    STEPS.into_iter().rev().find(little).unwrap_or(1.0) * power
}

fn is_power_of_ten(value: f64) -> bool {
    (value.log10() - value.log10().round()).abs() < 1e-6
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(axis: &Axis, expect: &[&str]) {
        let labels: Vec<_> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, expect, "{axis:?}");
    }

    #[test]
    fn time_axes_have_round_ticks() {
        check(&Axis::time(1.0), &["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1 s"]);
        check(&Axis::time(11.3), &["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]);
        check(&Axis::time(60.0), &["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]);
        check(&Axis::time(65.0), &["0 s", "15 s", "30 s", "45 s", "60 s"]);
        check(&Axis::time(600.0), &["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]);
        check(&Axis::time(4.0 * 3_600.0), &["0 h", "1 h", "2 h", "3 h", "4 h"]);
    }

    #[test]
    fn amounts_start_at_zero_and_have_round_ticks() {
        let check = |max, expect: &[&str]| check(&Axis::linear(max, units::tick), expect);
        check(0.0, &["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        check(0.04, &["0", "0.01", "0.02", "0.03", "0.04"]);
        check(7.0, &["0", "2", "4", "6", "8"]);
        check(100.0, &["0", "20", "40", "60", "80", "100"]);
        check(812.0, &["0", "200", "400", "600", "800", "1k"]);
        check(5_300.0, &["0", "2k", "4k", "6k"]);
        check(1_040.0, &["0", "250", "500", "750", "1k", "1.25k"]);
        check(1_900_000.0, &["0", "500k", "1M", "1.5M", "2M"]);
    }

    #[test]
    fn latencies_have_round_ticks_on_a_logarithmic_axis() {
        let check = |min, max, expect: &[&str]| check(&Axis::log_ms(min, max), expect);
        check(0.3, 4.0, &["200 µs", "500 µs", "1 ms", "2 ms", "5 ms"]);
        check(0.21, 2_400.0, &["1 ms", "10 ms", "100 ms", "1 s"]);
        check(1.0, 1.0, &["1 ms", "2 ms"]);
        check(5.0, 5.0, &["5 ms", "10 ms"]);
        check(
            0.000_9,
            12_000.0,
            &["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"],
        );
    }

    #[test]
    fn rates_have_round_ticks_on_a_logarithmic_axis() {
        let check = |min, max, expect: &[&str]| check(&Axis::log_rate(min, max), expect);
        check(500.0, 3_200.0, &["500/s", "1k/s", "2k/s", "5k/s"]);
        check(1.0, 1e6, &["1/s", "10/s", "100/s", "1k/s", "10k/s", "100k/s", "1M/s"]);
    }

    #[test]
    fn things_are_numbered_from_one() {
        check(&Axis::numbers(0), &["1"]);
        check(&Axis::numbers(4), &["1", "2", "3", "4"]);
        check(&Axis::numbers(29), &["1", "5", "10", "15", "20", "25"]);
        check(&Axis::numbers(124), &["1", "20", "40", "60", "80", "100", "120"]);
    }

    #[test]
    fn threads_have_ticks_where_they_were_measured() {
        let check = |places: &[f64], expect: &[&str]| {
            check(&Axis::threads(places.iter().copied()), expect);
        };
        check(&[4.0, 1.0, 2.0, 2.0], &["1", "2", "4"]);
        check(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], &["4", "8", "16", "32", "64"]);
        check(&[], &[]);
    }

    #[test]
    fn a_range_does_not_begin_at_zero() {
        let check = |min, max, expect: &[&str]| {
            check(&Axis::range(min, max, units::tick), expect);
        };
        check(66.0, 135.0, &["60", "80", "100", "120", "140"]);
        check(7.0, 7.0, &["6.96", "6.98", "7", "7.02", "7.04"]);
        check(-3.0, 12.0, &["-5", "0", "5", "10", "15"]);
        check(0.0, 0.0, &["-0.6", "-0.4", "-0.2", "0", "0.2", "0.4", "0.6"]);
    }

    #[test]
    fn percentiles_go_as_far_as_the_number_of_values_allows() {
        check(&Axis::rarity(3), &["50 %", "90 %", "99 %"]);
        check(&Axis::rarity(25_000), &["50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    }

    #[test]
    fn a_value_lies_where_its_scale_puts_it() {
        let check = |axis: &Axis, value: f64, part: f64| {
            assert!((axis.part(value) - part).abs() < 1e-9, "{value} of {axis:?}");
        };
        check(&Axis::time(60.0), 15.0, 0.25);
        check(&Axis::log_ms(1.0, 100.0), 10.0, 0.5);
        check(&Axis::rarity(10_000), 100.0, 0.5);
        check(&Axis::rarity(10_000), f64::INFINITY, 1.0);
        check(&Axis::log_ms(1.0, 100.0), 0.0, 0.0);
    }

    proptest! {
        #[test]
        fn every_axis_has_few_ticks_in_order(low in -4.0..5.0, span in 0.0..6.0) {
            let (min, max) = (10_f64.powf(low), 10_f64.powf(low + span));
            let axes =
                [Axis::time(max), Axis::linear(max, units::tick), Axis::log_ms(min, max), Axis::log_rate(min, max)];
            for axis in axes {
                prop_assert!((1..=12).contains(&axis.ticks.len()), "{:?}", axis);
                prop_assert!(axis.ticks.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1), "{:?}", axis);
                prop_assert!(axis.high >= max * (1.0 - 1e-9), "{:?}", axis);
                prop_assert!(axis.low <= min * (1.0 + 1e-9), "{:?}", axis);
            }
        }
    }
}
