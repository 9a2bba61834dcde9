//! BlurHash: a short text from which apps draw a blurred picture. Its specification is
//! <https://github.com/woltapp/blurhash/blob/master/Algorithm.md>.

use std::f64::consts::PI;

use image::RgbImage;

/// Number of waves across and down.
const WAVES: u32 = 4;
const DIGITS: &[u8; 83] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~";

/// BlurHash of a picture, 36 characters. The time is proportional to the number of pixels, so scale the picture down
/// first.
pub(crate) fn blurhash(picture: &RgbImage) -> String {
    let mut factors = Vec::new();
    for down in 0..WAVES {
        for across in 0..WAVES {
            factors.push(factor(picture, across, down));
        }
    }
    let (average, rest) = factors.split_first().map_or(([0.0; 3], &[][..]), |(a, r)| (*a, r));
    let strongest = rest.iter().flatten().fold(0.0f64, |max, value| max.max(value.abs()));
    let level = (strongest * 166.0 - 0.5).floor().clamp(0.0, 82.0);
    let scale = (level + 1.0) / 166.0;
    let mut hash = String::new();
    push((WAVES - 1) + (WAVES - 1) * 9, 1, &mut hash);
    push(level as u32, 1, &mut hash);
    let [red, green, blue] = average.map(srgb);
    push(red << 16 | green << 8 | blue, 4, &mut hash);
    for wave in rest {
        let [red, green, blue] = wave.map(|value| {
            let part = value / scale;
            let root = part.abs().sqrt() * part.signum();
            (root * 9.0 + 9.5).floor().clamp(0.0, 18.0) as u32
        });
        push((red * 19 + green) * 19 + blue, 2, &mut hash);
    }
    hash
}

/// Amplitude of a wave in each of the three colors.
fn factor(picture: &RgbImage, across: u32, down: u32) -> [f64; 3] {
    let (width, height) = (f64::from(picture.width()), f64::from(picture.height()));
    let mut sum = [0.0; 3];
    for (x, y, pixel) in picture.enumerate_pixels() {
        let basis = (PI * f64::from(across) * f64::from(x) / width).cos()
            * (PI * f64::from(down) * f64::from(y) / height).cos();
        for (sum, color) in sum.iter_mut().zip(pixel.0) {
            *sum += basis * linear(color);
        }
    }
    let weight = if across == 0 && down == 0 { 1.0 } else { 2.0 };
    sum.map(|sum| sum * weight / (width * height))
}

fn linear(color: u8) -> f64 {
    let value = f64::from(color) / 255.0;
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

fn srgb(value: f64) -> u32 {
    let value = value.clamp(0.0, 1.0);
    let curved = match value <= 0.003_130_8 {
        true => value * 12.92,
        false => 1.055 * value.powf(1.0 / 2.4) - 0.055,
    };
    (curved * 255.0 + 0.5) as u32
}

fn push(number: u32, digits: u32, hash: &mut String) {
    for place in (0..digits).rev() {
        let digit = number / 83u32.pow(place) % 83;
        let digit = DIGITS.get(digit as usize).copied().unwrap_or(b'0');
        hash.push(char::from(digit));
    }
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    #[test]
    fn a_hash_has_its_number_of_waves_and_the_average_color() {
        let red = RgbImage::from_pixel(8, 4, Rgb([255, 0, 0]));
        let hash = blurhash(&red);
        assert_eq!(hash.len(), 36);
        assert_eq!(hash.get(2..6), Some("TI:j"), "pure red");
        assert!(hash.starts_with('U'), "4 x 4 waves: {hash}");
        let other = RgbImage::from_fn(8, 4, |x, _| Rgb([if x < 4 { 255 } else { 0 }, 0, 0]));
        assert_ne!(blurhash(&other), hash);
        assert_eq!(blurhash(&RgbImage::from_pixel(1, 1, Rgb([0; 3]))).len(), 36);
    }
}
