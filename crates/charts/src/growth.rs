//! Plots of growth: speed-up over the number of threads, and power laws.

use stats::Interval;

use crate::axis::Axis;
use crate::figure::Figure;
use crate::marks::{Mark, Shape};
use crate::svg::{Line, Point};
use crate::units::{self, Format};
use crate::{Names, color};

/// Number of points along a fitted curve.
const POINTS: u32 = 60;
/// Style of ideal lines: gray and faint.
const IDEAL: &str = "k6 faint";

/// Measurements of a design, and the law fitted to them.
pub struct Series<'a> {
    /// The name of the design.
    pub label: &'a str,
    /// Measured values: each place with its value, in ascending order of places.
    pub points: &'a [(f64, Interval)],
    /// The fitted law; if `None`, lines connect the points.
    pub fit: Option<&'a dyn Fn(f64) -> f64>,
}

/// Speed-up over the number of threads: a mark with its interval at each number, the fitted law of each design, and the
/// ideal line, on which `n` threads are `n` times as fast. `None` if there are no points or one is not finite.
pub fn speedup(names: Names<'_>, series: &[Series<'_>]) -> Option<Figure> {
    let (threads, most) = (ends(series, |point| point.0)?.1, ends(series, |point| point.1.high)?.1);
    let mut lines = vec![Line {
        label: "ideal".to_owned(),
        class: IDEAL.to_owned(),
        points: vec![Some((1.0, 1.0)), Some((threads, threads))],
        fill: None,
    }];
    let curve = |from: f64, to: f64, part: f64| from + (to - from) * part;
    lines.extend(series.iter().enumerate().map(|(at, one)| line(at, one, curve)));
    let text = |value: f64| format!("{} times", units::number(value));
    Some(Figure {
        x: Axis::threads(series.iter().flat_map(|one| one.points).map(|point| point.0)),
        y: Axis::linear(most.max(threads), units::plain),
        description: format!("at the most threads: {}", last(series, text)),
        ..figure(names, series, lines, &thread_count, &text)
    })
}

/// Growth with a size, on logarithmic axes, so that a power law is a straight line. `None` if there are no points, or
/// if a value is not finite and above 0.
pub fn power_law(names: Names<'_>, series: &[Series<'_>], x: Format, y: Format) -> Option<Figure> {
    let (first, last_x) = ends(series, |point| point.0)?;
    let lowest = ends(series, |point| point.1.estimate)?.0;
    if first <= 0.0 || lowest <= 0.0 {
        return None;
    }
    // A lower bound may be 0 or less, which a logarithmic axis cannot show.
    let low = ends(series, |point| point.1.low)?.0.max(lowest / 10.0);
    let high = ends(series, |point| point.1.high)?.1;
    let curve = |from: f64, to: f64, part: f64| from * (to / from).powf(part);
    let lines = series.iter().enumerate().map(|(at, one)| line(at, one, curve)).collect();
    let description = format!("at the greatest size: {}", last(series, y.text));
    let drawn = figure(names, series, lines, &x.text, &y.text);
    Some(Figure {
        x: Axis::log(first, last_x, x.tick),
        y: Axis::log(low, high, y.tick),
        description,
        unit: format!("{}; both logarithmic", names.unit),
        ..drawn
    })
}

fn thread_count(threads: f64) -> String {
    units::several(threads.round() as u64, "thread", "threads")
}

