//! Conversion of a picture: decodes it, scales it down, converts its colors to sRGB, turns it upright, and encodes it.

use std::io::Cursor;

use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use image::codecs::png::{CompressionType, FilterType, PngDecoder, PngEncoder};
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, Limits};

use crate::blurhash::blurhash;
use crate::head::{Format, Head};
use crate::profile::to_srgb;
use crate::{
    DECODER_BYTES_MAX, MediaError, ORIGINAL_PIXELS_MAX, PREVIEW_PIXELS_MAX, STORED_BYTES_MAX,
};

/// Quality of stored JPEG files, from 1 to 100.
const QUALITY: u8 = 85;
/// Maximum size of a PNG file of an opaque picture, in bytes. If the file is larger, the picture is stored as JPEG. The
/// files of drawings and screenshots are usually smaller, those of photographs larger.
const OPAQUE_PNG_BYTES_MAX: usize = 1 << 20;
/// Longest side of the picture from which the BlurHash is computed, in pixels.
const BLURHASH_SIDE: u32 = 32;
/// Memory that a decoder needs in addition to the pixels, in bytes.
const DECODER_TABLES: u64 = 4 << 20;

/// Purpose of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Attachment of a post: the whole picture, and a preview.
    Attachment,
    /// Picture of a user: the square in the middle, at most 400 pixels wide.
    Avatar,
    /// Header of a profile: three times as wide as high, at most 1,500 pixels wide.
    Header,
}

/// Encoded picture to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Content of a JPEG or PNG file without metadata.
    pub bytes: Vec<u8>,
    /// Whether the file is a PNG.
    pub is_png: bool,
    /// Number of pixels per row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

/// A converted picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The picture.
    pub original: Encoded,
    /// Preview, for attachments only.
    pub preview: Option<Encoded>,
    /// BlurHash of the picture.
    pub blurhash: String,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 3] = [Self::Attachment, Self::Avatar, Self::Header];

    /// Name of the shape.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attachment => "attachment",
            Self::Avatar => "avatar",
            Self::Header => "header",
        }
    }

    /// Width and height of the largest picture of this shape; `None` if the shape has no fixed proportions.
    const fn sides(self) -> Option<(u32, u32)> {
        match self {
            Self::Attachment => None,
            Self::Avatar => Some((400, 400)),
            Self::Header => Some((1_500, 500)),
        }
    }
}

/// Converts a file, whose head has been read. Blocks for up to a few seconds, and uses up to
/// [`CONVERSION_BYTES_MAX`](crate::CONVERSION_BYTES_MAX) of memory.
///
/// # Errors
/// If the file is damaged, or the result is too large.
///
/// # Panics
/// If a decoder panics, which may happen with damaged files. The caller must catch the panic.
pub fn convert(file: &[u8], head: &Head, shape: Shape) -> Result<Picture, MediaError> {
    let (picture, orientation) = decode(file, head)?;
    let has_color = picture.color().has_color();
    let mut picture = match shape.sides() {
        None => scaled(picture, ORIGINAL_PIXELS_MAX),
        Some(sides) => cropped(&plain(picture), turned(sides, orientation)),
    };
    to_srgb(&mut picture, has_color, file, head.format);
    picture.apply_orientation(orientation);
    let original = encode(&picture, head.format)?;
    let preview = match shape {
        Shape::Attachment => {
            picture = scaled(picture, PREVIEW_PIXELS_MAX);
            Some(encode(&picture, head.format)?)
        }
        Shape::Avatar | Shape::Header => None,
    };
    let blurhash = blurhash(&picture.thumbnail(BLURHASH_SIDE, BLURHASH_SIDE).into_rgb8());
    Ok(Picture { original, preview, blurhash })
}

fn decode(file: &[u8], head: &Head) -> Result<(DynamicImage, Orientation), MediaError> {
    let plain = crate::without_metadata(file);
    let plain = plain.as_deref().unwrap_or(file);
    let input = Cursor::new(plain.get(..head.picture_bytes).unwrap_or(plain));
    match head.format {
        Format::Jpeg => pixels(JpegDecoder::new(input), head),
        Format::Png => {
            let mut limits = Limits::no_limits();
            limits.max_alloc = Some(DECODER_TABLES);
            pixels(PngDecoder::with_limits(input, limits), head)
        }
        Format::Gif => pixels(GifDecoder::new(input), head),
        Format::Webp => pixels(WebPDecoder::new(input), head),
    }
}

