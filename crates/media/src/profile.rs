//! Color profiles: the profile in a file, and the conversion of pixels from its colors to sRGB, the color space of
//! stored pictures.
//!
//! **Invariant:** only the matrix and the curves of a profile are read, no tables of colors and no texts. So memory and
//! time are constant, except for one copy of the profile. A profile counts as sRGB if it is damaged, has no matrix, or
//! has other color components than the picture.

use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use flate2::read::ZlibDecoder;
use image::DynamicImage;
use moxcms::{
    CicpColorPrimaries, CicpProfile, ColorProfile, DataColorSpace, Layout, MatrixCoefficients,
    TransferCharacteristics, TransformOptions,
};

use crate::head::Format;
use crate::metadata::{jpeg_segments, png_chunks};

/// Maximum length of a profile that is read, in bytes. Profiles of cameras, phones and screens have at most some
/// thousand.
const PROFILE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of parts of a profile in a JPEG: a part is numbered by a byte.
const PARTS_MAX: usize = u8::MAX as usize;
/// Size of the header of a profile, in bytes. The number of tags follows it.
const HEADER_BYTES: usize = 128;
/// Size of an entry in the list of tags, in bytes.
const TAG_BYTES: usize = 12;
/// Tags that are read: columns of the matrix and curves, for colors or gray.
const TAGS: [&[u8]; 7] = [b"rXYZ", b"gXYZ", b"bXYZ", b"rTRC", b"gTRC", b"bTRC", b"kTRC"];
/// Size of the pixels converted at a time, in bytes; a multiple of the size of a pixel.
const PIECE_BYTES: usize = 12 << 10;

/// Converts the pixels of a picture to sRGB if its file has a usable profile.
pub(crate) fn to_srgb(picture: &mut DynamicImage, has_color: bool, file: &[u8], format: Format) {
    // The profile is untrusted, and the libraries that read it are large. After a panic, the colors are not converted.
    let _ = catch_unwind(AssertUnwindSafe(|| convert(picture, has_color, &profile(file, format)?)));
}

fn convert(picture: &mut DynamicImage, has_color: bool, profile: &ColorProfile) -> Option<()> {
    if profile.pcs != DataColorSpace::Xyz {
        return None;
    }
    let srgb = ColorProfile::new_srgb();
    let options = TransformOptions {
        allow_use_cicp_transfer: false,
        prefer_fixed_point: false,
        ..TransformOptions::default()
    };
    let transform = |from, to| profile.create_transform_8bit(from, &srgb, to, options).ok();
    let (pixels, layout) = match picture {
        DynamicImage::ImageRgb8(picture) => (&mut **picture, Layout::Rgb),
        DynamicImage::ImageRgba8(picture) => (&mut **picture, Layout::Rgba),
        DynamicImage::ImageLuma8(picture) => (&mut **picture, Layout::Gray),
        _ => return None,
    };
    match profile.color_space {
        DataColorSpace::Rgb if has_color => {
            let transform = transform(layout, layout)?;
            let mut piece = [0; PIECE_BYTES];
            for pixels in pixels.chunks_mut(PIECE_BYTES) {
                let piece = piece.get_mut(..pixels.len())?;
                transform.transform(pixels, piece).ok()?;
                pixels.copy_from_slice(piece);
            }
        }
        DataColorSpace::Gray if !has_color => {
            // Convert all shades of gray, whose red, green and blue are equal.
            let grays: Vec<u8> = (0..=u8::MAX).collect();
            let mut colors = vec![0; 3 * grays.len()];
            transform(Layout::Gray, Layout::Rgb)?.transform(&grays, &mut colors).ok()?;
            for pixel in pixels.chunks_mut(layout.channels()) {
                for value in pixel.iter_mut().take(3) {
                    *value = *colors.get(3 * usize::from(*value))?;
                }
            }
        }
        _ => return None,
    }
    Some(())
}

fn profile(file: &[u8], format: Format) -> Option<ColorProfile> {
    match format {
        Format::Jpeg => parse(jpeg(file)?),
        Format::Png => png(file),
        Format::Webp => parse(webp(file)?),
        Format::Gif => None,
    }
}

