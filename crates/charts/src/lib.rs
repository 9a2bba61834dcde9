//! Reports as one self-contained HTML page: plots as SVG, tables, and the style for both.
//!
//! The page has no script and loads nothing, which its Content-Security-Policy enforces. It follows the light or dark
//! scheme of the reader, and can be read on a phone and on paper.
//!
//! **Invariant:** text from outside passes [`html::escape`]. Each function documents which of its arguments are markup.
//!
//! `examples/plots.rs` writes a page with every plot. Read `page`, `figure`, `svg`, `axis`, then `spread` and `growth`.

pub mod html;
pub mod page;
pub mod units;

mod axis;
mod figure;
mod growth;
mod marks;
mod spread;
mod svg;

pub use axis::Axis;
pub use figure::{Figure, rows};
pub use growth::{Series, power_law, speedup};
pub use marks::{Along, Band, Mark, Outline, Shape, sign};
pub use spread::{Group, box_plot, violins};
pub use svg::{Fill, Line, Point, Strip};

/// Classes for colors in the page's style.
const COLORS: [&str; 7] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6"];

/// The color of the series with this index, as a class of the page's style. Colors repeat after the seventh.
pub fn color(at: usize) -> &'static str {
    COLORS.get(at % COLORS.len()).unwrap_or(&"k0")
}

/// Id and texts of a figure.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// Id, unique in the page.
    pub id: &'a str,
    /// Title of the figure.
    pub title: &'a str,
    /// Unit and meaning of the values, shown after the title.
    pub unit: &'a str,
}
