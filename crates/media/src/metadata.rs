//! Removal of everything in a file that is not part of the picture: color profiles (`profile` reads them before),
//! texts, thumbnails, comments, animation. Decoders would unpack and copy these, which may take more time than the
//! picture.
//!
//! **Invariant:** the result is at most as long as the file, and the time is linear in its length.

use std::iter;

/// Maximum length of kept metadata, in bytes: that of a segment of a JPEG file. Only the orientation is kept, which
/// needs a few dozen bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG_START: &[u8] = b"\xff\xd8";
/// Size of a PNG chunk without its data: length and type before the data, and a checksum after it.
const CHUNK_HEAD: usize = 8;
const CHUNK_SUM: usize = 4;
const EXIF: &[u8] = b"Exif\0\0";

/// Removes the metadata of a PNG or JPEG file, but keeps the orientation. `None` if the file is neither.
#[must_use]
pub fn without_metadata(file: &[u8]) -> Option<Vec<u8>> {
    match file.strip_prefix(PNG_SIGNATURE) {
        Some(chunks) => Some(png(chunks)),
        None => file.strip_prefix(JPEG_START).map(jpeg),
    }
}

/// The width and height of a PNG file, from its first chunk.
#[must_use]
pub fn png_size(file: &[u8]) -> Option<(u32, u32)> {
    let head = file.strip_prefix(PNG_SIGNATURE)?.get(CHUNK_HEAD..)?;
    let (width, rest) = head.split_first_chunk()?;
    let (height, _) = rest.split_first_chunk()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height)))
}

/// Keeps the chunks of the picture. Removes everything from a truncated chunk on.
fn png(mut chunks: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(PNG_SIGNATURE.len() + chunks.len());
    kept.extend_from_slice(PNG_SIGNATURE);
    while let Some((chunk, kind, rest)) = png_chunk(chunks) {
        let keep = match kind {
            b"IHDR" | b"PLTE" | b"tRNS" | b"IDAT" | b"IEND" => true,
            b"eXIf" => chunk.len() <= KEPT_BYTES_MAX,
            _ => false,
        };
        if keep {
            kept.extend_from_slice(chunk);
        }
        chunks = rest;
    }
    kept
}

/// Types and data of the chunks of a PNG file, before the first truncated chunk. `None` if it is not a PNG file.
pub(crate) fn png_chunks(file: &[u8]) -> Option<impl Iterator<Item = (&[u8; 4], &[u8])>> {
    let mut chunks = file.strip_prefix(PNG_SIGNATURE)?;
    Some(iter::from_fn(move || {
        let (chunk, kind, rest) = png_chunk(chunks)?;
        chunks = rest;
        Some((kind, chunk.get(CHUNK_HEAD..chunk.len() - CHUNK_SUM)?))
    }))
}

/// The first chunk, its type, and the rest.
fn png_chunk(chunks: &[u8]) -> Option<(&[u8], &[u8; 4], &[u8])> {
    let (length, rest) = chunks.split_first_chunk()?;
    let kind = rest.first_chunk()?;
    let whole = usize::try_from(u32::from_be_bytes(*length)).ok()? + CHUNK_HEAD + CHUNK_SUM;
    let (chunk, rest) = chunks.split_at_checked(whole)?;
    Some((chunk, kind, rest))
}

/// Keeps the segments of the picture, and everything after the header of the first scan. Removes bytes between
/// segments, because a decoder might interpret them.
fn jpeg(mut segments: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(JPEG_START.len() + segments.len());
    kept.extend_from_slice(JPEG_START);
    let mut exif = false;
    while let Some((marker, segment, rest)) = jpeg_segment(segments) {
        let keep = match marker {
            // This is the start of a scan, after which there are no more header segments.
            0xda => {
                kept.extend_from_slice(&[0xff, marker]);
                kept.extend_from_slice(segment);
                kept.extend_from_slice(rest);
                break;
            }
            0xe1 => !exif && segment.get(2..).is_some_and(|data| data.starts_with(EXIF)),
            // These two segments of applications define how colors are encoded.
            0xe0 | 0xee => true,
            // These are frames and tables.
            0xc0..=0xcf | 0xdb | 0xdd => true,
            _ => false,
        };
        exif |= keep && marker == 0xe1;
        if keep {
            kept.extend_from_slice(&[0xff, marker]);
            kept.extend_from_slice(segment);
        }
        segments = rest;
    }
    kept
}

