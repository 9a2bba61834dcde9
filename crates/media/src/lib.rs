//! Pictures that users upload: checked, freed of metadata, scaled down, converted to sRGB, turned upright and encoded
//! anew.
//!
//! `metadata` removes what is no picture before anything else reads it. `head` finds out the format and the size from
//! the first bytes, before anything is decoded (`jpeg` and `webp` read markers); `convert` decodes, scales and encodes;
//! `profile` converts the colors of photos with a wide gamut; `blurhash` makes the text that apps show until a picture
//! has arrived; `answer` is the result as bytes.
//!
//! **Invariant:** pure: it does no I/O, starts no thread and uses no other crate of ours.
//! **Invariant:** the format is that of the bytes. Names and content types of a request are not read.
//! **Invariant:** nothing of an uploaded file is stored but its pixels, so no place, camera or hidden file is
//! published.
//! **Invariant:** the memory and the work of a picture are bounded by its header, before a decoder sees it. The process
//! that converts bounds what a decoder takes beyond that, such as for the codes of a WebP.

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

/// Most bytes of an uploaded file: as Mastodon.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Most pixels of an uploaded picture: 7,680 x 4,320, as Mastodon.
pub const PIXELS_MAX: u64 = 33_177_600;
/// Longest side of an uploaded picture, in pixels.
pub const SIDE_MAX: u32 = 16_383;
/// Most bytes of memory that a decoder may take beside the file. A progressive JPEG keeps two bytes of each color until
/// its last scan, so it may have fewer pixels: 22 million.
pub const DECODER_BYTES_MAX: u64 = 192 << 20;
/// Most scans of a JPEG. Each walks over the whole picture, however few bytes it has; programs that write progressive
/// files make about ten.
pub const SCANS_MAX: usize = 64;
/// Most pixels of a stored picture: 3,840 x 2,160, as Mastodon.
pub const ORIGINAL_PIXELS_MAX: u64 = 8_294_400;
/// Most pixels of a preview: 640 x 360, as Mastodon.
pub const PREVIEW_PIXELS_MAX: u64 = 230_400;
/// Most bytes of a stored file. Only a large picture with transparency has more.
pub const STORED_BYTES_MAX: usize = 16 << 20;
/// Most memory that the conversion of one picture takes beside the uploaded file, in bytes: the decoder, the copy that is
/// scaled down, one that is turned upright, and the files.
pub const CONVERSION_BYTES_MAX: u64 =
    DECODER_BYTES_MAX + 2 * 8 * ORIGINAL_PIXELS_MAX + 2 * STORED_BYTES_MAX as u64;

/// Why a file cannot be used as a picture.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// It is in another format.
    #[error("the file is no picture; those of the formats JPEG, PNG, GIF and WebP can be used")]
    Format,
    /// It is sound or video.
    #[error("audio and video are not supported; only pictures (JPEG, PNG, GIF, WebP) can be used")]
    NotPicture,
    /// It has too many bytes.
    #[error("a picture has at most {FILE_BYTES_MAX} bytes")]
    Bytes,
    /// It has too many pixels.
    #[error("a picture of {width} x {height} pixels is too large; at most {max} can be used")]
    Size {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Most pixels of a picture of this kind.
        max: u64,
    },
    /// It has too many scans.
    #[error("a JPEG has at most {SCANS_MAX} scans; save it again with common settings")]
    Scans,
    /// It is truncated or damaged.
    #[error("the picture is damaged, or not complete")]
    Damaged,
    /// The result has too many bytes.
    #[error("the picture is too large after it was encoded again; scale it down")]
    Stored,
}
