//! Conversion of uploaded pictures: checks them, removes metadata, scales them down, converts them to sRGB, turns them
//! upright and encodes them again.
//!
//! `metadata` removes everything except the picture before other code reads the file. `head` detects the format and the
//! size before decoding; for that, `jpeg` and `webp` read markers. `convert` decodes, scales and encodes. `profile`
//! converts the colors of photos with a wide gamut. `blurhash` computes the text that apps show until a picture has
//! arrived. `answer` encodes the result as bytes.
//!
//! **Invariant:** the crate does no I/O, starts no thread and uses no other crate of this repository.
//! **Invariant:** the format is detected from the bytes; names and content types in a request are ignored.
//! **Invariant:** of an uploaded file, only the pixels are stored, so no place, camera data or hidden file is
//! published.
//! **Invariant:** the memory and time for a picture are limited by its head, before a decoder reads it. A decoder may
//! need more memory, for example for the codes of a WebP; the process that converts the picture limits that.

mod answer;
mod blurhash;
mod convert;
mod head;
mod jpeg;
mod metadata;
mod profile;
mod webp;

pub use answer::{ANSWER_BYTES_MAX, from_bytes, to_bytes};
pub use convert::{Encoded, Picture, Shape, convert};
pub use head::{Format, Head, head};
pub use jpeg::check_scans;
pub use metadata::{png_size, without_metadata};

/// Maximum size of an uploaded file, in bytes, as in Mastodon.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of pixels of an uploaded picture, as in Mastodon: 7,680 x 4,320.
pub const PIXELS_MAX: u64 = 33_177_600;
/// Maximum length of a side of an uploaded picture, in pixels.
pub const SIDE_MAX: u32 = 16_383;
/// Maximum memory of a decoder, in addition to the file, in bytes. For a progressive JPEG, a decoder keeps two bytes of
/// each color until the last scan, so such a picture may have at most 20 million pixels.
pub const DECODER_BYTES_MAX: u64 = 192 << 20;
/// Maximum number of scans of a JPEG. Decoding a scan takes time proportional to the size of the picture, even if the
/// scan has only a few bytes. Programs that write progressive files make about ten scans.
pub const SCANS_MAX: usize = 64;
/// Maximum number of pixels of a stored picture, as in Mastodon: 3,840 x 2,160.
pub const ORIGINAL_PIXELS_MAX: u64 = 8_294_400;
/// Maximum number of pixels of a preview, as in Mastodon: 640 x 360.
pub const PREVIEW_PIXELS_MAX: u64 = 230_400;
/// Maximum size of a stored file, in bytes. Only a large picture with transparency exceeds it.
pub const STORED_BYTES_MAX: usize = 16 << 20;
/// Maximum memory of a conversion, in addition to the uploaded file, in bytes: the decoder, the copy that is scaled
/// down, the copy that is turned upright, and the resulting files.
pub const CONVERSION_BYTES_MAX: u64 =
    DECODER_BYTES_MAX + 2 * 8 * ORIGINAL_PIXELS_MAX + 2 * STORED_BYTES_MAX as u64;

/// Error of a file that cannot be used as a picture.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file is not in a supported format.
    #[error("the file is not a supported picture (JPEG, PNG, GIF, WebP)")]
    Format,
    /// The file is sound or video.
    #[error("audio and video are not supported, only pictures (JPEG, PNG, GIF, WebP)")]
    NotPicture,
    /// The file is too large.
    #[error("a picture has at most {FILE_BYTES_MAX} bytes")]
    Bytes,
    /// The picture has too many pixels.
    #[error("a picture of {width} x {height} pixels is too large; the maximum is {max} pixels")]
    Size {
        /// Number of pixels per row.
        width: u32,
        /// Number of rows.
        height: u32,
        /// Maximum number of pixels of a picture of this kind.
        max: u64,
    },
    /// The JPEG has too many scans.
    #[error("a JPEG has at most {SCANS_MAX} scans; save it again with common settings")]
    Scans,
    /// The file is truncated or damaged.
    #[error("the picture is damaged or incomplete")]
    Damaged,
    /// The resulting file is too large.
    #[error("the picture is too large after its conversion; scale it down")]
    Stored,
}