fn pixels<D: ImageDecoder>(
    decoder: Result<D, image::ImageError>,
    head: &Head,
) -> Result<(DynamicImage, Orientation), MediaError> {
    let damaged = |_| MediaError::Damaged;
    let mut decoder = decoder.map_err(damaged)?;
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(head.width), Some(head.height));
    limits.max_alloc = Some(DECODER_BYTES_MAX + DECODER_TABLES);
    decoder.set_limits(limits).map_err(damaged)?;
    // The decoder reads the size again. Do not decode a picture that is larger than the checked size.
    let (width, height) = decoder.dimensions();
    if width > head.width || height > head.height {
        return Err(MediaError::Damaged);
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder).map_err(damaged)?, orientation))
}

/// Scales the picture to at most `pixels_max` pixels, with 8 bits per color.
fn scaled(picture: DynamicImage, pixels_max: u64) -> DynamicImage {
    let (width, height) = (picture.width(), picture.height());
    let pixels = u64::from(width) * u64::from(height);
    if pixels <= pixels_max {
        return plain(picture);
    }
    let scale = (pixels_max as f64 / pixels as f64).sqrt();
    let side = |side: u32| ((f64::from(side) * scale) as u32).max(1);
    let small = picture.thumbnail_exact(side(width), side(height));
    // Free the picture before the result is copied again.
    drop(picture);
    plain(small)
}

/// Crops the middle of the picture with the proportions of `sides`, and scales it to at most these sides.
fn cropped(picture: &DynamicImage, (width_max, height_max): (u32, u32)) -> DynamicImage {
    let (width, height) = (picture.width(), picture.height());
    let part = |length: u32, of: u32, by: u32| {
        let part = u64::from(length) * u64::from(of) / u64::from(by.max(1));
        u32::try_from(part).unwrap_or(u32::MAX).max(1)
    };
    let cut_width = width.min(part(height, width_max, height_max));
    let cut_height = height.min(part(width, height_max, width_max));
    let (x, y) = ((width - cut_width) / 2, (height - cut_height) / 2);
    let cut = picture.crop_imm(x, y, cut_width, cut_height);
    match cut_width > width_max || cut_height > height_max {
        true => cut.thumbnail_exact(width_max, height_max),
        false => cut,
    }
}

/// Converts a picture to 8 bits per color, and keeps transparency only if a pixel is transparent.
fn plain(picture: DynamicImage) -> DynamicImage {
    match picture.color() {
        ColorType::Rgb8 | ColorType::L8 => picture,
        color if !color.has_alpha() => DynamicImage::ImageRgb8(picture.into_rgb8()),
        _ => {
            let picture = picture.into_rgba8();
            let is_opaque = picture.pixels().all(|pixel| pixel.0.ends_with(&[u8::MAX]));
            let picture = DynamicImage::ImageRgba8(picture);
            if is_opaque { DynamicImage::ImageRgb8(picture.into_rgb8()) } else { picture }
        }
    }
}

/// Maximum width and height before the picture is turned upright.
fn turned((width, height): (u32, u32), orientation: Orientation) -> (u32, u32) {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    match orientation {
        Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH => (height, width),
        _ => (width, height),
    }
}

/// Encodes drawings and transparent pictures as PNG, others as JPEG.
fn encode(picture: &DynamicImage, source: Format) -> Result<Encoded, MediaError> {
    let (width, height) = (picture.width(), picture.height());
    let failed = |_| MediaError::Damaged;
    let has_alpha = picture.color().has_alpha();
    if has_alpha || matches!(source, Format::Png | Format::Gif) {
        let mut bytes = Vec::new();
        let encoder =
            PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive);
        picture.write_with_encoder(encoder).map_err(failed)?;
        if has_alpha && bytes.len() > STORED_BYTES_MAX {
            return Err(MediaError::Stored);
        }
        if has_alpha || bytes.len() <= OPAQUE_PNG_BYTES_MAX {
            return Ok(Encoded { bytes, is_png: true, width, height });
        }
    }
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
    picture.write_with_encoder(encoder).map_err(failed)?;
    if bytes.len() > STORED_BYTES_MAX {
        return Err(MediaError::Stored);
    }
    Ok(Encoded { bytes, is_png: false, width, height })
}
