//! Images, and grids of gray: each is decoded within the computed memory, or refused.

use api::drawing;
use knn::Grey;

/// Decoder memory above which images are skipped here, in bytes: they are slow, and no different.
const BYTES_MAX: u64 = 16 << 20;

/// Input: a PNG or JPEG file; or a width, and pixels.
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
