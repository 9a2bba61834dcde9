//! Chunks of a WebP file: the size of the canvas and of every picture in it.

use crate::MediaError;

/// Maximum nesting of chunks: a frame of an animation has its own chunks.
const DEPTH_MAX: u32 = 2;
/// Maximum bytes of a chunk of metadata, which a decoder may read as a whole.
const METADATA_BYTES_MAX: usize = 1 << 20;

/// The largest width and height in the file. A decoder may use those of the canvas, or those of a picture.
pub(crate) fn size(file: &[u8]) -> Result<(u32, u32), MediaError> {
    let mut size = (0, 0);
    walk(file.get(12..).unwrap_or_default(), 0, &mut size)?;
    if size.0 == 0 || size.1 == 0 { Err(MediaError::Damaged) } else { Ok(size) }
}

fn walk(mut rest: &[u8], depth: u32, size: &mut (u32, u32)) -> Result<(), MediaError> {
    while let Some((name, after)) = rest.split_first_chunk::<4>() {
        let Some((length, data)) = after.split_first_chunk::<4>() else { break };
        let length = u32::from_le_bytes(*length) as usize;
        // A decoder reserves the announced length before it reads.
        let data_here = data.get(..length).ok_or(MediaError::Damaged)?;
        let found = match name {
            b"EXIF" | b"ICCP" | b"XMP " if length > METADATA_BYTES_MAX => None,
            b"VP8X" => canvas(data_here.get(4..10)),
            b"VP8 " => lossy(data_here),
            b"VP8L" => lossless(data_here),
            b"ANMF" if depth < DEPTH_MAX => {
                walk(data_here.get(16..).unwrap_or_default(), depth + 1, size)?;
                canvas(data_here.get(6..12))
            }
            // One decoder treats any chunk after this one as a picture.
            b"ALPH" if depth > 0 && !has_picture_next(data, length) => None,
            _ => Some(*size),
        };
        let (width, height) = found.ok_or(MediaError::Damaged)?;
        *size = (size.0.max(width), size.1.max(height));
        rest = data.get(length.saturating_add(length & 1)..).unwrap_or_default();
    }
    Ok(())
}

/// Whether `data`, which begins with a chunk of `length` bytes, continues with a picture of known size.
fn has_picture_next(data: &[u8], length: usize) -> bool {
    let next = data.get(length.saturating_add(length & 1)..).unwrap_or_default();
    next.starts_with(b"VP8 ")
}

/// Parses two numbers of three bytes, each one less than a side.
fn canvas(bytes: Option<&[u8]>) -> Option<(u32, u32)> {
    let [a, b, c, d, e, f] = *bytes? else { return None };
    Some((u32::from_le_bytes([a, b, c, 0]) + 1, u32::from_le_bytes([d, e, f, 0]) + 1))
}

/// Size in the head of a key frame of VP8.
fn lossy(data: &[u8]) -> Option<(u32, u32)> {
    let [_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..] = *data else { return None };
    let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    Some((side(w0, w1), side(h0, h1)))
}

/// Size in the head of a lossless picture: 14 bits for each side.
fn lossless(data: &[u8]) -> Option<(u32, u32)> {
    let [0x2f, a, b, c, d, ..] = *data else { return None };
    let bits = u32::from_le_bytes([a, b, c, d]);
    Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
}
