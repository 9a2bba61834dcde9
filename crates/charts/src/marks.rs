//! Marks at single values, bands over intervals of values, and outlines of shapes. A legend explains marks and bands,
//! which differ in shape as well as in color.

use std::fmt::Write as _;

use crate::html::escape;

/// Radius of a mark.
const RADIUS: f64 = 4.5;

/// The form of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Filled circle.
    Disc,
    /// Two crossed lines.
    Cross,
    /// Hollow diamond, which does not hide what is drawn below it.
    Diamond,
}

/// Mark at a single value.
#[derive(Debug)]
pub struct Mark {
    /// Shape of the mark.
    pub shape: Shape,
    /// Color as a class of the page's style.
    pub class: &'static str,
    /// Label of this kind of mark in the legend.
    pub label: String,
    /// Position, x and y.
    pub at: (f64, f64),
    /// Bounds of the y value, drawn as a line through the mark.
    pub interval: Option<[f64; 2]>,
    /// Numbers shown while the pointer is over the mark.
    pub text: String,
}

impl Mark {
    /// Draws the mark at `at`, with a line between `ends`, all in coordinates of the drawing.
    pub(crate) fn draw(&self, at: (f64, f64), ends: Option<[f64; 2]>, svg: &mut String) {
        if let Some([low, high]) = ends {
            let (x, class) = (at.0, self.class);
            let _ =
                write!(svg, "<path class=\"bounds {class}\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
        }
        let text = escape(&self.text);
        drawn(self.shape, self.class, at, &format!("<title>{text}</title>"), svg);
    }
}

/// Draws a single mark for a legend.
pub fn sign(shape: Shape, class: &str) -> String {
    let mut svg = "<svg class=\"sign\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">".to_owned();
    drawn(shape, class, (6.0, 6.0), "", &mut svg);
    svg + "</svg>"
}

fn drawn(shape: Shape, class: &str, (x, y): (f64, f64), inner: &str, svg: &mut String) {
    let [left, right] = [x - RADIUS, x + RADIUS];
    let [top, bottom] = [y - RADIUS, y + RADIUS];
    let _ = match shape {
        Shape::Disc => write!(
            svg,
            "<circle class=\"mark {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\">{inner}</circle>"
        ),
        Shape::Cross => write!(
            svg,
            "<path class=\"mark {class}\" d=\"M{left:.1} {top:.1}L{right:.1} {bottom:.1}\
             M{left:.1} {bottom:.1}L{right:.1} {top:.1}\">{inner}</path>"
        ),
        Shape::Diamond => write!(
            svg,
            "<path class=\"mark hollow {class}\" d=\"M{x:.1} {top:.1}L{right:.1} {y:.1}\
             L{x:.1} {bottom:.1}L{left:.1} {y:.1}Z\">{inner}</path>"
        ),
    };
}

/// Axis of a band's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// The lower axis.
    X,
    /// The left axis.
    Y,
}

/// Interval of values, with a line at its estimate.
#[derive(Debug)]
pub struct Band {
    /// Axis of the values.
    pub along: Along,
    /// Color as a class of the page's style.
    pub class: &'static str,
    /// Label in the legend.
    pub label: String,
    /// Lower end.
    pub low: f64,
    /// Position of the line.
    pub middle: f64,
    /// Upper end.
    pub high: f64,
}

impl Band {
    /// Draws the band for a legend.
    pub(crate) fn sign(&self) -> String {
        let class = self.class;
        format!(
            "<svg class=\"sign\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">\
             <path class=\"band {class}\" d=\"M1 0H11V12H1Z\"/>\
             <path class=\"line {class}\" d=\"M6 0V12\"/></svg>"
        )
    }
}

/// Outline of a shape, or an open line without a label.
#[derive(Debug)]
pub struct Outline {
    /// Color and weight as classes of the page's style.
    pub class: String,
    /// Corners of the shape.
    pub points: Vec<(f64, f64)>,
    /// Whether the outline is closed and filled.
    pub is_closed: bool,
    /// Numbers shown while the pointer is over the outline; may be empty.
    pub text: String,
}

impl Outline {
    /// Draws the outline; `at` converts a point to coordinates of the drawing.
    pub(crate) fn draw(&self, at: impl Fn((f64, f64)) -> (f64, f64), svg: &mut String) {
        let Outline { class, points, is_closed, text } = self;
        let mut path = String::new();
        for (number, point) in points.iter().enumerate() {
            let (x, y) = at(*point);
            let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
        }
        let (kind, end) = if *is_closed { ("outline", "Z") } else { ("line", "") };
        let _ = write!(svg, "<path class=\"{kind} {class}\" d=\"{path}{end}\">");
        if !text.is_empty() {
            let _ = write!(svg, "<title>{}</title>", escape(text));
        }
        svg.push_str("</path>");
    }
}
