//! Head of a file: its format, its size, and the memory that a decoder needs, read from the bytes before decoding.

use crate::jpeg::{self, Jpeg};
use crate::metadata::without_metadata;
use crate::{DECODER_BYTES_MAX, FILE_BYTES_MAX, MediaError, PIXELS_MAX, SIDE_MAX, webp};

/// Maximum side of a JPEG decoder's block, in pixels.
const BLOCK_SIDE: u64 = 32;

/// Format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JPEG.
    Jpeg,
    /// PNG; only the first picture of an animation is used.
    Png,
    /// GIF; only the first picture of an animation is used.
    Gif,
    /// WebP; only the first picture of an animation is used.
    Webp,
}

impl Format {
    /// Detects the format of a file from its first bytes, and checks the file's size.
    ///
    /// # Errors
    /// If the file is not a picture, or is too large.
    pub fn of(file: &[u8]) -> Result<Self, MediaError> {
        if file.len() > FILE_BYTES_MAX {
            return Err(MediaError::Bytes);
        }
        let is_riff = |name: &[u8]| file.starts_with(b"RIFF") && file.get(8..12) == Some(name);
        if file.starts_with(&[0xff, 0xd8, 0xff]) {
            Ok(Self::Jpeg)
        } else if file.starts_with(b"\x89PNG\r\n\x1a\n") {
            Ok(Self::Png)
        } else if file.starts_with(b"GIF87a") || file.starts_with(b"GIF89a") {
            Ok(Self::Gif)
        } else if is_riff(b"WEBP") {
            Ok(Self::Webp)
        } else if is_sound_or_video(file) || is_riff(b"WAVE") || is_riff(b"AVI ") {
            Err(MediaError::NotPicture)
        } else {
            Err(MediaError::Format)
        }
    }
}

/// Head of a picture that is small enough to be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The format.
    pub format: Format,
    /// Number of pixels per row, before the picture is turned upright.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
    /// Maximum memory that a decoder needs for the picture, in bytes.
    pub decoder_bytes: u64,
    /// Length of the picture in the file without its metadata, in bytes.
    pub(crate) picture_bytes: usize,
}

/// Reads the head of a file. For a JPEG, this copies and examines all bytes, which takes some milliseconds if the file
/// is large.
///
/// # Errors
/// If the file is not a picture, or is too large.
pub fn head(file: &[u8]) -> Result<Head, MediaError> {
    let format = Format::of(file)?;
    let mut picture_bytes = file.len();
    let (width, height, pixel_bytes) = match format {
        Format::Jpeg => {
            // Decoders get the file without its metadata, so the markers are read from there.
            let plain = without_metadata(file).ok_or(MediaError::Damaged)?;
            let Jpeg { width, height, components, bytes, is_kept_whole } = jpeg::read(&plain)?;
            picture_bytes = bytes;
            // A pixel needs 4 bytes, and 2 more per component if the decoder keeps the coefficients.
            let kept = if is_kept_whole { 2 * u64::from(components) } else { 0 };
            (width, height, 4 + kept)
        }
        Format::Png => png(file).ok_or(MediaError::Damaged)?,
        Format::Gif => {
            let (width, height) = gif(file).ok_or(MediaError::Damaged)?;
            // A pixel needs 9 bytes: in the stored frame, in the frame as colors, and on the canvas on which the frame
            // is drawn.
            (width, height, 9)
        }
        Format::Webp => {
            let (width, height) = webp::size(file)?;
            // A pixel needs 12 bytes: in the planes of luma, chroma and alpha, in the decoded picture, and on the
            // canvas.
            (width, height, 12)
        }
    };
    let head = check(format, (width, height), pixel_bytes)?;
    Ok(Head { picture_bytes, ..head })
}

fn check(
    format: Format,
    (width, height): (u32, u32),
    pixel_bytes: u64,
) -> Result<Head, MediaError> {
    if width == 0 || height == 0 {
        return Err(MediaError::Damaged);
    }
    let max = PIXELS_MAX.min(DECODER_BYTES_MAX / pixel_bytes);
    let size = MediaError::Size { width, height, max };
    let (w, h) = (u64::from(width), u64::from(height));
    if width.max(height) > SIDE_MAX || w * h > max {
        return Err(size);
    }
    let blocks = w.next_multiple_of(BLOCK_SIDE) * h.next_multiple_of(BLOCK_SIDE);
    let decoder_bytes = blocks * pixel_bytes;
    // For a narrow picture, whole blocks take much more memory than its pixels.
    if decoder_bytes > DECODER_BYTES_MAX + (DECODER_BYTES_MAX >> 3) {
        return Err(size);
    }
    Ok(Head { format, width, height, decoder_bytes, picture_bytes: 0 })
}

/// Whether a file begins like MP4 or a related format, Matroska, Ogg, FLAC or MP3. Affects only the error message.
fn is_sound_or_video(file: &[u8]) -> bool {
    let starts = [&b"\x1a\x45\xdf\xa3"[..], b"OggS", b"fLaC", b"ID3", b"\xff\xfb", b"\xff\xf1"];
    let is_picture = [&b"avif"[..], b"avis", b"heic", b"heix", b"mif1"];
    let brand = file.get(8..12).unwrap_or_default();
    (file.get(4..8) == Some(b"ftyp") && !is_picture.contains(&brand))
        || starts.iter().any(|start| file.starts_with(start))
}

/// Width, height, and memory per pixel in bytes.
fn png(file: &[u8]) -> Option<(u32, u32, u64)> {
    let header = file.get(12..26)?;
    let header = header.strip_prefix(b"IHDR")?;
    let (width, header) = header.split_first_chunk()?;
    let (height, header) = header.split_first_chunk()?;
    let [depth, _] = *header else { return None };
    // A pixel has at most four channels of one or two bytes.
    let pixel_bytes = if depth == 16 { 8 } else { 4 };
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height), pixel_bytes))
}

/// Width and height of the canvas or of the first frame, whichever is larger in each direction.
fn gif(file: &[u8]) -> Option<(u32, u32)> {
    let side = |low: u8, high: u8| u32::from(u16::from_le_bytes([low, high]));
    let [w0, w1, h0, h1, flags, ..] = *file.get(6..13)? else { return None };
    let canvas = (side(w0, w1), side(h0, h1));
    let table = if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
    let mut rest = file.get(13 + table..)?;
    // Skip extensions before the first frame: each is a chain of short blocks.
    while let Some(extension) = rest.strip_prefix(b"\x21") {
        rest = extension.get(1..)?;
        loop {
            let (length, after) = rest.split_first()?;
            rest = after.get(usize::from(*length)..)?;
            if *length == 0 {
                break;
            }
        }
    }
    let [0x2c, x0, x1, y0, y1, w0, w1, h0, h1, ..] = *rest else { return None };
    let (right, below) = (side(x0, x1) + side(w0, w1), side(y0, y1) + side(h0, h1));
    Some((canvas.0.max(right), canvas.1.max(below)))
}
