//! What a plot contains besides lines: marks at single values, and bands between two. Both say
//! what they are in a legend, and differ in shape as well as in color.

use std::fmt::Write as _;

use crate::html::escape;

/// From the middle of a mark to its edge.
const RADIUS: f64 = 4.5;

/// The form of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Round and filled.
    Disc,
    /// Two lines.
    Cross,
    /// Hollow, so that what lies below shows.
    Diamond,
}

/// A single value.
#[derive(Debug)]
pub struct Mark {
    /// Its form.
    pub shape: Shape,
    /// Its color, as a class of the page's style.
    pub class: &'static str,
    /// What marks of its kind are, in the legend.
    pub label: String,
    /// Where it is, x and y.
    pub at: (f64, f64),
    /// The bounds of its value along y, drawn as a line through it.
    pub interval: Option<[f64; 2]>,
    /// Its numbers, shown under the pointer.
    pub text: String,
}

impl Mark {
    /// The mark with its middle at `x`, `y` of the drawing, and the ends of its interval there.
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

/// A mark by itself, for a legend.
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

/// The axis that a band's values lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// The lower axis.
    X,
    /// The left axis.
    Y,
}

/// An interval of values, with a line at the one it is about.
#[derive(Debug)]
pub struct Band {
    /// The axis that its values lie on.
    pub along: Along,
    /// Its color, as a class of the page's style.
    pub class: &'static str,
    /// What it is, in the legend.
    pub label: String,
    /// Where it begins.
    pub low: f64,
    /// Where its line is.
    pub middle: f64,
    /// Where it ends.
    pub high: f64,
}

impl Band {
    /// The band for a legend.
    pub(crate) fn sign(&self) -> String {
        let class = self.class;
        format!(
            "<svg class=\"sign\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">\
             <path class=\"band {class}\" d=\"M1 0H11V12H1Z\"/>\
             <path class=\"line {class}\" d=\"M6 0V12\"/></svg>"
        )
    }
}
