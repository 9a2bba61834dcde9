//! Plots as SVG. Colors come from the page's style by class, so one drawing works for both color
//! schemes and for print.
//!
//! **Invariant:** texts do not overlap: ticks are few, and labels at line ends move apart.

use std::fmt::Write as _;

use crate::axis::Axis;
use crate::html::escape;
use crate::marks::{Along, Band, Mark, Outline};

/// Margins above the highest value and below the lowest; the ticks of the lower axis are in the lower margin.
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// Approximate width of a character at a tick.
const CHARACTER: f64 = 6.7;
/// Approximate width of a bold character at the end of a line.
const BOLD_CHARACTER: f64 = 7.6;
/// Minimum distance between two labels at line ends.
const LABEL_APART: f64 = 14.0;

/// X and y of a measured value; `None` if there is no measurement.
pub type Point = Option<(f64, f64)>;

/// Line with a label at its end.
#[derive(Debug, Default)]
pub struct Line {
    /// Label at the end.
    pub label: String,
    /// Color and weight as classes of the page's style.
    pub class: String,
    /// Points of the line; `None` interrupts it.
    pub points: Vec<Point>,
    /// Lower bound of the filled area below the line; `None` if no area is filled.
    pub fill: Option<Fill>,
}

/// Lower bound of a filled area.
#[derive(Debug)]
pub enum Fill {
    /// The lower axis.
    ToAxis,
    /// Another line.
    To(Vec<Point>),
}

/// Vertical strip of the plot between two x positions. Its numbers are shown while the pointer is over it.
#[derive(Debug)]
pub struct Strip {
    /// X position of the left edge.
    pub from: f64,
    /// X position of the right edge.
    pub to: f64,
    /// Text with the numbers.
    pub text: String,
}

/// Parts of the drawing.
#[derive(Debug)]
pub(crate) struct Plot<'a> {
    /// Id, unique in the page.
    pub id: &'a str,
    /// Title.
    pub title: &'a str,
    /// Description for screen readers.
    pub description: &'a str,
    /// Width and height; text has size 12 in the same unit.
    pub size: (f64, f64),
    /// The lower axis.
    pub x: &'a Axis,
    /// The left axis.
    pub y: &'a Axis,
    /// Lines in drawing order.
    pub lines: &'a [Line],
    /// Strips, invisible until the pointer is over them.
    pub strips: &'a [Strip],
    /// Outlines above bands and below lines.
    pub outlines: &'a [Outline],
    /// Marks above everything else.
    pub marks: &'a [Mark],
    /// Bands below everything else.
    pub bands: &'a [Band],
    /// Whether there are labels at line ends.
    pub is_labeled: bool,
}

