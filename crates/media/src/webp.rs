//! Chunks of a WebP file, which contain the sizes of the canvas and of each picture.

use crate::MediaError;

/// Maximum nesting of chunks. The chunk of an animation's frame contains other chunks.
const DEPTH_MAX: u32 = 2;
/// Maximum size of a chunk of metadata, in bytes. A decoder may read the chunk as a whole.
const METADATA_BYTES_MAX: usize = 1 << 20;

/// The largest width and the largest height in the file. A decoder may use the sizes of the canvas or of any picture.
pub(crate) fn size(file: &[u8]) -> Result<(u32, u32), MediaError> {
    let mut size = (0, 0);
    walk(file.get(12..).unwrap_or_default(), 0, &mut size)?;
    if size.0 == 0 || size.1 == 0 { Err(MediaError::Damaged) } else { Ok(size) }
}

fn walk(mut rest: &[u8], depth: u32, size: &mut (u32, u32)) -> Result<(), MediaError> {
    while let Some((name, after)) = rest.split_first_chunk::<4>() {
        let Some((length, data)) = after.split_first_chunk::<4>() else { break };
        let length = u32::from_le_bytes(*length) as usize;
        // Refuse a truncated chunk, because a decoder reserves the announced length before it reads.
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
            // After this chunk of transparency, the next must be a picture: one decoder treats any chunk there as a
            // picture.
            b"ALPH" if depth > 0 && !has_picture_next(data, length) => None,
            _ => Some(*size),
        };
        let (width, height) = found.ok_or(MediaError::Damaged)?;
        *size = (size.0.max(width), size.1.max(height));
        rest = data.get(length.saturating_add(length & 1)..).unwrap_or_default();
    }
    Ok(())
}

/// Whether the chunk after the first chunk of `data`, which has `length` bytes, is a picture whose size is read.
fn has_picture_next(data: &[u8], length: usize) -> bool {
    let next = data.get(length.saturating_add(length & 1)..).unwrap_or_default();
    next.starts_with(b"VP8 ")
}

/// Parses width and height. Each is stored in three bytes as one less.
fn canvas(bytes: Option<&[u8]>) -> Option<(u32, u32)> {
    let [a, b, c, d, e, f] = *bytes? else { return None };
    Some((u32::from_le_bytes([a, b, c, 0]) + 1, u32::from_le_bytes([d, e, f, 0]) + 1))
}

/// Size in the header of a VP8 key frame.
fn lossy(data: &[u8]) -> Option<(u32, u32)> {
    let [_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..] = *data else { return None };
    let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    Some((side(w0, w1), side(h0, h1)))
}

/// Size in the header of a lossless picture: 14 bits for each side.
fn lossless(data: &[u8]) -> Option<(u32, u32)> {
    let [0x2f, a, b, c, d, ..] = *data else { return None };
    let bits = u32::from_le_bytes([a, b, c, d]);
    Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
}
