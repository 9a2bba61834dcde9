//! Plots of a run. They omit missing measurements.

use charts::{Axis, Figure, Fill, Line, Point, Strip, color};

use super::Recording;
use crate::units;
use crate::watch::{Delivery, Window, WindowKind};

/// Maximum number of strips of a plot, whose numbers are shown while the pointer is over them. In a long run, a strip
/// covers several windows.
const STRIPS_MAX: usize = 120;
/// Rows for each halving of the distance to 100 % in a percentile curve.
const CURVE_TICKS: u32 = 10;

/// Successful requests per second, one figure per kind.
pub(super) fn rates(recording: &Recording) -> Vec<Figure> {
    each_kind(recording, |at, kind| {
        let of = |window: &Window| window.kinds.get(at).map_or(0, |kind| kind.count);
        let (id, color) = (format!("rate-{at}"), color(at));
        per_second(recording, (id, kind.to_owned(), "per second"), color, of)
    })
}

/// Failures per second, if there were any.
pub(super) fn errors(recording: &Recording) -> Option<Figure> {
    let of = |window: &Window| window.kinds.iter().map(|kind| kind.errors).sum();
    let any = recording.windows().iter().map(of).sum::<u64>() > 0;
    let names = ("errors".to_owned(), "Errors".to_owned(), "per second, of all kinds");
    any.then(|| per_second(recording, names, "bad", of)).flatten()
}

/// Latencies over time, one figure per kind, all with the same scale so that they can be compared.
pub(super) fn latencies(recording: &Recording) -> Vec<Figure> {
    let quantiles = |kind: &WindowKind| [kind.p50_ms, kind.p99_ms, kind.max_ms];
    let all = recording.windows().iter().flat_map(|window| window.kinds.iter().map(quantiles));
    let Some(y) = log_axis(all.flatten()) else { return Vec::new() };
    each_kind(recording, |at, kind| {
        let of = |window: &Window| window.kinds.get(at).map(quantiles);
        let names = (format!("latency-{at}"), kind.to_owned(), latency_unit(recording));
        three_over_time(recording, names, color(at), &y, of)
    })
}

/// Time until posts reached the homes of followers, if it was sampled.
pub(super) fn delivery(recording: &Recording) -> Option<Figure> {
    let of = |window: &Window| {
        let sampled = window.delivery.filter(|delivery| delivery.samples > 0);
        sampled.map(|Delivery { p50_ms, p99_ms, max_ms, .. }| [p50_ms, p99_ms, max_ms])
    };
    let y = log_axis(recording.windows().iter().filter_map(of).flatten())?;
    let names = ("delivery".to_owned(), "Delivery lag".to_owned(), "from accepted to seen");
    three_over_time(recording, names, "k0", &y, of)
}

/// Memory of the server, if it reported it.
pub(super) fn memory(recording: &Recording) -> Option<Figure> {
    let of = |window: &Window| window.server.map(|server| server.memory_bytes as f64);
    let max = largest(recording.windows().iter().filter_map(of))?;
    let (unit, divisor) = if max >= 2e9 { ("GB", 1e9) } else { ("MB", 1e6) };
    let y = Axis::linear(max / divisor, units::plain);
    let text = |value: f64| format!("{} {unit}", units::number(value));
    let names = ("memory".to_owned(), "Server memory".to_owned(), unit);
    one_over_time(recording, names, ("k2", y), |window| Some(of(window)? / divisor), text)
}

/// CPU time of the server, if it reported it.
pub(super) fn processor(recording: &Recording) -> Option<Figure> {
    let of = |window: &Window| window.server.map(|server| server.cores);
    let y = Axis::linear(largest(recording.windows().iter().filter_map(of))?, units::plain);
    let text = |value: f64| format!("{} cores", units::number(value));
    let names = ("processor".to_owned(), "Server CPU".to_owned(), "cores");
    one_over_time(recording, names, ("k1", y), of, text)
}

