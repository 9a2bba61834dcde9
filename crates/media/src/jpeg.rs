//! Markers of a JPEG file without its metadata: they give the size, the coding, and the number of scans.

use memchr::memmem;

use crate::{MediaError, SCANS_MAX};

/// Information in the markers of a JPEG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jpeg {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) components: u8,
    /// Length up to the end of the picture, in bytes. Phones append other pictures or videos after it.
    pub(crate) bytes: usize,
    /// Whether a decoder keeps all coefficients until it has read the last scan.
    pub(crate) is_kept_whole: bool,
}

/// Maximum number of scans that a decoder can find in a file. Places within segments count too, because decoders differ
/// in what they skip.
fn scans(file: &[u8]) -> usize {
    memmem::find_iter(file, b"\xff\xda").count()
}

/// Refuses a JPEG with too many scans. Decoding a scan takes time proportional to the size of the picture, even if the
/// scan has only a few bytes.
///
/// # Errors
/// [`MediaError::Scans`]
pub fn check_scans(file: &[u8]) -> Result<(), MediaError> {
    if scans(file) > SCANS_MAX { Err(MediaError::Scans) } else { Ok(()) }
}

/// Reads the markers of a whole file. The time is linear in its length.
pub(crate) fn read(file: &[u8]) -> Result<Jpeg, MediaError> {
    check_scans(file)?;
    let mut rest = file.get(2..).unwrap_or_default();
    let (mut found, mut scans, mut is_partial) = (None::<Jpeg>, 0, false);
    while let Some((marker, after)) = next_marker(rest) {
        rest = after;
        match marker {
            // This marker ends the picture.
            0xd9 => break,
            // These markers have no length.
            0x01 | 0xd0..=0xd8 => continue,
            _ => {}
        }
        let Some((length, _)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_be_bytes(*length));
        let segment = rest.get(2..length).ok_or(MediaError::Damaged)?;
        rest = rest.get(length..).unwrap_or_default();
        match marker {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let [_, h1, h0, w1, w0, components, ..] = *segment else {
                    return Err(MediaError::Damaged);
                };
                // If there are several frames, a decoder could use the size of any of them.
                if found.is_some() {
                    return Err(MediaError::Damaged);
                }
                let (width, height) = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
                found = Some(Jpeg {
                    width: width.into(),
                    height: height.into(),
                    components,
                    bytes: 0,
                    is_kept_whole: !matches!(marker, 0xc0 | 0xc1),
                });
            }
            0xda => {
                scans += 1;
                // If a scan lacks components, a decoder keeps its coefficients until the other components come.
                let components = found.map_or(0, |jpeg| jpeg.components);
                is_partial |= segment.first() != Some(&components);
            }
            // `metadata` removes metadata only before the first scan. After it, decoders take quadratic time to join
            // metadata.
            0xe0..=0xef | 0xfe if scans > 0 => return Err(MediaError::Damaged),
            _ => {}
        }
    }
    let bytes = file.len() - rest.len();
    let found = found.filter(|jpeg| scans > 0 && matches!(jpeg.components, 1..=4));
    let found = found.ok_or(MediaError::Damaged)?;
    Ok(Jpeg { bytes, is_kept_whole: found.is_kept_whole || scans > 1 || is_partial, ..found })
}

/// The next marker, and the bytes after it. Within a scan, 0xff and a zero stand for a byte 0xff, not for a marker.
fn next_marker(mut rest: &[u8]) -> Option<(u8, &[u8])> {
    loop {
        let at = rest.iter().position(|byte| *byte == 0xff)?;
        rest = rest.get(at + 1..)?;
        match rest.split_first()? {
            (0x00, after) => rest = after,
            (0xff, _) => {}
            (marker, after) => return Some((*marker, after)),
        }
    }
}