/// Reads the matrix and the curves of a profile.
fn parse(mut profile: Vec<u8>) -> Option<ColorProfile> {
    let (header, tags) = profile.split_at_mut_checked(HEADER_BYTES)?;
    // Overwrite flags, intents and dates, because the library refuses unknown ones.
    header.get_mut(24..36)?.copy_from_slice(&[0x07, 0xd0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    header.get_mut(64..68)?.fill(0);
    let (count, tags) = tags.split_first_chunk_mut::<4>()?;
    let listed = u32::from_be_bytes(*count);
    let mut kept = [None::<[u8; TAG_BYTES]>; TAGS.len()];
    for tag in tags.chunks_exact(TAG_BYTES).take(usize::try_from(listed).ok()?) {
        for (name, kept) in TAGS.iter().zip(&mut kept) {
            if tag.starts_with(name) && kept.is_none() {
                *kept = tag.try_into().ok();
            }
        }
    }
    // The data of the tags stays in the same place.
    let kept = kept.iter().flatten();
    *count = u32::try_from(kept.clone().count()).ok()?.to_be_bytes();
    for (to, from) in tags.chunks_exact_mut(TAG_BYTES).zip(kept) {
        to.copy_from_slice(from);
    }
    ColorProfile::new_from_slice(&profile).ok()
}

/// The profile in the segments of a JPEG, which may come in any order.
fn jpeg(file: &[u8]) -> Option<Vec<u8>> {
    let mut parts = Vec::new();
    for (marker, segment) in jpeg_segments(file)? {
        let data = segment.get(2..).unwrap_or_default();
        if marker == 0xda || parts.len() > PARTS_MAX {
            break;
        } else if marker == 0xe2
            && let Some([number, _, data @ ..]) = data.strip_prefix(b"ICC_PROFILE\0")
        {
            parts.push((usize::from(*number), data));
        }
    }
    parts.sort_by_key(|(number, _)| *number);
    let is_whole = parts.iter().map(|(number, _)| *number).eq(1..=parts.len());
    let length: usize = parts.iter().map(|(_, data)| data.len()).sum();
    (is_whole && length <= PROFILE_BYTES_MAX)
        .then(|| parts.iter().flat_map(|(_, data)| *data).copied().collect())
}

/// The profile of a PNG. The numbers of a standard color space have precedence over an embedded profile.
fn png(file: &[u8]) -> Option<ColorProfile> {
    let mut packed = None;
    for (kind, data) in png_chunks(file)? {
        match kind {
            b"cICP" => return standard(data),
            b"iCCP" if packed.is_none() => packed = Some(data),
            b"IDAT" => break,
            _ => {}
        }
    }
    let packed = packed.filter(|packed| packed.len() <= PROFILE_BYTES_MAX)?;
    // The data begins with a name and a byte for the compression method, of which there is only one.
    let name = packed.iter().position(|byte| *byte == 0)?;
    let [0, packed @ ..] = packed.get(name + 1..)? else { return None };
    let mut profile = Vec::new();
    let mut unpacked = ZlibDecoder::new(packed).take(PROFILE_BYTES_MAX as u64 + 1);
    // A truncated profile may still contain the required tags.
    let _ = unpacked.read_to_end(&mut profile);
    (profile.len() <= PROFILE_BYTES_MAX).then(|| parse(profile))?
}

/// The profile of a standard color space; `None` for one with a greater range of brightness.
fn standard(data: &[u8]) -> Option<ColorProfile> {
    let [primaries, curve, 0, 1] = *data else { return None };
    let transfer_characteristics = TransferCharacteristics::try_from(curve).ok()?;
    if matches!(
        transfer_characteristics,
        TransferCharacteristics::Smpte2084 | TransferCharacteristics::Hlg
    ) {
        return None;
    }
    Some(ColorProfile::new_from_cicp(CicpProfile {
        color_primaries: CicpColorPrimaries::try_from(primaries).ok()?,
        transfer_characteristics,
        matrix_coefficients: MatrixCoefficients::Identity,
        full_range: true,
    }))
}

/// The profile in a chunk of a WebP.
fn webp(file: &[u8]) -> Option<Vec<u8>> {
    let mut rest = file.get(12..)?;
    loop {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (length, data) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        if name == b"ICCP" {
            return (length <= PROFILE_BYTES_MAX)
                .then(|| data.get(..length).map(<[u8]>::to_vec))?;
        }
        rest = data.get(length.checked_add(length & 1)?..)?;
    }
}