/// Markers of a JPEG file with their segments, which begin with their length. After the header of the first scan, a
/// decoder may find other markers. `None` if it is not a JPEG file.
pub(crate) fn jpeg_segments(file: &[u8]) -> Option<impl Iterator<Item = (u8, &[u8])>> {
    let mut segments = file.strip_prefix(JPEG_START)?;
    Some(iter::from_fn(move || {
        let (marker, segment, rest) = jpeg_segment(segments)?;
        segments = rest;
        Some((marker, segment))
    }))
}

/// The first marker, its segment (which begins with its length), and the rest. Skips bytes before the marker.
fn jpeg_segment(segments: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let at = memchr::memchr(0xff, segments)?;
    let rest = segments.get(at..)?;
    let fill = rest.iter().position(|byte| !matches!(byte, 0xff | 0))?;
    let (marker, rest) = rest.get(fill..)?.split_first()?;
    // These markers have no segment; before the first scan they are invalid.
    if matches!(marker, 0x01 | 0xd0..=0xd9) {
        return Some((*marker, &[], rest));
    }
    let length = usize::from(u16::from_be_bytes(*rest.first_chunk()?));
    // The length includes its own two bytes.
    let (segment, rest) = rest.split_at_checked(length).filter(|_| length >= 2)?;
    Some((*marker, segment, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &str, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u32).to_be_bytes();
        [&length[..], kind.as_bytes(), data, b"sum."].concat()
    }

    fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker][..], &length, data].concat()
    }

    #[track_caller]
    fn check(file: &[u8], expect: &[u8]) {
        assert_eq!(without_metadata(file).unwrap(), expect, "{file:x?}");
    }

    #[test]
    fn chunks_of_metadata_are_removed_from_png_files() {
        let head = chunk("IHDR", &[0, 0, 0, 3, 0, 0, 0, 4]);
        let (data, end) = (chunk("IDAT", b"data"), chunk("IEND", b""));
        let picture = [PNG_SIGNATURE, &head, &data, &end].concat();
        check(&picture, &picture);
        assert_eq!(png_size(&picture), Some((3, 4)));
        assert_eq!(png_size(&picture[..20]), None);
        for kind in ["iCCP", "zTXt", "iTXt", "tEXt", "acTL", "fdAT", "ABCD"] {
            let more = chunk(kind, b"whatever");
            check(&[PNG_SIGNATURE, &head, &more, &data, &more, &end].concat(), &picture);
        }
        let (short, long) = (chunk("eXIf", b"turned"), chunk("eXIf", &[0; KEPT_BYTES_MAX]));
        let turned = [PNG_SIGNATURE, &head, &short, &data].concat();
        check(&[PNG_SIGNATURE, &head, &short, &long, &data].concat(), &turned);
        // A truncated chunk is dropped.
        check(&picture[..picture.len() - 1], &[PNG_SIGNATURE, &head, &data].concat());
        check(&[PNG_SIGNATURE, &[0xff; 9]].concat(), PNG_SIGNATURE);
    }

    #[test]
    fn segments_of_metadata_are_removed_from_jpeg_files() {
        let (frame, scan) = (segment(0xc0, b"frame"), segment(0xda, b"scan"));
        let adobe = segment(0xee, b"Adobe");
        let rest: &[u8] = b"data\xff\xe2\0\x04in scans\xff\xd9";
        let picture = [JPEG_START, &adobe, &frame, &scan, rest].concat();
        check(&picture, &picture);
        for marker in (0xe1..=0xef).filter(|marker| *marker != 0xee).chain([0xfe]) {
            let more = segment(marker, b"whatever");
            check(&[JPEG_START, &more, &adobe, &more, &frame, &scan, rest].concat(), &picture);
        }
        let exif = segment(0xe1, b"Exif\0\0turned");
        let turned = [JPEG_START, &exif, &frame, &scan, rest].concat();
        check(&[JPEG_START, &exif, &exif, &frame, &scan, rest].concat(), &turned);
        // Fill bytes and other bytes between segments are removed.
        let spaced = [JPEG_START, b"xx\xff\xff", &adobe, b"y", &frame, &scan, rest].concat();
        check(&spaced, &picture);
        for cut in [JPEG_START.len(), 3, 5, 9] {
            check(&picture[..cut], JPEG_START);
        }
    }
}
