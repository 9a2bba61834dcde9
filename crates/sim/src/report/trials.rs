//! Plots of a search: its trials by rate, and in order of time.

use charts::{Along, Axis, Band, Figure, Line, Mark, Point, Shape};
use stats::{CONFIDENCE_PERCENT, Interval};

use super::plots::{largest, log_axis};
use crate::capacity::text::rate;
use crate::capacity::{Capacity, Finding, Trial, Verdict};
use crate::units;

/// Factor by which an axis may extend beyond the tried rates to show the interval. With only two repeats that differ,
/// the interval can be wider than all measurements.
const BEYOND: f64 = 10.0;
/// Color of the result.
const FOUND: &str = "k2";
/// Color of the result of one repeat.
const REPEAT: &str = "k3";

/// Shape and color for a verdict.
pub(super) fn sign(verdict: Verdict) -> (Shape, &'static str) {
    match verdict {
        Verdict::Holds => (Shape::Disc, "k0"),
        Verdict::Fails => (Shape::Cross, "k1"),
        Verdict::Unknown => (Shape::Diamond, "k6"),
    }
}

/// Plots the 99th percentile of each trial by its rate. `None` if no trial had a response.
pub(super) fn latencies(capacity: &Capacity) -> Option<Figure> {
    let measured: Vec<&Trial> =
        capacity.trials.iter().filter(|trial| p99_ms(trial) > 0.0).collect();
    let objective = capacity.slo.p99_ms();
    let highest = largest(measured.iter().map(|trial| p99_ms(trial)))?;
    let shown = measured.iter().map(|trial| p99_ms(trial)).chain(objective);
    let marks = measured.iter().map(|trial| mark(trial, (trial.rate_per_s, p99_ms(trial))));
    Some(Figure {
        id: "trials-p99".to_owned(),
        title: "p99 at each rate".to_owned(),
        unit: "of the slowest kind, by the requested rate; both logarithmic".to_owned(),
        description: format!(
            "{} at {}; p99 is {} at most",
            units::several(measured.len() as u64, "trial", "trials"),
            range_text(capacity),
            units::ms(highest)
        ),
        x: rate_axis(capacity)?,
        y: log_axis(shown)?,
        lines: objective.into_iter().map(objective_line).collect(),
        strips: Vec::new(),
        outlines: Vec::new(),
        marks: marks.collect(),
        bands: band(capacity, Along::X).into_iter().collect(),
    })
}

/// Plots the rates of the trials in order. `None` without trials.
pub(super) fn rates(capacity: &Capacity) -> Option<Figure> {
    let trials = &capacity.trials;
    let at = |trial: &Trial| (trial.number as f64, trial.rate_per_s);
    let mut lines =
        vec![Line { class: "k6 path".to_owned(), points: path(trials), ..Line::default() }];
    lines.extend(repeats(capacity));
    Some(Figure {
        id: "trials-rate".to_owned(),
        title: "Trial after trial".to_owned(),
        unit: "requested rate, logarithmic, by the number of the trial".to_owned(),
        description: format!(
            "{} at {}",
            units::several(trials.len() as u64, "trial", "trials"),
            range_text(capacity)
        ),
        x: Axis::numbers(trials.len()),
        y: rate_axis(capacity)?,
        lines,
        strips: Vec::new(),
        outlines: Vec::new(),
        marks: trials.iter().map(|trial| mark(trial, at(trial))).collect(),
        bands: band(capacity, Along::Y).into_iter().collect(),
    })
}

fn p99_ms(trial: &Trial) -> f64 {
    trial.measures.latency.p99_ms
}

fn mark(trial: &Trial, at: (f64, f64)) -> Mark {
    let (shape, class) = sign(trial.verdict);
    let label = match trial.verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Unknown => "inconclusive",
    };
    let part = trial.repeat.map_or_else(|| "climb".to_owned(), |repeat| format!("repeat {repeat}"));
    let (asked, done) = (rate(trial.rate_per_s), rate(trial.measures.done_per_s));
    let (number, p99, why) = (trial.number, units::ms(p99_ms(trial)), trial.why());
    let text = format!("Trial {number} ({part}): {asked}/s asked, {done}/s done, p99 {p99}\n{why}");
    Mark { shape, class, label: label.to_owned(), at, interval: None, text }
}

/// Horizontal line at the objective.
fn objective_line(ms: f64) -> Line {
    Line {
        label: format!("p99 < {}", units::ms(ms)),
        class: "k3".to_owned(),
        points: vec![Some((0.0, ms)), Some((f64::INFINITY, ms))],
        fill: None,
    }
}

/// Line from trial to trial, interrupted at each repeat.
fn path(trials: &[Trial]) -> Vec<Point> {
    let mut points = Vec::new();
    let mut before = None;
    for trial in trials {
        if before.is_some_and(|repeat| repeat != trial.repeat) {
            points.push(None);
        }
        before = Some(trial.repeat);
        points.push(Some((trial.number as f64, trial.rate_per_s)));
    }
    points
}

/// The result of each repeat, as a line over its trials.
fn repeats(capacity: &Capacity) -> impl Iterator<Item = Line> {
    capacity.repeats_per_s.iter().enumerate().filter_map(|(at, &per_s)| {
        let of_repeat = |trial: &&Trial| trial.repeat == Some(at + 1);
        let first = capacity.trials.iter().find(of_repeat)?.number as f64;
        let last = capacity.trials.iter().rfind(of_repeat)?.number as f64;
        let points = vec![Some((first - 0.4, per_s)), Some((last + 0.4, per_s))];
        Some(Line { class: format!("{REPEAT} bar"), points, ..Line::default() })
    })
}

/// The interval, if there is one.
fn band(capacity: &Capacity, along: Along) -> Option<Band> {
    let Finding::Holds { per_s: Interval { estimate, low, high }, .. } = capacity.finding else {
        return None;
    };
    let label = format!("mean of the repeats and its {CONFIDENCE_PERCENT} % interval");
    Some(Band { along, class: FOUND, label, low, middle: estimate, high })
}

/// The lowest and the highest tried rate.
fn tried(capacity: &Capacity) -> Option<(f64, f64)> {
    let rates = || capacity.trials.iter().map(|trial| trial.rate_per_s);
    Some((rates().reduce(f64::min)?, largest(rates())?))
}

fn range_text(capacity: &Capacity) -> String {
    let (low, high) = tried(capacity).unwrap_or_default();
    format!("{} to {} requests per second", rate(low), rate(high))
}

fn rate_axis(capacity: &Capacity) -> Option<Axis> {
    let (low, high) = tried(capacity)?;
    Some(match capacity.finding {
        Finding::Holds { per_s, .. } => Axis::log_rate(
            low.min(per_s.low.max(low / BEYOND)),
            high.max(per_s.high.min(high * BEYOND)),
        ),
        _ => Axis::log_rate(low, high),
    })
}