/// The generator's own delay.
pub(super) fn scheduling_delay(recording: &Recording) -> Option<Figure> {
    let of = |window: &Window| Some(window.scheduling_delay_p99_ms);
    let y = Axis::linear(largest(recording.windows().iter().filter_map(of))?, units::plain);
    let names =
        ("scheduling-delay".to_owned(), "Generator's scheduling delay".to_owned(), "ms, p99");
    one_over_time(recording, names, ("k3", y), of, units::ms)
}

/// Latency by percentile over the whole run, one line per kind.
pub(super) fn percentiles(recording: &Recording) -> Option<Figure> {
    let measured: Vec<_> = (recording.kinds().iter().zip(recording.latencies_us()).enumerate())
        .filter(|(_, (_, latencies))| !latencies.is_empty())
        .collect();
    let count = measured.iter().map(|(_, (_, latencies))| latencies.len()).max()?;
    let ms = |us: u64| us.max(1) as f64 / 1_000.0;
    let ends = measured.iter().flat_map(|(_, (_, all))| [ms(all.min()), ms(all.max())]);
    let (x, y) = (Axis::rarity(count), log_axis(ends)?);
    let line = |&(at, (kind, latencies)): &(usize, (&&str, &hdrhistogram::Histogram<u64>))| Line {
        label: (*kind).to_owned(),
        class: color(at).to_owned(),
        points: latencies
            .iter_quantiles(CURVE_TICKS)
            .map(|row| {
                // The last row is infinitely rare: use the rarest value that this number of samples can show.
                let rarity = 1.0 / (1.0 - row.quantile_iterated_to());
                Some((rarity.min(latencies.len() as f64), ms(row.value_iterated_to())))
            })
            .collect(),
        fill: None,
    };
    let at = |quantile: f64| {
        let reported = measured.iter().map(|(_, (kind, latencies))| {
            format!("{kind} {}", units::ms(ms(latencies.value_at_quantile(quantile))))
        });
        reported.collect::<Vec<_>>().join("\n")
    };
    let strips = x.ticks.iter().map(|(rarity, label)| Strip {
        from: rarity / 1.6,
        to: rarity * 1.6,
        text: format!("{label} took at most\n{}", at(1.0 - 1.0 / rarity)),
    });
    Some(Figure {
        id: "percentiles".to_owned(),
        title: "Latency by percentile".to_owned(),
        unit: latency_unit(recording).to_owned(),
        description: format!("99 % took at most: {}", at(0.99).replace('\n', ", ")),
        lines: measured.iter().map(line).collect(),
        strips: strips.collect(),
        outlines: Vec::new(),
        marks: Vec::new(),
        bands: Vec::new(),
        x,
        y,
    })
}

/// Unit and meaning of latencies, as text.
fn latency_unit(recording: &Recording) -> &'static str {
    if recording.plan().is_some_and(|plan| plan.closed) {
        "from when sent, logarithmic"
    } else {
        "from when due, logarithmic"
    }
}

