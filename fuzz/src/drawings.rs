//! Fuzz target of images: an image is refused, or normalized to a drawing with ink.

use api::drawing;
use knn::Grey;

/// Maximum memory of the decoder, in bytes. Images that need more are skipped: they are slow, and find no other
/// failures.
const BYTES_MAX: u64 = 16 << 20;

/// Input: a PNG or JPEG file. The same bytes are also read as a grid of gray pixels: its width in one byte, then the
/// pixels.
pub fn drawings(data: &[u8]) {
    if let Ok(image) = drawing::open(data)
        && image.bytes() <= BYTES_MAX
        && let Ok(bits) = image.normalize()
    {
        assert!(bits.ones() > 0, "a drawing has ink");
    }
    let Some((width, pixels)) = data.split_first() else { return };
    let width = usize::from(*width).max(1);
    let height = pixels.len() / width;
    if let Ok(grey) = Grey::new(width, height, &pixels[..width * height])
        && let Ok(bits) = grey.normalize()
    {
        assert!(bits.ones() > 0, "a drawing has ink");
    }
}
