//! Memory of an image: at most the amount computed before decoding, for any metadata in its file. This is a separate
//! test binary because it replaces the global allocator.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]
#![allow(unsafe_code, reason = "an allocator that counts is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use api::drawing::{self, ImageError};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use image::{DynamicImage, GrayImage, ImageFormat, Luma, RgbaImage};

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Allocator that counts the allocated bytes, and their maximum.
struct Counting;

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        MOST.fetch_max(now, Ordering::SeqCst);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work`. Returns its result, and the maximum of additionally allocated bytes.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Ordering::SeqCst);
    MOST.store(before, Ordering::SeqCst);
    let returned = work();
    (returned, MOST.load(Ordering::SeqCst) - before)
}

/// Reads an image and checks the memory that this takes. If `read` is given, also checks whether the image can be read.
#[track_caller]
fn check(what: &str, file: &[u8], read: impl Into<Option<bool>>) {
    let read = read.into();
    let opening = drawing::opening_bytes(file);
    let (image, took) = counted(|| drawing::open(file));
    assert!(took <= opening + (1 << 20), "{what}: opening used {took} of {opening}");
    let image = match image {
        Ok(image) => image,
        Err(error) => return assert_ne!(read, Some(true), "{what}: {error}"),
    };
    let bytes = image.bytes() as usize;
    let (bits, took) = counted(|| image.normalize());
    assert!(took <= bytes, "{what}: used {took} of {bytes}");
    let error = bits.as_ref().err().map(ImageError::to_string);
    assert!(read.is_none_or(|read| bits.is_ok() == read), "{what}: {error:?}");
}

fn file(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.into().write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn zeros(bytes: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![0; bytes]).unwrap();
    encoder.finish().unwrap()
}

/// Checksum of PNG files.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(u32::MAX, byte)
}

/// Inserts a chunk after the head of a PNG file.
fn with_chunk(png: &[u8], kind: &str, data: &[u8]) -> Vec<u8> {
    let (head, rest) = png.split_at(33);
    let chunk = [kind.as_bytes(), data].concat();
    let (length, sum) = (data.len() as u32, crc32(&chunk));
    [head, &length.to_be_bytes(), &chunk, &sum.to_be_bytes(), rest].concat()
}

fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    [&[0xff, marker][..], &(data.len() as u16 + 2).to_be_bytes(), data].concat()
}

/// Makes an almost empty JPEG file of this size. Its components come one by one, so that a decoder keeps all of them to
/// the end.
fn hollow_jpeg(frame: u8, side: u16, components: u8, sampling: u8) -> Vec<u8> {
    let [high, low] = side.to_be_bytes();
    let mut head = vec![8, high, low, high, low, components];
    for component in 1..=components {
        // The last component is the smallest.
        let sampling = if component == components { 0x11 } else { sampling };
        head.extend_from_slice(&[component, sampling, 0]);
    }
    let table = |class: u8| [&[class, 1][..], &[0; 15], &[0]].concat();
    [
        b"\xff\xd8".to_vec(),
        segment(0xdb, &[&[0][..], &[1; 64]].concat()),
        segment(frame, &head),
        segment(0xc4, &table(0x00)),
        segment(0xc4, &table(0x10)),
        segment(0xda, &[1, 1, 0, 0, 0, 0]),
        vec![0; 64],
        b"\xff\xd9".to_vec(),
    ]
    .concat()
}

/// The only test of this binary, since the allocator counts the bytes of the whole process.
#[test]
fn an_image_takes_no_more_memory_than_computed() {
    let ring = |x: u32, y: u32| (20..30).contains(&(x.abs_diff(50) + y.abs_diff(50)));
    let drawn = GrayImage::from_fn(100, 100, |x, y| Luma([u8::from(!ring(x, y)) * 255]));
    let (png, jpeg) = (file(drawn.clone(), ImageFormat::Png), file(drawn, ImageFormat::Jpeg));
    check("PNG", &png, true);
    check("JPEG", &jpeg, true);

    let bomb = zeros(256 << 20);
    let profile = [&b"bomb\0\0"[..], &bomb].concat();
    check("a profile that inflates", &with_chunk(&png, "iCCP", &profile), true);
    check("a text that inflates", &with_chunk(&png, "zTXt", &profile), true);
    let text = [&b"XML:com.adobe.xmp\0\x01\0\0\0"[..], &bomb].concat();
    check("a text that inflates", &with_chunk(&png, "iTXt", &text), true);
    check("a long EXIF", &with_chunk(&png, "eXIf", &vec![0; 3 << 20]), true);
    let texts = (0..2_000).fold(png.clone(), |png, _| with_chunk(&png, "tEXt", b"key\0text"));
    check("many texts", &texts, true);

    let mut wide = RgbaImage::new(4_000, 300).into();
    check("nothing drawn", &file(DynamicImage::clone(&wide), ImageFormat::Png), false);
    wide.invert();
    check("16 bits", &file(wide.into_rgba16(), ImageFormat::Png), false);

    let (start, rest) = jpeg.split_at(2);
    let xmp = [&b"http://ns.adobe.com/xmp/extension/\0"[..], &[b'g'; 32], &[0xff; 8], b"data"];
    for (marker, data) in [
        (0xe2, [&b"ICC_PROFILE\0\x01\xfe"[..], &[0; 65_000]].concat()),
        (0xe1, [&b"Exif\0\0"[..], &[0; 65_000]].concat()),
        (0xe1, xmp.concat()),
        (0xed, [&b"Photoshop 3.0\0"[..], &[0; 65_000]].concat()),
    ] {
        let segments = segment(marker, &data).repeat((1 << 20) / data.len());
        check("JPEG segments", &[start, &segments, rest].concat(), true);
    }
    for components in [1, 3, 4] {
        for sampling in [0x11, 0x22, 0x41, 0x44] {
            let what = format!("{components} components, sampled {sampling:x}");
            check(&what, &hollow_jpeg(0xc2, 1_000, components, sampling), None);
            check(&what, &hollow_jpeg(0xc0, 1_000, components, sampling), None);
        }
    }
}
