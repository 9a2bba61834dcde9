//! Tests of the conversion of pictures of every format, and of malicious files.

use std::io::Cursor;

use image::codecs::gif::{GifEncoder, Repeat};
use image::{DynamicImage, Frame, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use media::{
    Format, MediaError, ORIGINAL_PIXELS_MAX, PREVIEW_PIXELS_MAX, Picture, Shape, convert, head,
};

/// A lossy WebP picture of one pixel.
const LOSSY: &[u8] = b"RIFF\x22\0\0\0WEBPVP8 \x16\0\0\0\x30\x01\0\x9d\x01\x2a\x01\0\x01\0\x0e\xc0\xfe\x25\xa4\0\x03\x70\0\0\0\0";

fn picture(width: u32, height: u32) -> RgbImage {
    // The left half is red.
    RgbImage::from_fn(width, height, |x, y| {
        if x < width / 2 { Rgb([250, 0, 0]) } else { Rgb([0, (x % 251) as u8, (y % 241) as u8]) }
    })
}

fn file(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn converted(file: &[u8], shape: Shape) -> Result<Picture, MediaError> {
    convert(file, &head(file)?, shape)
}

fn decoded(bytes: &[u8]) -> RgbaImage {
    image::load_from_memory(bytes).unwrap().into_rgba8()
}

/// A chunk of a PNG.
fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        let mut crc = !0u32;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            }
        }
        !crc
    };
    let named = [&name[..], data].concat();
    [&(data.len() as u32).to_be_bytes()[..], &named, &crc(&named).to_be_bytes()].concat()
}

#[test]
fn pictures_of_every_format_are_decoded_and_stored_as_jpeg_or_png() {
    let source = picture(64, 32);
    for (format, expect, is_png) in [
        (ImageFormat::Jpeg, Format::Jpeg, false),
        (ImageFormat::Png, Format::Png, true),
        (ImageFormat::Gif, Format::Gif, true),
        (ImageFormat::WebP, Format::Webp, false),
    ] {
        let file = file(source.clone(), format);
        assert_eq!(head(&file).unwrap().format, expect);
        let made = converted(&file, Shape::Attachment).unwrap();
        assert_eq!((made.original.width, made.original.height), (64, 32));
        assert_eq!(made.original.is_png, is_png, "{format:?}");
        let pixels = decoded(&made.original.bytes);
        let [red, green, ..] = pixels.get_pixel(8, 16).0;
        assert!(red > 220 && green < 40, "{format:?}: {red} {green}");
        assert_eq!(made.blurhash.len(), 36);
        let preview = made.preview.unwrap();
        assert_eq!((preview.width, preview.height), (64, 32), "nothing is scaled up");
    }
    assert_eq!(head(LOSSY).unwrap().format, Format::Webp);
    assert_eq!(converted(LOSSY, Shape::Attachment).unwrap().original.width, 1);
}

#[test]
fn large_pictures_are_scaled_down_and_keep_their_proportions() {
    let file = file(picture(4_000, 3_000), ImageFormat::Jpeg);
    let made = converted(&file, Shape::Attachment).unwrap();
    let preview = made.preview.unwrap();
    for (made, max) in [(&made.original, ORIGINAL_PIXELS_MAX), (&preview, PREVIEW_PIXELS_MAX)] {
        let pixels = u64::from(made.width) * u64::from(made.height);
        assert!(pixels <= max && pixels > max * 99 / 100, "{} {}", made.width, made.height);
        let proportions = f64::from(made.width) / f64::from(made.height);
        assert!((proportions - 4.0 / 3.0).abs() < 0.01);
        let shown = decoded(&made.bytes);
        assert_eq!((shown.width(), shown.height()), (made.width, made.height));
    }
}

#[test]
fn pictures_of_profiles_are_cut_to_their_shape() {
    for (size, shape, expect) in [
        ((900, 600), Shape::Avatar, (400, 400)),
        ((100, 50), Shape::Avatar, (50, 50)),
        ((1, 5_000), Shape::Avatar, (1, 1)),
        ((4_000, 1_000), Shape::Header, (1_500, 500)),
        ((300, 300), Shape::Header, (300, 100)),
    ] {
        let file = file(picture(size.0, size.1), ImageFormat::Png);
        let made = converted(&file, shape).unwrap();
        assert_eq!((made.original.width, made.original.height), expect, "{size:?}");
        assert!(made.preview.is_none());
    }
}

#[test]
fn transparency_is_kept() {
    let mut source = RgbaImage::from_pixel(20, 20, Rgba([0, 0, 200, 255]));
    source.put_pixel(3, 4, Rgba([0, 0, 0, 0]));
    for format in [ImageFormat::Png, ImageFormat::WebP] {
        let made = converted(&file(source.clone(), format), Shape::Attachment).unwrap();
        assert!(made.original.is_png);
        assert_eq!(decoded(&made.original.bytes), source, "{format:?}");
    }
}

