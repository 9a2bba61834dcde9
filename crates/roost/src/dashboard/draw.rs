//! The screen as a pure function of the model.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, LineGauge, Paragraph, Row, Table, Wrap};
use sim::units;

use super::charts;
use super::model::{Kind, Model};

/// Smallest supported screen, in columns and rows.
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 16;

/// Draws the current state of the run.
pub(super) fn draw(model: &Model, frame: &mut Frame) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        return too_small(frame, area);
    }
    let rows = model.kinds.len() as u16 + 2;
    // On a high screen the small charts get more rows; the large ones take the rest.
    let each = if area.height >= 40 { 6 } else { 3 };
    let small = if charts::small_in_two_rows(area.width) { each / 2 * 4 } else { each };
    let [head, progress, large, table, below, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(6),
        Constraint::Length(rows + 1),
        Constraint::Length(small),
        Constraint::Length(1),
    ])
    .areas(area);
    title(model, frame, head);
    gauge(model, frame, progress);
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]);
    let [left, right] = halves.areas(large);
    charts::rates(model, frame, left);
    charts::latencies(model, frame, right);
    kinds(model, frame, table);
    charts::small(model, frame, below);
    frame.render_widget(foot(model), keys);
}

fn too_small(frame: &mut Frame, area: Rect) {
    let Rect { width, height, .. } = area;
    let text = format!(
        "The terminal is too small: {width} by {height}, and {WIDTH_MIN} by {HEIGHT_MIN} are \
         needed. The run goes on; q stops it."
    );
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
}

fn title(model: &Model, frame: &mut Frame, area: Rect) {
    let kind = if model.closed { "closed loop" } else { "open loop" };
    let places = [Constraint::Fill(1), Constraint::Length(kind.len() as u16)];
    let [left, right] = Layout::horizontal(places).spacing(2).areas(area);
    frame.render_widget(Line::from(model.title.as_str()).bold(), left);
    frame.render_widget(Line::from(kind).dark_gray(), right);
}

fn gauge(model: &Model, frame: &mut Frame, area: Rect) {
    let whole = model.duration.as_secs_f64();
    let ratio = if whole > 0.0 { (model.elapsed_s / whole).clamp(0.0, 1.0) } else { 1.0 };
    let gauge = LineGauge::default()
        .ratio(ratio)
        .label(format!("{} of {}", units::seconds(model.elapsed_s), units::seconds(whole)))
        .filled_style(Style::new().cyan())
        .unfilled_style(Style::new().dark_gray());
    frame.render_widget(gauge, area);
}

fn foot(model: &Model) -> Line<'static> {
    if model.is_stopping {
        return Line::from("stopping, then printing the summary").bold();
    }
    Line::from(vec![
        "q".bold(),
        " or ".into(),
        "Ctrl-C".bold(),
        " stop and print the summary".into(),
    ])
}

/// Draws the table of request kinds: the last window, and totals since the start.
fn kinds(model: &Model, frame: &mut Frame, area: Rect) {
    const NUMBERS: [&str; 7] = ["per s", "p50", "p99", "max", "done", "errors", "p99 of all"];
    const WIDTHS: [u16; 8] = [13, 8, 8, 8, 8, 10, 7, 10];
    // Columns have one blank between them. A narrow screen omits two columns.
    let fits = area.width >= WIDTHS.iter().sum::<u16>() + WIDTHS.len() as u16 - 1;
    let is_shown = |column: usize| fits || !matches!(column, 4 | 7);
    let right = |text: String| Cell::new(Text::from(text).right_aligned());
    let head = NUMBERS.into_iter().map(|name| right(name.to_owned()));
    let row_of = |cells: Vec<Cell<'static>>| {
        let shown = cells.into_iter().enumerate().filter(|(column, _)| is_shown(*column));
        Row::new(shown.map(|(_, cell)| cell))
    };
    let head = row_of([Cell::new("")].into_iter().chain(head).collect()).dark_gray();
    let errors = |count: u64| {
        let cell = right(units::count(count));
        if count > 0 { cell.style(Style::new().fg(Color::Red).bold()) } else { cell }
    };
    let row = |kind: &Kind| {
        let rate = right(units::number(kind.per_second()));
        let now = &kind.now;
        let [p50, p99, max, all] =
            [now.p50_ms, now.p99_ms, now.max_ms, kind.p99_ms()].map(|ms| right(units::ms(ms)));
        let done = right(units::count(kind.count));
        row_of(vec![Cell::new(kind.name), rate, p50, p99, max, done, errors(kind.errors), all])
    };
    let done = model.kinds.iter().map(|kind| kind.count).sum();
    let (rate, done) = (right(units::number(model.last().per_second)), right(units::count(done)));
    let (p50, p99) = model.last().p50_p99_ms.unwrap_or_default();
    let [p50, p99] = [p50, p99].map(|ms| right(units::ms(ms)));
    let none = || Cell::new("");
    let failed = errors(model.errors());
    let total = row_of(vec![Cell::new("all"), rate, p50, p99, none(), done, failed, none()]);
    let widths = WIDTHS.into_iter().enumerate().filter(|(column, _)| is_shown(*column));
    let widths = widths.map(|(_, width)| width);
    let table = Table::new(model.kinds.iter().map(row).chain([total.bold()]), widths)
        .header(head)
        .column_spacing(1);
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests;
