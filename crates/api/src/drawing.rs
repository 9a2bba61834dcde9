//! Conversion of PNG and JPEG files into drawings: the 1,024 bits that the recognizer compares.
//!
//! **Invariant:** the memory of an image is computed from its first bytes, before decoding, and metadata is
//! removed before the file is passed to a decoder.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use knn::{Bits, DrawingError, Grey};

/// Longest side of an image, in pixels. The largest image takes 209 MiB while it is read: four channels of two bytes
/// per pixel, plus `PIXEL_BYTES` and `DECODER_BYTES`.
pub const IMAGE_SIDE_MAX: u32 = 4_096;
/// Bytes per pixel after decoding: two copies with gray and alpha, and one with gray alone.
const PIXEL_BYTES: u64 = 5;
/// Bytes per pixel of a JPEG image while it is decoded: coefficients of four components, two bytes each, all kept until
/// the last scan.
const COEFFICIENT_BYTES: u64 = 8;
/// Maximum width and height of the blocks in which JPEG images are decoded, in pixels.
const BLOCK_SIDE: u64 = 32;
/// Memory of a decoder in addition to its image, in bytes: tables, and rows of the maximum length.
const DECODER_BYTES: u64 = 1 << 20;
/// Maximum number of copies of a file while it is read: one without metadata, and the decoder's buffer, which doubles
/// as it grows.
const FILE_COPIES: usize = 3;

/// Reason why a file cannot be used as a drawing.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file has another format.
    #[error("this is neither a PNG nor a JPEG image")]
    Format,
    /// The image is too large.
    #[error("an image is at most {IMAGE_SIDE_MAX} pixels wide and high, not {width} x {height}")]
    Size {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The file is truncated or damaged.
    #[error("the image cannot be decoded: {0}")]
    Damaged(String),
    /// The image is blank.
    #[error(transparent)]
    Drawing(#[from] DrawingError),
}

/// Image whose size was read and is within the limits, not yet decoded.
pub struct Image<D> {
    decoder: D,
    orientation: Orientation,
    jpeg: bool,
}

/// Memory that [`open`] needs and the image keeps, in bytes.
#[must_use]
pub fn opening_bytes(file: &[u8]) -> usize {
    FILE_COPIES * file.len()
}

/// Reads the header of an image.
///
/// # Errors
/// If the file is not a PNG or JPEG image, or the image is too large.
pub fn open(file: &[u8]) -> Result<Image<impl ImageDecoder>, ImageError> {
    if let Some((width, height)) = media::png_size(file) {
        check_size(width, height)?;
    }
    let picture = media::without_metadata(file).ok_or(ImageError::Format)?;
    media::check_scans(&picture).map_err(|error| ImageError::Damaged(error.to_string()))?;
    let guessed = ImageReader::new(Cursor::new(picture)).with_guessed_format();
    let mut reader = guessed.map_err(|_| ImageError::Format)?;
    let jpeg = match reader.format() {
        Some(ImageFormat::Jpeg) => true,
        Some(ImageFormat::Png) => false,
        _ => return Err(ImageError::Format),
    };
    // The decoder's limits are off, because the size is checked here, where the error can name width and height.
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(DECODER_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| damaged(&error))?;
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok(Image { decoder, orientation, jpeg })
}

fn check_size(width: u32, height: u32) -> Result<(), ImageError> {
    if width.max(height) > IMAGE_SIDE_MAX {
        return Err(ImageError::Size { width, height });
    }
    Ok(())
}

impl<D: ImageDecoder> Image<D> {
    /// Memory that [`Image::normalize`] needs, in bytes.
    pub fn bytes(&self) -> u64 {
        let (width, height) = self.decoder.dimensions();
        let (width, height) = (u64::from(width), u64::from(height));
        let blocks = width.next_multiple_of(BLOCK_SIDE) * height.next_multiple_of(BLOCK_SIDE);
        let coefficients = if self.jpeg { blocks * COEFFICIENT_BYTES } else { 0 };
        // The coefficients are freed before the image is converted to gray.
        let beside = coefficients.max(width * height * PIXEL_BYTES);
        DECODER_BYTES + self.decoder.total_bytes() + beside
    }

    /// Decodes the image and normalizes it to 32 x 32 bits. Takes up to one second for the largest.
    ///
    /// # Errors
    /// If the image is damaged or blank.
    pub fn normalize(self) -> Result<Bits, ImageError> {
        let image = DynamicImage::from_decoder(self.decoder).map_err(|error| damaged(&error))?;
        let mut image = DynamicImage::ImageLumaA8(image.into_luma_alpha8());
        image.apply_orientation(self.orientation);
        match on_paper(&image, u8::MAX) {
            // The ink may be white on a transparent background, and needs a black background then.
            Err(DrawingError::Blank) => Ok(on_paper(&image, 0)?),
            drawn => Ok(drawn?),
        }
    }
}

/// Extracts the drawing from the image on a background of this gray level, which shows where the image is transparent.
fn on_paper(image: &DynamicImage, paper: u8) -> Result<Bits, DrawingError> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let (pixels, _) = image.as_bytes().as_chunks::<2>();
    let opaque = u32::from(u8::MAX);
    let over = |[ink, alpha]: &[u8; 2]| {
        let (ink, alpha) = (u32::from(*ink), u32::from(*alpha));
        ((ink * alpha + u32::from(paper) * (opaque - alpha)) / opaque) as u8
    };
    let grey: Vec<u8> = pixels.iter().map(over).collect();
    Grey::new(width, height, &grey)?.normalize()
}

fn damaged(error: &image::ImageError) -> ImageError {
    ImageError::Damaged(error.to_string())
}
