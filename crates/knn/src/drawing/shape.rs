//! Position and slant of the ink, and the mapping of cells to pixels.

use super::ink::Ink;
use crate::bits::SIDE;

/// Length of the longer side of the ink, in cells. The margin around it allows the center of mass to be in the middle.
const BOX: f64 = 26.0;
/// Amount of ink from which a pixel is part of the drawing.
const DRAWN: f64 = 0.5;
/// Maximum slant that is removed: 45 degrees. A flat line, whose slant is undefined, would exceed it.
const SLANT_MAX: f64 = 1.0;

/// Mapping of cells to pixels. Positions in cells start at the upper left corner of the first cell, positions in pixels
/// at the center of the first pixel.
pub(super) struct Placement {
    /// Center of mass, in pixels (`center`) and in cells (`middle`).
    center: (f64, f64),
    middle: (f64, f64),
    /// Pixels per cell, across and down.
    step: (f64, f64),
    /// Pixels to the right per pixel down.
    slant: f64,
}

impl Placement {
    /// Computes the placement of the ink in the box.
    pub(super) fn of(ink: &Ink<'_>) -> Self {
        let center = center_of_mass(ink);
        let slant = slant(ink, center);
        let [left, right, top, bottom] = extent(ink, center, slant);
        let (width, height) = (right - left, bottom - top);
        // Make narrow drawings wider and flat drawings higher, because the proportions matter less than the form. The
        // fourth root keeps the difference between a 1 and a 0 (C.-L. Liu et al., "Handwritten digit recognition:
        // investigation of normalization and feature extraction techniques", 2004).
        let longer = width.max(height);
        let fill = |side: f64| BOX * (side / longer).sqrt().sqrt();
        let step = (width / fill(width), height / fill(height));
        let middle = (middle(left, center.0, right, step.0), middle(top, center.1, bottom, step.1));
        Self { center, middle, step, slant }
    }

    /// Converts a point in cells to pixels.
    pub(super) fn source(&self, column: f64, row: f64) -> (f64, f64) {
        let down = (row - self.middle.1) * self.step.1;
        let right = (column - self.middle.0) * self.step.0 + self.slant * down;
        (self.center.0 + right, self.center.1 + down)
    }

    /// Pixels per cell, across and down.
    pub(super) fn pixels_a_cell(&self) -> (f64, f64) {
        self.step
    }
}

fn center_of_mass(ink: &Ink<'_>) -> (f64, f64) {
    let add = |(mass, right, down), (x, y, amount)| {
        (mass + amount, right + amount * x, down + amount * y)
    };
    let (mass, right, down) = ink.pixels().fold((0.0, 0.0, 0.0), add);
    (right / mass, down / mass)
}

/// Slant of the ink, in pixels to the right per pixel down, computed from second moments.
fn slant(ink: &Ink<'_>, center: (f64, f64)) -> f64 {
    let add = |(mixed, vertical), (x, y, amount)| {
        let (right, down) = (x - center.0, y - center.1);
        (mixed + amount * right * down, vertical + amount * down * down)
    };
    let (mixed, vertical) = ink.pixels().fold((0.0, 0.0), add);
    if vertical > 0.0 { (mixed / vertical).clamp(-SLANT_MAX, SLANT_MAX) } else { 0.0 }
}

/// Edges of the ink after removing the slant: left, right, top, bottom.
fn extent(ink: &Ink<'_>, center: (f64, f64), slant: f64) -> [f64; 4] {
    let drawn = ink.pixels().filter(|(_, _, amount)| *amount > DRAWN);
    let none = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY];
    drawn.fold(none, |[left, right, top, bottom], (x, y, _)| {
        let x = x - slant * (y - center.1);
        [left.min(x - 0.5), right.max(x + 0.5), top.min(y - 0.5), bottom.max(y + 0.5)]
    })
}

/// Position of the center of mass, in cells: as near to the middle as possible while both ends are inside.
fn middle(low: f64, center: f64, high: f64, step: f64) -> f64 {
    let end = SIDE as f64;
    let (before, after) = ((center - low) / step, (high - center) / step);
    (end / 2.0).clamp(before, end - after)
}