#[test]
fn metadata_is_dropped_and_the_orientation_in_it_is_applied() {
    let jpeg = file(picture(64, 32), ImageFormat::Jpeg);
    // Big-endian EXIF with one entry, the orientation (turn by 90 degrees), and a secret place after it.
    let mut exif =
        b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec();
    exif.extend_from_slice(b"secret place");
    let length = (exif.len() as u16 + 2).to_be_bytes();
    let tagged = [&jpeg[..2], &[0xff, 0xe1], &length, &exif, &jpeg[2..]].concat();
    let made = converted(&tagged, Shape::Attachment).unwrap();
    assert_eq!((made.original.width, made.original.height), (32, 64), "it is turned");
    let [red, ..] = decoded(&made.original.bytes).get_pixel(16, 4).0;
    assert!(red > 220, "the left is above");
    let has = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    assert!(has(&tagged, b"secret") && !has(&made.original.bytes, b"secret"));

    let png = file(picture(8, 8), ImageFormat::Png);
    let text = chunk(b"tEXt", b"Comment\0secret place");
    let tagged = [&png[..33], &text, &png[33..], b"<script>secret</script>"].concat();
    let made = converted(&tagged, Shape::Attachment).unwrap();
    assert!(!has(&made.original.bytes, b"secret"), "nor what follows the picture");
}

#[test]
fn of_an_animation_the_first_frame_is_kept() {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    encoder.set_repeat(Repeat::Infinite).unwrap();
    for color in [[255, 0, 0, 255], [0, 255, 0, 255]] {
        encoder.encode_frame(Frame::new(RgbaImage::from_pixel(9, 9, Rgba(color)))).unwrap();
    }
    drop(encoder);
    let made = converted(&bytes, Shape::Attachment).unwrap();
    assert_eq!(decoded(&made.original.bytes).get_pixel(4, 4).0, [255, 0, 0, 255]);
    // Only the first frame is read, so the rest of the file may be truncated.
    bytes.truncate(bytes.len() - 20);
    assert!(converted(&bytes, Shape::Attachment).is_ok());
}

#[test]
fn other_files_are_refused_by_their_bytes() {
    let html = b"<html><script>alert(1)</script>".as_slice();
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>".as_slice();
    for file in [b"".as_slice(), b"\xff", b"\xff\xd8", html, svg, b"BM\0\0", b"RIFF\0\0\0\0WAVX"] {
        assert!(matches!(head(file), Err(MediaError::Format)), "{file:?}");
    }
    let avif = b"\0\0\0\x20ftypavif".as_slice();
    assert!(matches!(head(avif), Err(MediaError::Format)));
    for file in [
        b"\0\0\0\x20ftypisom".as_slice(),
        b"OggS\0",
        b"ID3\x04",
        b"\x1a\x45\xdf\xa3",
        b"RIFF\0\0\0\0WAVE",
    ] {
        assert!(matches!(head(file), Err(MediaError::NotPicture)), "{file:?}");
    }
    let long =
        [&file(picture(2, 2), ImageFormat::Png), &vec![0; media::FILE_BYTES_MAX][..]].concat();
    assert!(matches!(head(&long), Err(MediaError::Bytes)));
}

fn png_of(width: u32, height: u32, depth: u8) -> Vec<u8> {
    let ihdr = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, 6, 0, 0, 0]].concat();
    [b"\x89PNG\r\n\x1a\n", &chunk(b"IHDR", &ihdr)[..], &chunk(b"IDAT", &[]), &chunk(b"IEND", &[])]
        .concat()
}