/// Minimum and maximum of a value over all points. `None` if there are no points or one is not finite.
fn ends(series: &[Series<'_>], of: impl Fn(&(f64, Interval)) -> f64) -> Option<(f64, f64)> {
    let is_finite = |(x, Interval { estimate, low, high }): &(f64, Interval)| {
        [x, estimate, low, high].into_iter().all(|value| value.is_finite())
    };
    let points = || series.iter().flat_map(|one| one.points);
    let values = || points().map(&of);
    points()
        .all(is_finite)
        .then(|| Some((values().reduce(f64::min)?, values().reduce(f64::max)?)))?
}

/// The fitted law from the first to the last point; without a law, lines between the points.
fn line(at: usize, series: &Series<'_>, between: impl Fn(f64, f64, f64) -> f64) -> Line {
    let ends = series.points.first().zip(series.points.last());
    let points: Vec<Point> = match (series.fit, ends) {
        (Some(fit), Some((first, last))) => (0..=POINTS)
            .map(|step| between(first.0, last.0, f64::from(step) / f64::from(POINTS)))
            .map(|x| Some((x, fit(x))).filter(|(_, y)| y.is_finite()))
            .collect(),
        _ => series.points.iter().map(|(x, y)| Some((*x, y.estimate))).collect(),
    };
    Line { label: series.label.to_owned(), class: color(at).to_owned(), points, fill: None }
}

/// The measurement at the last point of each series, as text.
fn last(series: &[Series<'_>], text: impl Fn(f64) -> String) -> String {
    let one = |series: &Series<'_>| {
        series.points.last().map(|(_, y)| format!("{} {}", series.label, text(y.estimate)))
    };
    series.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// The figure with its marks; the caller adds axes and description.
fn figure(
    names: Names<'_>,
    series: &[Series<'_>],
    lines: Vec<Line>,
    x: &dyn Fn(f64) -> String,
    y: &dyn Fn(f64) -> String,
) -> Figure {
    let marks = series.iter().enumerate().flat_map(|(at, series)| {
        series.points.iter().map(move |(place, Interval { estimate, low, high })| Mark {
            shape: Shape::Disc,
            class: color(at),
            // Marks have no label: the line of the same color has one at its end.
            label: String::new(),
            at: (*place, *estimate),
            interval: Some([*low, *high]),
            text: format!(
                "{} at {}: {} [{} to {}]",
                series.label,
                x(*place),
                y(*estimate),
                y(*low),
                y(*high)
            ),
        })
    });
    Figure {
        id: names.id.to_owned(),
        title: names.title.to_owned(),
        unit: names.unit.to_owned(),
        description: String::new(),
        x: Axis::linear(1.0, units::plain),
        y: Axis::linear(1.0, units::plain),
        lines,
        strips: Vec::new(),
        outlines: Vec::new(),
        marks: marks.collect(),
        bands: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names<'_> = Names { id: "growth", title: "Growth", unit: "ms" };

    fn point(x: f64, y: f64) -> (f64, Interval) {
        (x, Interval { estimate: y, low: y * 0.9, high: y * 1.1 })
    }

    #[test]
    fn a_speed_up_is_beside_the_ideal() {
        let points = [point(1.0, 1.0), point(2.0, 1.8), point(4.0, 2.9)];
        let law = |n: f64| n / (1.0 + 0.1 * (n - 1.0));
        let series = [
            Series { label: "sharded", points: &points, fit: Some(&law) },
            Series { label: "central", points: &points[..2], fit: None },
        ];
        let figure = speedup(NAMES, &series).unwrap();
        let ends: Vec<_> = figure
            .lines
            .iter()
            .map(|line| (line.label.as_str(), line.points.last().unwrap()))
            .collect();
        let expect = [
            ("ideal", &Some((4.0, 4.0))),
            ("sharded", &Some((4.0, law(4.0)))),
            ("central", &Some((2.0, 1.8))),
        ];
        assert_eq!(ends, expect);
        assert_eq!(figure.marks.len(), 5);
        assert_eq!(figure.marks[1].interval, Some([1.8 * 0.9, 1.8 * 1.1]));
        let text = figure.marks[1].text.replace('\u{a0}', " ");
        assert_eq!(text, "sharded at 2 threads: 1.80 times [1.62 times to 1.98 times]");
        assert_eq!(figure.y.part(4.0), 1.0, "the ideal is within the plot");
    }

    #[test]
    fn a_power_law_is_a_straight_line() {
        let points = [point(100.0, 3.0), point(10_000.0, 300.0)];
        let law = |x: f64| 0.03 * x;
        let series = [Series { label: "central", points: &points, fit: Some(&law) }];
        let figure = power_law(NAMES, &series, Format::NUMBER, Format::NUMBER).unwrap();
        let parts: Vec<(f64, f64)> = figure.lines[0]
            .points
            .iter()
            .flatten()
            .map(|(x, y)| (figure.x.part(*x), figure.y.part(*y)))
            .collect();
        let slope = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
        let first = slope(&parts);
        assert!(parts.windows(2).all(|pair| (slope(pair) - first).abs() < 1e-6), "{parts:?}");
        assert_eq!(figure.unit, "ms; both logarithmic");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let speedup = |points: &[_]| speedup(NAMES, &[Series { label: "a", points, fit: None }]);
        let power_law = |points: &[_]| {
            power_law(
                NAMES,
                &[Series { label: "a", points, fit: None }],
                Format::NUMBER,
                Format::NUMBER,
            )
        };
        for points in [vec![], vec![point(1.0, f64::NAN)], vec![point(f64::INFINITY, 1.0)]] {
            assert!(speedup(&points).is_none() && power_law(&points).is_none(), "{points:?}");
        }
        for (x, y) in [(0.0, 1.0), (1.0, 0.0), (1.0, -2.0)] {
            assert!(power_law(&[point(x, y)]).is_none(), "{x} {y}");
        }
        // The axis starts at 0, so it cuts off the lower bound.
        let wide = [(1.0, Interval { estimate: 5.0, low: -1.0, high: 11.0 })];
        let figure = power_law(&wide).unwrap();
        assert_eq!(figure.y.part(-1.0), 0.0);
    }
}