/// Position of the axes.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plot<'_> {
    /// The drawing as an element.
    pub(crate) fn draw(&self) -> String {
        let (id, (width, height)) = (escape(self.id), self.size);
        let (title, description) = (escape(self.title), escape(self.description));
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>"
        );
        let area = self.area();
        self.draw_axes(&area, &mut svg);
        for band in self.bands {
            self.draw_band(&area, band, &mut svg);
        }
        for outline in self.outlines {
            outline.draw(|point| self.at(&area, point), &mut svg);
        }
        for line in self.lines {
            self.draw_fill(&area, line, &mut svg);
        }
        for line in self.lines {
            let path = self.path(&area, &line.points);
            let _ = write!(svg, "<path class=\"line {}\" d=\"{path}\"/>", line.class);
        }
        if self.is_labeled {
            self.draw_labels(&area, &mut svg);
        }
        self.draw_strips(&area, &mut svg);
        for mark in self.marks {
            let ends = mark.interval.map(|ends| ends.map(|y| self.at(&area, (mark.at.0, y)).1));
            mark.draw(self.at(&area, mark.at), ends, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn area(&self) -> Area {
        let length = |text: &String| text.chars().count();
        let tick = self.y.ticks.iter().map(|(_, label)| length(label)).max().unwrap_or(0);
        let left = tick as f64 * CHARACTER + 10.0;
        let labels = self.lines.iter().filter(|_| self.is_labeled);
        let label = labels.map(|line| length(&line.label)).max().unwrap_or(0);
        // The last tick of the lower axis is centered and may need extra space.
        let at_end = self.x.ticks.last().filter(|(value, _)| self.x.part(*value) > 0.98);
        let tick = at_end.map_or(0.0, |(_, label)| length(label) as f64 * CHARACTER / 2.0);
        let ends = (label as f64 * BOLD_CHARACTER + 13.0).max(tick);
        let (width, height) = self.size;
        Area { left, right: width - ends.max(18.0), top: TOP, bottom: height - BOTTOM }
    }

    fn at(&self, area: &Area, (x, y): (f64, f64)) -> (f64, f64) {
        let x = area.left + self.x.part(x) * (area.right - area.left);
        (x, area.bottom - self.y.part(y) * (area.bottom - area.top))
    }

    fn draw_axes(&self, area: &Area, svg: &mut String) {
        let Area { left, right, top, bottom } = *area;
        let (mut grid, mut texts) = (String::new(), String::new());
        for (value, label) in &self.y.ticks {
            let (_, y) = self.at(area, (0.0, *value));
            if !self.y.is_grouped() {
                let _ = write!(grid, "M{left:.1} {y:.1}H{right:.1}");
            }
            let (x, y) = (left - 6.0, y + 4.0);
            let _ = write!(
                texts,
                "<text class=\"y\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                escape(label)
            );
        }
        let mut marks = format!("M{left:.1} {bottom:.1}H{right:.1}");
        for (value, label) in &self.x.ticks {
            let (x, _) = self.at(area, (*value, 0.0));
            let _ = write!(marks, "M{x:.1} {bottom:.1}v5");
            if self.x.is_log() || self.y.is_grouped() {
                let _ = write!(grid, "M{x:.1} {bottom:.1}V{top:.1}");
            }
            let y = bottom + 19.0;
            let _ = write!(texts, "<text class=\"x\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>");
        }
        let _ =
            write!(svg, "<path class=\"grid\" d=\"{grid}\"/><path class=\"axis\" d=\"{marks}\"/>");
        svg.push_str(&texts);
    }

    fn draw_band(&self, area: &Area, band: &Band, svg: &mut String) {
        let Band { along, class, low, middle, high, .. } = *band;
        let Area { left, right, top, bottom } = *area;
        let (shape, line) = match along {
            Along::X => {
                let [low, middle, high] = [low, middle, high].map(|x| self.at(area, (x, 0.0)).0);
                let shape = format!("M{low:.1} {bottom:.1}V{top:.1}H{high:.1}V{bottom:.1}Z");
                (shape, format!("M{middle:.1} {bottom:.1}V{top:.1}"))
            }
            Along::Y => {
                let [low, middle, high] = [low, middle, high].map(|y| self.at(area, (0.0, y)).1);
                let shape = format!("M{left:.1} {low:.1}V{high:.1}H{right:.1}V{low:.1}Z");
                (shape, format!("M{left:.1} {middle:.1}H{right:.1}"))
            }
        };
        let _ = write!(
            svg,
            "<path class=\"band {class}\" d=\"{shape}\"/><path class=\"line {class}\" d=\"{line}\"/>"
        );
    }

    /// A path through the points, interrupted at gaps. A point between gaps becomes a dot.
    fn path(&self, area: &Area, points: &[Point]) -> String {
        let mut path = String::new();
        let mut before = 0;
        for (at, point) in points.iter().enumerate() {
            let Some(point) = point else {
                before = 0;
                continue;
            };
            let (x, y) = self.at(area, *point);
            let command = if before == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x:.1} {y:.1}");
            before += 1;
            if before == 1 && points.get(at + 1).copied().flatten().is_none() {
                path.push_str("h0");
            }
        }
        path
    }

    fn draw_fill(&self, area: &Area, line: &Line, svg: &mut String) {
        let Some(fill) = &line.fill else { return };
        let mut path = String::new();
        let lower = |at: usize| match fill {
            Fill::ToAxis => None,
            Fill::To(points) => points.get(at).copied().flatten(),
        };
        // Each stretch without a gap becomes a closed shape between the line and its lower bound.
        let mut start = 0;
        for stretch in line.points.split(Option::is_none) {
            let upper: Vec<(f64, f64)> =
                stretch.iter().flatten().map(|&point| self.at(area, point)).collect();
            let back = upper.iter().enumerate().rev().map(|(at, &(x, _))| {
                lower(start + at).map_or((x, area.bottom), |point| self.at(area, point))
            });
            for (at, (x, y)) in upper.iter().copied().chain(back).enumerate() {
                let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
            }
            if !upper.is_empty() {
                path.push('Z');
            }
            start += stretch.len() + 1;
        }
        let _ = write!(svg, "<path class=\"fill {}\" d=\"{path}\"/>", line.class);
    }

    fn draw_labels(&self, area: &Area, svg: &mut String) {
        let end = |line: &Line| line.points.iter().rev().find_map(|point| *point);
        let mut labels: Vec<(f64, &Line)> = self
            .lines
            .iter()
            .filter_map(|line| Some((self.at(area, end(line)?).1 + 4.0, line)))
            .collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let heights: Vec<f64> = labels.iter().map(|(y, _)| *y).collect();
        let apart = apart(&heights, area.top + 8.0, area.bottom + 2.0);
        for ((_, line), y) in labels.iter().zip(apart) {
            let (x, class, label) = (area.right + 6.0, &line.class, escape(&line.label));
            let _ =
                write!(svg, "<text class=\"end {class}\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>");
        }
    }

    fn draw_strips(&self, area: &Area, svg: &mut String) {
        let (y, height) = (area.top, area.bottom - area.top);
        for Strip { from, to, text } in self.strips {
            let (x, _) = self.at(area, (*from, 0.0));
            let width = self.at(area, (*to, 0.0)).0 - x;
            let text = escape(text);
            let _ = write!(
                svg,
                "<rect class=\"strip\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"><title>{text}</title></rect>"
            );
        }
    }
}

