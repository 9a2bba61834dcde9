//! Uploaded pictures: checked, freed of metadata, scaled down, converted to sRGB, turned upright and encoded again.
//!
//! `metadata` removes everything except the picture before other code reads it. `head` detects the format and the size
//! from the first bytes, before decoding (`jpeg` and `webp` read markers); `convert` decodes, scales and encodes;
//! `profile` converts the colors of photos with a wide gamut; `blurhash` makes the text that apps show until a picture
//! has arrived; `answer` is the result as bytes.
//!
//! **Invariant:** pure: it does no I/O, starts no thread and uses no other crate of this repository.
//! **Invariant:** the format is detected from the bytes. Names and content types of a request are ignored.
//! **Invariant:** only the pixels of an uploaded file are stored, so no place, camera or hidden file is published.
//! **Invariant:** the memory and the work for a picture are bounded by its header, before a decoder sees it. The
//! process that converts it bounds the memory that a decoder takes beyond that, for example for the codes of a WebP.

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

/// Maximum bytes of an uploaded file, the same as in Mastodon.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Maximum pixels of an uploaded picture: 7,680 x 4,320, the same as in Mastodon.
pub const PIXELS_MAX: u64 = 33_177_600;
/// Longest side of an uploaded picture, in pixels.
pub const SIDE_MAX: u32 = 16_383;
/// Maximum bytes of memory of a decoder, in addition to the file. A progressive JPEG keeps two bytes of each color
/// until its last scan, so it may have fewer pixels: 22 million.
pub const DECODER_BYTES_MAX: u64 = 192 << 20;
/// Maximum number of scans of a JPEG. Each takes time proportional to the whole picture, however few bytes it has;
/// programs that write progressive files make about ten.
pub const SCANS_MAX: usize = 64;
/// Maximum pixels of a stored picture: 3,840 x 2,160, the same as in Mastodon.
pub const ORIGINAL_PIXELS_MAX: u64 = 8_294_400;
/// Maximum pixels of a preview: 640 x 360, the same as in Mastodon.
pub const PREVIEW_PIXELS_MAX: u64 = 230_400;
/// Maximum bytes of a stored file. Only a large picture with transparency exceeds it.
pub const STORED_BYTES_MAX: usize = 16 << 20;
/// Maximum memory of a picture's conversion in bytes, in addition to the uploaded file: the decoder, the copy that is
/// scaled down, one that is turned upright, and the files.
pub const CONVERSION_BYTES_MAX: u64 =
    DECODER_BYTES_MAX + 2 * 8 * ORIGINAL_PIXELS_MAX + 2 * STORED_BYTES_MAX as u64;

/// Error of a file that cannot be used as a picture.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file has another format.
    #[error("the file is not a supported picture (JPEG, PNG, GIF, WebP)")]
    Format,
    /// The file is sound or video.
    #[error("audio and video are not supported, only pictures (JPEG, PNG, GIF, WebP)")]
    NotPicture,
    /// The file has too many bytes.
    #[error("a picture has at most {FILE_BYTES_MAX} bytes")]
    Bytes,
    /// The picture has too many pixels.
    #[error("a picture of {width} x {height} pixels is too large; the maximum is {max} pixels")]
    Size {
        /// Pixels per row.
        width: u32,
        /// Number of rows.
        height: u32,
        /// Maximum pixels of a picture of this kind.
        max: u64,
    },
    /// The JPEG has too many scans.
    #[error("a JPEG has at most {SCANS_MAX} scans; save it again with common settings")]
    Scans,
    /// The file is truncated or damaged.
    #[error("the picture is damaged or incomplete")]
    Damaged,
    /// The result has too many bytes.
    #[error("the picture is too large after its conversion; scale it down")]
    Stored,
}
