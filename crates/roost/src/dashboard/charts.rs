//! The two charts over time, and the four small ones below.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Sparkline};
use sim::units;

use super::model::{Model, Moment};

/// Width in columns below which the latency chart has a shorter title.
const TITLE_WIDTH: u16 = 38;
/// Width of the longest title of a small chart.
const SMALL_TITLE_WIDTH: u16 = 28;

/// Whether the four small charts need two rows on a screen of this width.
pub(super) const fn small_in_two_rows(width: u16) -> bool {
    width < 4 * (SMALL_TITLE_WIDTH + 2)
}

/// Line of a chart: name, color, points.
type Drawn<'a> = (&'a str, Color, Vec<(f64, f64)>);

/// Draws requests per second, and errors if there are any.
pub(super) fn rates(model: &Model, frame: &mut Frame, area: Rect) {
    let line = |of: fn(&Moment) -> f64| -> Vec<(f64, f64)> {
        model.moments.iter().map(|moment| (moment.end_s, of(moment))).collect()
    };
    let mut lines = vec![("requests", Color::Cyan, line(|moment| moment.per_second))];
    if model.errors() > 0 {
        lines.push(("errors", Color::Red, line(|moment| moment.errors_per_second)));
    }
    let highest = lines.iter().flat_map(|(_, _, points)| points).map(|point| point.1);
    let top = round_above(highest.fold(0.0, f64::max));
    let labels = [0.0, top / 2.0, top].map(units::tick);
    let last = model.last();
    let title = format!(" Requests per second: {} ", units::number(last.per_second));
    chart(model, frame, area, title, &lines, [0.0, top], labels.to_vec());
}

/// Draws median and 99th percentile of all requests, on a logarithmic scale.
pub(super) fn latencies(model: &Model, frame: &mut Frame, area: Rect) {
    let line = |of: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let measured = model.moments.iter().filter_map(|moment| {
            let ms = of(moment.p50_p99_ms?).max(1e-3);
            Some((moment.end_s, ms.log10()))
        });
        measured.collect()
    };
    let (p50, p99) = (line(|both| both.0), line(|both| both.1));
    let powers = p50.iter().chain(&p99).map(|point| point.1);
    let (low, high) = powers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), power| {
        (low.min(power), high.max(power))
    });
    // The ends are whole powers of ten, at least one power apart.
    let (low, high) =
        if low > high { (0.0, 1.0) } else { (low.floor(), high.ceil().max(low.floor() + 1.0)) };
    let mut labels: Vec<String> = (low as i32..=high as i32)
        .map(|power| match power {
            ..0 => format!("{} µs", units::plain(1e3 * 10_f64.powi(power))),
            0..3 => format!("{} ms", units::plain(10_f64.powi(power))),
            _ => format!("{} s", units::plain(10_f64.powi(power - 3))),
        })
        .collect();
    if labels.len() > usize::from(area.height / 2) {
        labels.drain(1..labels.len() - 1);
    }
    let title = match model.last().p50_p99_ms {
        Some((p50, p99)) => {
            let what = if area.width < TITLE_WIDTH { "" } else { "Latency: " };
            format!(" {what}p50 {}, p99 {} ", units::ms(p50), units::ms(p99))
        }
        None => " Latency ".to_owned(),
    };
    let lines = [("p99", Color::Yellow, p99), ("p50", Color::Green, p50)];
    chart(model, frame, area, title, &lines, [low, high], labels);
}

fn chart(
    model: &Model,
    frame: &mut Frame,
    area: Rect,
    title: String,
    lines: &[Drawn<'_>],
    bounds: [f64; 2],
    labels: Vec<String>,
) {
    let sets = lines.iter().map(|(_, color, points)| {
        let set = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
        set.fg(*color).data(points)
    });
    let named = lines.iter().filter(|_| lines.len() > 1);
    let legend: Vec<Span> =
        named.map(|(name, color, _)| Span::styled(format!(" {name} "), *color)).collect();
    let end = model.duration.as_secs_f64().max(model.elapsed_s);
    let times = ["0".to_owned(), units::seconds(end / 2.0), units::seconds(end)];
    let block = Block::bordered()
        .title(title.bold())
        .title_bottom(Line::from(legend).right_aligned())
        .border_style(Style::new().dark_gray());
    let axis = Axis::default().style(Style::new().dark_gray());
    let chart = Chart::new(sets.collect())
        .block(block)
        .x_axis(axis.clone().bounds([0.0, end]).labels(times))
        .y_axis(axis.bounds(bounds).labels(labels))
        .legend_position(None);
    frame.render_widget(chart, area);
}

/// Draws delivery lag, the server's memory and processor, and the generator's scheduling delay.
pub(super) fn small(model: &Model, frame: &mut Frame, area: Rect) {
    let thousandths = |value: f64| (value * 1e3) as u64;
    let delivery = |moment: &Moment| moment.delivery.map(|delivery| delivery.p99_ms);
    let memory = |moment: &Moment| moment.server.map(|server| server.memory_bytes);
    let cores = |moment: &Moment| moment.server.map(|server| server.cores);
    let reported = |name: &str, value: Option<String>| match value {
        Some(value) => format!("{name} {value}"),
        None => format!("{name} -"),
    };
    let scheduling_delay = model.last().scheduling_delay_ms;
    let all: [(String, Color, Vec<Option<u64>>); 4] = [
        (
            reported("delivery p99", model.latest(delivery).map(units::ms)),
            Color::Magenta,
            model.moments.iter().map(|moment| delivery(moment).map(thousandths)).collect(),
        ),
        (
            reported("memory", model.latest(memory).map(|bytes| units::bytes(bytes as f64))),
            Color::Blue,
            model.moments.iter().map(memory).collect(),
        ),
        (
            reported("cores", model.latest(cores).map(units::number)),
            Color::Green,
            model.moments.iter().map(|moment| cores(moment).map(thousandths)).collect(),
        ),
        (
            format!("scheduling delay p99 {}", units::ms(scheduling_delay)),
            Color::DarkGray,
            model
                .moments
                .iter()
                .map(|moment| Some(thousandths(moment.scheduling_delay_ms)))
                .collect(),
        ),
    ];
    let places: Vec<Rect> = if small_in_two_rows(area.width) {
        let rows = Layout::vertical([Constraint::Fill(1); 2]).split(area);
        let columns = Layout::horizontal([Constraint::Fill(1); 2]).spacing(2);
        rows.iter().flat_map(|row| columns.split(*row).to_vec()).collect()
    } else {
        Layout::horizontal([Constraint::Fill(1); 4]).spacing(2).split(area).to_vec()
    };
    for ((title, color, values), place) in all.into_iter().zip(places.iter()) {
        let newest = values.len().saturating_sub(usize::from(place.width));
        let values: Vec<Option<u64>> = values.into_iter().skip(newest).collect();
        let [above, below] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(*place);
        frame.render_widget(Line::from(title), above);
        frame.render_widget(Sparkline::default().data(values).fg(color), below);
    }
}

/// Smallest number of at least `value` that is 1, 2 or 5 times a power of ten.
fn round_above(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let enough = |step: &f64| step * power >= value;
    [1.0, 2.0, 5.0].into_iter().find(enough).unwrap_or(10.0) * power
}
