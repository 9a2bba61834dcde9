//! Drawings made comparable: a grey image of any size becomes 32 x 32 bits.
//!
//! Two drawings of a digit differ in size, place, slant, pen and paper, which say nothing about which
//! digit it is. In order: paper and ink are told apart, the slant is taken out, what is drawn is scaled
//! into a box and put with its centre of mass in the middle, and the darkest quarter of the cells
//! becomes the drawing. The parameters were chosen on training images (DESIGN.md tells how).
//!
//! **Invariant:** the same image gives the same bits on every machine: there are only sums, products,
//! quotients and square roots, which IEEE 754 fixes.

mod ink;
mod shape;

use std::array;

use crate::bits::{BITS, Bits, SIDE};
use ink::Ink;
use shape::Placement;

/// Cells that become ink: a quarter. So pens of every width draw strokes of about four cells.
const INKED: usize = BITS / 4;

/// A grey image.
#[derive(Clone, Copy, Debug)]
pub struct Grey<'a> {
    width: usize,
    height: usize,
    pixels: &'a [u8],
}

/// Why an image is no drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawingError {
    /// The bytes are not `width * height`, or there are none.
    #[error("{found} bytes are no image of {width} x {height} pixels")]
    Size {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
        /// Bytes given.
        found: usize,
    },
    /// Every pixel is the same.
    #[error("nothing is drawn: all pixels are the same")]
    Blank,
}

impl<'a> Grey<'a> {
    /// An image of `height` rows of `width` pixels, a byte each, 0 for black.
    ///
    /// # Errors
    /// The sizes do not fit together, or there is no pixel.
    pub fn new(width: usize, height: usize, pixels: &'a [u8]) -> Result<Self, DrawingError> {
        let found = pixels.len();
        if found == 0 || width.checked_mul(height) != Some(found) {
            return Err(DrawingError::Size { width, height, found });
        }
        Ok(Self { width, height, pixels })
    }

    /// The drawing in this image, dark on light or light on dark. About a quarter of the bits are 1.
    ///
    /// # Errors
    /// Nothing is drawn.
    pub fn normalise(&self) -> Result<Bits, DrawingError> {
        let ink = Ink::find(self)?;
        let mut cells = Cells::draw(&ink, &Placement::of(&ink)).smooth();
        // Thin strokes grow until there are cells enough to choose from.
        while cells.inked() < INKED {
            cells = cells.smooth();
        }
        Ok(cells.darkest())
    }
}

/// How much ink is in each of the 32 x 32 cells, row by row.
struct Cells([f32; BITS]);

impl Cells {
    fn draw(ink: &Ink<'_>, placement: &Placement) -> Self {
        // Cells much larger than pixels take the mean of several points.
        let points = placement.pixels_a_cell().ceil().clamp(1.0, 32.0) as usize;
        let offsets: Vec<f64> =
            (0..points).map(|point| (point as f64 + 0.5) / points as f64).collect();
        Self(array::from_fn(|cell| {
            let (column, row) = ((cell % SIDE) as f64, (cell / SIDE) as f64);
            let mut sum = 0.0;
            for down in &offsets {
                for right in &offsets {
                    let (x, y) = placement.source(column + right, row + down);
                    sum += ink.between(x, y);
                }
            }
            (sum / (points * points) as f64) as f32
        }))
    }

    /// Every cell as the mean of its neighbourhood, weighted 1 2 1 in both directions.
    fn smooth(&self) -> Self {
        let at = |column: usize, row: usize| {
            // One step left of the first column or above the first row wraps to a large number.
            let there = column < SIDE && row < SIDE;
            if there { self.0.get(row * SIDE + column).copied().unwrap_or_default() } else { 0.0 }
        };
        let across = |column: usize, row: usize| {
            at(column.wrapping_sub(1), row) + 2.0 * at(column, row) + at(column + 1, row)
        };
        Self(array::from_fn(|cell| {
            let (column, row) = (cell % SIDE, cell / SIDE);
            let above = across(column, row.wrapping_sub(1));
            (above + 2.0 * across(column, row) + across(column, row + 1)) / 16.0
        }))
    }

    fn inked(&self) -> usize {
        self.0.iter().filter(|cell| **cell > 0.0).count()
    }

    /// The [`INKED`] cells with most ink, and those with as much as the last of them.
    fn darkest(&self) -> Bits {
        let mut order = self.0;
        let (_, least, _) = order.select_nth_unstable_by(INKED - 1, |a, b| b.total_cmp(a));
        Bits::from_fn(|cell| self.0.get(cell).is_some_and(|ink| ink >= least))
    }
}