fn jpeg_of(marker: u8, width: u16, height: u16, scans: u32) -> Vec<u8> {
    let mut jpeg = vec![0xff, 0xd8, 0xff, marker, 0, 17, 8];
    jpeg.extend_from_slice(&height.to_be_bytes());
    jpeg.extend_from_slice(&width.to_be_bytes());
    jpeg.extend_from_slice(&[3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    for _ in 0..scans {
        jpeg.extend_from_slice(&[0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    }
    jpeg
}

fn gif_of(canvas: (u16, u16), frame: (u16, u16)) -> Vec<u8> {
    let sides = |(width, height): (u16, u16)| [width.to_le_bytes(), height.to_le_bytes()].concat();
    let start =
        [b"GIF89a", &sides(canvas)[..], &[0, 0, 0], b"\x21\xf9\x04\0\0\0\0\0\x2c\0\0\0\0"].concat();
    [&start[..], &sides(frame), &[0, 2, 0, 0x3b]].concat()
}

fn webp_of(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let chunk = |(name, data): &(&[u8; 4], Vec<u8>)| {
        [&name[..], &(data.len() as u32).to_le_bytes(), data].concat()
    };
    let chunks: Vec<u8> = chunks.iter().flat_map(chunk).collect();
    [b"RIFF", &(chunks.len() as u32 + 4).to_le_bytes()[..], b"WEBP", &chunks].concat()
}

#[test]
fn what_would_take_much_memory_or_work_is_refused_by_its_header() {
    let canvas = |side: u32| {
        let side = (side - 1).to_le_bytes();
        [&[0; 4], &side[..3], &side[..3]].concat()
    };
    let lossy = |side: u16| {
        [&[0, 0, 0, 0x9d, 1, 0x2a][..], &side.to_le_bytes(), &side.to_le_bytes()].concat()
    };
    let lossless =
        |side: u32| [&[0x2f][..], &((side - 1) | (side - 1) << 14).to_le_bytes()].concat();
    let frame = [&[0; 16][..], &webp_of(&[(b"VP8 ", lossy(16_000))])[12..]].concat();
    for (name, file) in [
        ("png", png_of(60_000, 60_000, 8)),
        ("png of 16 bits", png_of(5_000, 5_100, 16)),
        ("png with overflow", png_of(u32::MAX, u32::MAX, 8)),
        ("narrow png", png_of(20_000, 1, 8)),
        ("jpeg", jpeg_of(0xc0, 65_535, 65_535, 1)),
        ("progressive jpeg", jpeg_of(0xc2, 6_000, 5_000, 1)),
        ("jpeg of several scans", jpeg_of(0xc0, 6_000, 5_000, 2)),
        ("gif", gif_of((65_535, 65_535), (1, 1))),
        ("gif with a large frame", gif_of((1, 1), (65_535, 65_535))),
        ("webp canvas", webp_of(&[(b"VP8X", canvas(1 << 24)), (b"VP8 ", lossy(1))])),
        ("webp picture", webp_of(&[(b"VP8X", canvas(1)), (b"VP8 ", lossy(16_000))])),
        ("webp lossless", webp_of(&[(b"VP8L", lossless(16_000))])),
        ("webp frame", webp_of(&[(b"VP8X", canvas(1)), (b"ANMF", frame)])),
    ] {
        assert!(matches!(head(&file), Err(MediaError::Size { .. })), "{name}: {:?}", head(&file));
    }
    assert!(matches!(head(&jpeg_of(0xc2, 4_000, 4_000, 65)), Err(MediaError::Scans)));
    assert!(head(&jpeg_of(0xc2, 4_000, 4_000, 64)).is_ok());
    let mut later = jpeg_of(0xc0, 10, 10, 1);
    later.extend_from_slice(b"\xff\xe2\0\x04xx");
    assert!(matches!(head(&later), Err(MediaError::Damaged)), "metadata after a scan");
    let two = [jpeg_of(0xc0, 10, 10, 1), jpeg_of(0xc0, 20, 20, 1)[2..].to_vec()].concat();
    assert!(matches!(head(&two), Err(MediaError::Damaged)), "two sizes");
}

#[test]
fn truncated_and_damaged_files_are_refused_or_converted_without_a_panic() {
    let source = picture(40, 30);
    let (mut refused, mut made) = (0, 0);
    for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP] {
        let whole = file(source.clone(), format);
        for cut in (0..whole.len()).step_by(7) {
            match converted(&whole[..cut], Shape::Attachment) {
                Ok(_) => made += 1,
                Err(_) => refused += 1,
            }
        }
        for at in (0..whole.len()).step_by(3) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            match converted(&damaged, Shape::Avatar) {
                Ok(_) => made += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 100 && made > 0, "{refused} {made}");
}

#[test]
fn what_phones_append_to_a_picture_is_left_out() {
    let jpeg = file(picture(64, 32), ImageFormat::Jpeg);
    let twice = [&jpeg[..], &jpeg, b"\0\0\0\x20ftypisom"].concat();
    let made = converted(&twice, Shape::Attachment).unwrap();
    assert_eq!(made, converted(&jpeg, Shape::Attachment).unwrap());
}

#[test]
fn a_polyglot_is_only_a_picture_afterwards() {
    let png = file(picture(4, 4), ImageFormat::Png);
    let zip = [&png[..], b"PK\x03\x04<html><script>alert(1)</script>"].concat();
    let made = converted(&zip, Shape::Attachment).unwrap();
    assert!(made.original.bytes.starts_with(b"\x89PNG"));
    assert!(!made.original.bytes.windows(6).any(|part| part == b"script"));
}
