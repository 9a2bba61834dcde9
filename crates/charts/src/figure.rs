//! Plots with their titles and legends, and their layout: several small plots in a row, or one plot as wide as the
//! page.
//!
//! A plot as wide as the page is drawn in two sizes, and the style shows the one that fits the screen. The browser
//! scales a drawing together with its text, so the text of a single wide drawing would be too small on a phone.

use std::fmt::Write as _;

use crate::axis::Axis;
use crate::html::escape;
use crate::marks::{self, Band, Mark, Outline};
use crate::svg::{Line, Plot, Strip};

/// Size of each of three plots in a row.
const THIRD: (f64, f64) = (360.0, 215.0);
/// Size of each of two plots in a row.
const HALF: (f64, f64) = (480.0, 235.0);
/// Size of a plot as wide as a wide page.
const WIDE: (f64, f64) = (1_040.0, 400.0);
/// Size of a plot as wide as a narrow page.
const NARROW: (f64, f64) = (400.0, 330.0);

/// Plot without a size.
#[derive(Debug)]
pub struct Figure {
    /// Id, unique in the page.
    pub id: String,
    /// The title of the plot.
    pub title: String,
    /// The unit and meaning of the values, shown after the title.
    pub unit: String,
    /// Description for screen readers.
    pub description: String,
    /// The lower axis.
    pub x: Axis,
    /// The left axis.
    pub y: Axis,
    /// Lines in drawing order.
    pub lines: Vec<Line>,
    /// Strips with numbers. A strip is invisible until the pointer is over it.
    pub strips: Vec<Strip>,
    /// Boxes and other shapes, drawn below lines.
    pub outlines: Vec<Outline>,
    /// Marks, drawn above everything else.
    pub marks: Vec<Mark>,
    /// Bands, drawn below everything else.
    pub bands: Vec<Band>,
}

impl Figure {
    fn draw(&self, id: &str, size: (f64, f64), is_labeled: bool) -> String {
        let Figure { title, description, x, y, lines, strips, outlines, marks, bands, .. } = self;
        Plot {
            id,
            title,
            description,
            size,
            x,
            y,
            lines,
            strips,
            outlines,
            marks,
            bands,
            is_labeled,
        }
        .draw()
    }

    /// The legend of marks and bands. Lines need none, because their labels are at their ends.
    fn legend(&self) -> String {
        let mut reported: Vec<(String, &str)> = Vec::new();
        let bands = self.bands.iter().map(|band| (band.sign(), band.label.as_str()));
        let named = self.marks.iter().filter(|mark| !mark.label.is_empty());
        let signs = named.map(|mark| (marks::sign(mark.shape, mark.class), mark.label.as_str()));
        for (sign, label) in bands.chain(signs) {
            if !reported.iter().any(|(_, before)| *before == label) {
                reported.push((sign, label));
            }
        }
        if reported.is_empty() {
            return String::new();
        }
        let mut html = "<ul class=\"legend\">".to_owned();
        for (sign, label) in reported {
            let _ = write!(html, "<li>{sign}{}</li>", escape(label));
        }
        html + "</ul>"
    }

    fn caption(&self) -> String {
        let (title, unit) = (escape(&self.title), escape(&self.unit));
        format!("<figcaption><h3>{title}</h3> <span>{unit}</span></figcaption>\n")
    }

    fn wide(&self) -> String {
        let id = &self.id;
        let wide = self.draw(id, WIDE, true);
        let narrow = self.draw(&format!("{id}-n"), NARROW, false);
        let mut legend = String::new();
        for Line { class, label, .. } in self.lines.iter().filter(|line| !line.label.is_empty()) {
            let label = escape(label);
            let _ = write!(
                legend,
                "<li><svg viewBox=\"0 0 24 8\" aria-hidden=\"true\">\
                 <path class=\"line {class}\" d=\"M1 4H23\"/></svg>{label}</li>"
            );
        }
        let lines = match legend.as_str() {
            "" => String::new(),
            legend => format!("<ul class=\"legend\">{legend}</ul>"),
        };
        format!(
            "<figure>{}{}<div class=\"at-wide\">{wide}</div><div class=\"at-narrow\">{narrow}\
             {lines}</div></figure>\n",
            self.caption(),
            self.legend()
        )
    }
}

/// Lays out related figures in one row or several.
pub fn rows(figures: &[Figure]) -> String {
    let (columns, size) = match figures.len() {
        0 => return String::new(),
        1 => return figures.iter().map(Figure::wide).collect(),
        2 | 4 => (2, HALF),
        _ => (3, THIRD),
    };
    let mut html = format!("<div class=\"row of-{columns}\">\n");
    for figure in figures {
        let (caption, svg) = (figure.caption(), figure.draw(&figure.id, size, true));
        let _ = writeln!(html, "<figure>{caption}{svg}</figure>");
    }
    html.push_str("</div>\n");
    html
}
