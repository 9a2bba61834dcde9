//! Separation of ink and paper by brightness, and the amount of ink in each pixel.

use std::array;

use super::{DrawingError, Grey};

/// An image, seen as amounts of ink.
pub(super) struct Ink<'a> {
    image: Grey<'a>,
    /// Amount of ink, from 0 to 1, for each brightness of a pixel.
    amounts: [f64; 256],
}

impl<'a> Ink<'a> {
    /// Divides the pixels into two classes by brightness. Paper is the class to which most edge pixels belong.
    pub(super) fn find(image: &Grey<'a>) -> Result<Self, DrawingError> {
        let split = Split::of(image.pixels).ok_or(DrawingError::Blank)?;
        let bright = edge(image).filter(|pixel| *pixel > split.last_dark).count();
        let dark_ink = 2 * bright > edge(image).count();
        let (paper, ink) =
            if dark_ink { (split.bright, split.dark) } else { (split.dark, split.bright) };
        let amount = |pixel: usize| ((pixel as f64 - paper) / (ink - paper)).clamp(0.0, 1.0);
        Ok(Self { image: *image, amounts: array::from_fn(amount) })
    }

    /// Pixels with ink: column, row and amount from 0 to 1.
    pub(super) fn pixels(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        let rows = self.image.pixels.chunks(self.image.width).enumerate();
        rows.flat_map(|(y, row)| row.iter().enumerate().map(move |(x, pixel)| (x, y, *pixel)))
            .map(|(x, y, pixel)| (x as f64, y as f64, self.amount(pixel)))
            .filter(|(_, _, amount)| *amount > 0.0)
    }

    /// Amount of ink at a point, interpolated between the four nearest pixels; 0 outside of the image.
    pub(super) fn between(&self, x: f64, y: f64) -> f64 {
        let (left, top) = (x.floor(), y.floor());
        let (right_share, low_share) = (x - left, y - top);
        let (left, top) = (left as isize, top as isize);
        let across =
            |y| self.at(left, y) * (1.0 - right_share) + self.at(left + 1, y) * right_share;
        across(top) * (1.0 - low_share) + across(top + 1) * low_share
    }

    fn at(&self, x: isize, y: isize) -> f64 {
        let Grey { width, height, pixels } = self.image;
        match (usize::try_from(x), usize::try_from(y)) {
            (Ok(x), Ok(y)) if x < width && y < height => {
                pixels.get(y * width + x).map_or(0.0, |pixel| self.amount(*pixel))
            }
            _ => 0.0,
        }
    }

    fn amount(&self, pixel: u8) -> f64 {
        self.amounts.get(usize::from(pixel)).copied().unwrap_or_default()
    }
}

/// The pixels of the first and last rows and columns.
fn edge<'a>(image: &Grey<'a>) -> impl Iterator<Item = u8> + use<'a> {
    let Grey { width, height, pixels } = *image;
    let rows = pixels.chunks(width).enumerate();
    rows.flat_map(move |(y, row)| {
        let whole = y == 0 || y == height - 1;
        row.iter().step_by(if whole { 1 } else { (width - 1).max(1) }).copied()
    })
}

/// Division of pixels into two classes of brightness.
struct Split {
    last_dark: u8,
    /// Mean brightness of the dark class.
    dark: f64,
    bright: f64,
}

impl Split {
    /// The split with the greatest variance between its classes (N. Otsu, "A threshold selection method from gray-level
    /// histograms", 1979); `None` if all pixels have the same brightness.
    fn of(pixels: &[u8]) -> Option<Self> {
        let mut histogram = [0_u32; 256];
        for pixel in pixels {
            if let Some(count) = histogram.get_mut(usize::from(*pixel)) {
                *count += 1;
            }
        }
        let total = pixels.len() as f64;
        let sum: f64 = pixels.iter().map(|pixel| f64::from(*pixel)).sum();
        let (mut best, mut found) = (0.0, None);
        let (mut dark_count, mut dark_sum) = (0.0, 0.0);
        for (level, count) in (0..=u8::MAX).zip(histogram) {
            dark_count += f64::from(count);
            dark_sum += f64::from(count) * f64::from(level);
            let bright_count = total - dark_count;
            if dark_count == 0.0 || bright_count == 0.0 {
                continue;
            }
            let (dark, bright) = (dark_sum / dark_count, (sum - dark_sum) / bright_count);
            let variance = dark_count * bright_count * (bright - dark) * (bright - dark);
            if variance > best {
                (best, found) = (variance, Some(Self { last_dark: level, dark, bright }));
            }
        }
        found
    }
}