/// Id, title and unit of a figure.
type Names = (String, String, &'static str);

fn each_kind(recording: &Recording, figure: impl Fn(usize, &str) -> Option<Figure>) -> Vec<Figure> {
    recording.kinds().iter().enumerate().filter_map(|(at, kind)| figure(at, kind)).collect()
}

/// Plots a count per second. Omits a very short last window, whose rate would be random.
fn per_second(
    recording: &Recording,
    names: Names,
    color: &str,
    of: impl Fn(&Window) -> u64,
) -> Option<Figure> {
    let usual = recording.plan()?.window.as_secs_f64();
    let rate = |window: &Window| {
        (window.seconds >= usual / 4.0 && window.seconds > 0.0)
            .then(|| of(window) as f64 / window.seconds)
    };
    let y = Axis::linear(largest(recording.windows().iter().filter_map(rate))?, units::tick);
    let text = |value: f64| format!("{} per second", units::number(value));
    one_over_time(recording, names, (color, y), rate, text)
}

fn one_over_time(
    recording: &Recording,
    (id, title, unit): Names,
    (color, y): (&str, Axis),
    of: impl Fn(&Window) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> Option<Figure> {
    let values: Vec<f64> = recording.windows().iter().filter_map(&of).collect();
    let (low, high) = (values.iter().copied().reduce(f64::min)?, largest(values)?);
    let report = |windows: &[Window]| largest(windows.iter().filter_map(&of)).map(&text);
    let points = points(recording, &of);
    Some(Figure {
        id,
        description: format!("{title}: between {} and {}", text(low), text(high)),
        title,
        unit: unit.to_owned(),
        x: time_axis(recording),
        y,
        lines: vec![Line {
            label: String::new(),
            class: color.to_owned(),
            points,
            fill: Some(Fill::ToAxis),
        }],
        strips: strips(recording, report),
        outlines: Vec::new(),
        marks: Vec::new(),
        bands: Vec::new(),
    })
}

/// Plots the median, the 99th percentile and the maximum.
fn three_over_time(
    recording: &Recording,
    (id, title, unit): Names,
    color: &str,
    y: &Axis,
    of: impl Fn(&Window) -> Option<[f64; 3]>,
) -> Option<Figure> {
    let one = |which: usize| {
        let of = &of;
        move |window: &Window| of(window)?.get(which).copied().filter(|&ms| ms > 0.0)
    };
    let worst = |windows: &[Window], which| largest(windows.iter().filter_map(one(which)));
    let p99 = worst(recording.windows(), 1)?;
    let line = |which, label: &str, weight, fill| Line {
        label: label.to_owned(),
        class: format!("{color} {weight}"),
        points: points(recording, one(which)),
        fill,
    };
    let report = |windows: &[Window]| {
        let text = |which| worst(windows, which).map(units::ms);
        Some(format!("p50 {}, p99 {}, max {}", text(0)?, text(1)?, text(2)?))
    };
    let band = Fill::To(points(recording, one(0)));
    Some(Figure {
        id,
        description: format!("{title}: p99 of a window is {} at most", units::ms(p99)),
        title,
        unit: unit.to_owned(),
        x: time_axis(recording),
        y: y.clone(),
        lines: vec![
            line(2, "max", "faint", None),
            line(1, "p99", "strong", Some(band)),
            line(0, "p50", "", None),
        ],
        strips: strips(recording, report),
        outlines: Vec::new(),
        marks: Vec::new(),
        bands: Vec::new(),
    })
}

fn points(recording: &Recording, of: impl Fn(&Window) -> Option<f64>) -> Vec<Point> {
    let middle = |window: &Window| window.end_s - window.seconds / 2.0;
    recording.windows().iter().map(|window| Some((middle(window), of(window)?))).collect()
}

/// Divides the plot into strips, each with the highest values of its windows.
fn strips(recording: &Recording, report: impl Fn(&[Window]) -> Option<String>) -> Vec<Strip> {
    let windows = recording.windows();
    let strip = |windows: &[Window]| {
        let (first, last) = (windows.first()?, windows.last()?);
        let (from, to) = (first.end_s - first.seconds, last.end_s);
        let span = format!("{} to {}", units::number(from.max(0.0)), units::seconds(to));
        Some(Strip { from, to, text: format!("{span}: {}", report(windows)?) })
    };
    windows.chunks(windows.len().div_ceil(STRIPS_MAX).max(1)).filter_map(strip).collect()
}

fn time_axis(recording: &Recording) -> Axis {
    Axis::time(recording.windows().last().map_or(0.0, |window| window.end_s))
}

/// Logarithmic axis for all values above zero; `None` if there are none.
pub(super) fn log_axis(values: impl Iterator<Item = f64>) -> Option<Axis> {
    let above = |ends: Option<(f64, f64)>, value: f64| match ends {
        Some((low, high)) => Some((low.min(value), high.max(value))),
        None => Some((value, value)),
    };
    let (low, high) = values.filter(|&value| value > 0.0).fold(None, above)?;
    Some(Axis::log_ms(low, high))
}

pub(super) fn largest(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().reduce(f64::max)
}
