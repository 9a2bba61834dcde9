//! Normalization of drawings: a gray image of any size becomes 32 x 32 bits.
//!
//! Two drawings of a digit differ in size, place, slant, pen and paper, which do not matter for the digit.
//! Normalization distinguishes paper and ink, removes the slant, scales the ink into a box, moves its center of mass to
//! the middle, and makes the darkest quarter of the cells the drawing. The parameters were chosen on training images
//! (`docs/decisions/0040-drawings.md`).
//!
//! **Invariant:** the same image gives the same bits on every machine: the calculation uses only sums, products,
//! quotients and square roots, which IEEE 754 defines exactly.

mod ink;
mod shape;

use std::array;

use crate::bits::{BITS, Bits, SIDE};
use ink::Ink;
use shape::Placement;

/// Number of cells that become ink: a quarter of all. So strokes are about four cells wide, however wide the pen was.
const INKED: usize = BITS / 4;
/// Maximum number of smoothings; each takes about 10,000 additions. After n smoothings, the ink of one cell in a corner
/// has spread to (n + 1)^2 cells, that of any other cell to more.
const SMOOTHINGS_MAX: usize = 15;
const _: () = assert!((SMOOTHINGS_MAX + 1) * (SMOOTHINGS_MAX + 1) >= INKED);
/// Maximum distance between neighboring points of a cell, in pixels. The ink of a pixel extends one pixel in each
/// direction, so points less than two pixels apart miss no ink.
const POINT_PIXELS_MAX: f64 = 1.5;
/// Number of points of a cell in each direction; large images need more.
const POINTS: f64 = 32.0;

/// A gray image: one byte for each pixel.
#[derive(Clone, Copy, Debug)]
pub struct Grey<'a> {
    width: usize,
    height: usize,
    pixels: &'a [u8],
}

/// Reason why an image is not a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawingError {
    /// The number of bytes is not `width * height`, or is 0.
    #[error("{found} bytes are not an image of {width} x {height} pixels")]
    Size {
        /// Number of pixels in a row.
        width: usize,
        /// Number of rows.
        height: usize,
        /// Number of bytes given.
        found: usize,
    },
    /// All pixels have the same brightness.
    #[error("the drawing is empty: all pixels are the same")]
    Blank,
}

impl<'a> Grey<'a> {
    /// Creates an image of `height` rows of `width` pixels. Each pixel is a byte, 0 for black.
    ///
    /// # Errors
    /// If the sizes do not match, or there is no pixel.
    pub fn new(width: usize, height: usize, pixels: &'a [u8]) -> Result<Self, DrawingError> {
        let found = pixels.len();
        if found == 0 || width.checked_mul(height) != Some(found) {
            return Err(DrawingError::Size { width, height, found });
        }
        Ok(Self { width, height, pixels })
    }

    /// Normalizes the drawing, whether dark on light or light on dark. About a quarter of the bits are 1.
    ///
    /// # Errors
    /// If the image is blank.
    pub fn normalize(&self) -> Result<Bits, DrawingError> {
        let ink = Ink::find(self)?;
        Ok(Cells::draw(&ink, &Placement::of(&ink)).thickened().0.darkest())
    }
}

/// Positions of the points of a cell along one direction, from 0 to 1. The cell extends over this many pixels.
fn offsets(pixels: f64) -> Vec<f64> {
    let few = pixels.ceil().clamp(1.0, POINTS);
    let points = few.max((pixels / POINT_PIXELS_MAX).ceil()) as usize;
    (0..points).map(|point| (point as f64 + 0.5) / points as f64).collect()
}

/// Amount of ink in each of the 32 x 32 cells, row by row.
struct Cells([f32; BITS]);

impl Cells {
    fn draw(ink: &Ink<'_>, placement: &Placement) -> Self {
        // The ink of a cell is the mean of several points, because a cell may be much larger than a pixel.
        let (across, down) = placement.pixels_a_cell();
        let (across, down) = (offsets(across), offsets(down));
        let points = (across.len() * down.len()) as f64;
        Self(array::from_fn(|cell| {
            let (column, row) = ((cell % SIDE) as f64, (cell / SIDE) as f64);
            let mut sum = 0.0;
            for down in &down {
                for right in &across {
                    let (x, y) = placement.source(column + right, row + down);
                    sum += ink.between(x, y);
                }
            }
            (sum / points) as f32
        }))
    }

    /// Averages each cell with its eight neighbors, weighted 1 2 1 in both directions.
    fn smooth(&self) -> Self {
        let at = |column: usize, row: usize| {
            // An index left of the first column or above the first row wraps to a large number.
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

    /// Smooths once, and then again while fewer than [`INKED`] cells have ink, so that thin strokes grow. Returns the
    /// cells and the number of smoothings.
    fn thickened(&self) -> (Self, usize) {
        let mut cells = self.smooth();
        for smoothings in 1..SMOOTHINGS_MAX {
            if cells.inked() >= INKED {
                return (cells, smoothings);
            }
            cells = cells.smooth();
        }
        (cells, SMOOTHINGS_MAX)
    }

    fn inked(&self) -> usize {
        self.0.iter().filter(|cell| **cell > 0.0).count()
    }

    /// The [`INKED`] cells with the most ink, and cells with as much ink as the last of them.
    fn darkest(&self) -> Bits {
        let mut order = self.0;
        let (_, least, _) = order.select_nth_unstable_by(INKED - 1, |a, b| b.total_cmp(a));
        Bits::from_fn(|cell| self.0.get(cell).is_some_and(|ink| ink >= least))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A white image with black pixels at the given indexes.
    fn sparse(width: usize, height: usize, at: &[usize]) -> Vec<u8> {
        let mut pixels = vec![255; width * height];
        for at in at {
            pixels[at % (width * height)] = 0;
        }
        pixels
    }

    /// Number of smoothings that an image needs, and number of inked cells after them.
    fn work((width, height): (usize, usize), pixels: &[u8]) -> Option<(usize, usize)> {
        let ink = Ink::find(&Grey::new(width, height, pixels).unwrap()).ok()?;
        let (cells, smoothings) = Cells::draw(&ink, &Placement::of(&ink)).thickened();
        Some((smoothings, cells.inked()))
    }

    #[test]
    fn ink_in_the_corners_of_a_large_image_is_found() {
        for side in [100, 832, 1_300, 2_500] {
            let corners = [0, side - 1, side * (side - 1), side * side - 1];
            let (smoothings, inked) = work((side, side), &sparse(side, side, &corners)).unwrap();
            assert!(smoothings < SMOOTHINGS_MAX && inked >= INKED, "{side}: {smoothings}, {inked}");
        }
    }

    #[test]
    fn points_are_in_proportion_to_pixels() {
        for pixels in [0.1, 1.0, 20.0, 32.0, 40.0, 157.0, 400.0] {
            let points = offsets(pixels).len() as f64;
            assert!(points * POINT_PIXELS_MAX >= pixels && points <= pixels + 1.0, "{pixels}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_image_is_thick_enough_after_a_bounded_number_of_smoothings(
            width in 1..1_500usize,
            height in 1..1_500usize,
            thin in any::<bool>(),
            places in prop::collection::vec(any::<usize>(), 1..6),
        ) {
            let height = if thin { 1 + height % 4 } else { height };
            let pixels = sparse(width, height, &places);
            if let Some((smoothings, inked)) = work((width, height), &pixels) {
                prop_assert!(smoothings <= SMOOTHINGS_MAX && inked >= INKED, "{smoothings}");
            }
        }
    }
}