/// Moves heights as little as needed so that neighbors are [`LABEL_APART`] and all are within `top` and `bottom`. The
/// heights are ascending. If there are too many, some end above `top`.
fn apart(heights: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut placed: Vec<f64> = Vec::with_capacity(heights.len());
    for &height in heights {
        let least = placed.last().map_or(top, |before| before + LABEL_APART);
        placed.push(height.max(least));
    }
    let mut most = bottom;
    for height in placed.iter_mut().rev() {
        *height = height.min(most);
        most = *height - LABEL_APART;
    }
    placed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units;

    fn draw(points: Vec<Point>, fill: Option<Fill>) -> String {
        let line = Line { label: "<a>".into(), class: "k0".into(), points, fill };
        let plot = Plot {
            id: "p",
            title: "a < b",
            description: "\"quoted\"",
            size: (200.0, 100.0),
            x: &Axis::time(10.0),
            y: &Axis::linear(10.0, units::tick),
            lines: &[line],
            strips: &[Strip { from: 0.0, to: 10.0, text: "1 & 2".into() }],
            outlines: &[],
            marks: &[],
            bands: &[],
            is_labeled: true,
        };
        plot.draw()
    }

    fn path<'a>(svg: &'a str, class: &str) -> &'a str {
        let (_, rest) = svg.split_once(&format!("<path class=\"{class}\" d=\"")).unwrap();
        rest.split_once('"').unwrap().0
    }

    #[test]
    fn a_line_breaks_where_nothing_was_measured() {
        let check = |points: Vec<Point>, expect: &str| {
            let svg = draw(points, None);
            let commands: String =
                path(&svg, "line k0").chars().filter(char::is_ascii_alphabetic).collect();
            assert_eq!(commands, expect);
        };
        let at = |x: f64| Some((x, x));
        check(vec![at(0.0), at(1.0), at(2.0)], "MLL");
        check(vec![at(0.0), at(1.0), None, at(3.0), at(4.0)], "MLML");
        check(vec![None, at(1.0), None, at(3.0)], "MhMh");
        check(vec![None, None], "");
    }

    #[test]
    fn a_filled_area_goes_back_below_its_line() {
        let points = vec![Some((0.0, 10.0)), Some((10.0, 10.0))];
        let svg = draw(points.clone(), Some(Fill::ToAxis));
        let heights = |path: &str| -> Vec<String> {
            let points = path.trim_end_matches('Z').split(['M', 'L']).skip(1);
            points.map(|point| point.split_once(' ').unwrap().1.to_owned()).collect()
        };
        assert_eq!(heights(path(&svg, "fill k0")), ["10.0", "10.0", "74.0", "74.0"]);
        let lower = points.iter().map(|point| point.map(|(x, _)| (x, 5.0))).collect();
        let svg = draw(points, Some(Fill::To(lower)));
        assert_eq!(heights(path(&svg, "fill k0")), ["10.0", "10.0", "42.0", "42.0"]);
    }

    #[test]
    fn texts_are_texts() {
        let svg = draw(vec![Some((1.0, 1.0))], None);
        for text in ["a &lt; b", "&quot;quoted&quot;", "&lt;a&gt;", "1 &amp; 2"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    proptest! {
        #[test]
        fn labels_never_overlap(mut heights in proptest::collection::vec(-50.0..300.0, 0..9)) {
            heights.sort_by(f64::total_cmp);
            let placed = apart(&heights, 10.0, 200.0);
            prop_assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_APART - 1e-9));
            prop_assert!(placed.iter().all(|&y| (10.0 - 1e-9..=200.0).contains(&y)), "{:?}", placed);
        }
    }
}
