//! Picture to upload.

/// Makes a GIF of one pixel with this color.
#[must_use]
pub fn gif(color: u8) -> Vec<u8> {
    let mut gif = b"GIF89a\x01\0\x01\0\x80\0\0".to_vec();
    gif.extend([color; 6]);
    gif.extend(b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b");
    gif
}
