//! Tests of the colors of pictures with a color profile, and of malicious profiles.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{DynamicImage, GrayImage, ImageEncoder, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use media::{Picture, Shape, convert, head};
use proptest::prelude::*;

/// Columns of the matrices of Display P3 and of sRGB, relative to the white point of profiles.
const P3: [[f64; 3]; 3] =
    [[0.51512, 0.2412, -0.00105], [0.29198, 0.69225, 0.04189], [0.1571, 0.06657, 0.78407]];
const SRGB: [[f64; 3]; 3] =
    [[0.43607, 0.22249, 0.01392], [0.38515, 0.71687, 0.09708], [0.14307, 0.06061, 0.7141]];

fn fixed(value: f64) -> [u8; 4] {
    ((value * 65_536.0).round() as i32).to_be_bytes()
}

/// The curve of sRGB and of Display P3: a function with five parameters.
fn srgb_curve() -> Vec<u8> {
    let mut curve = b"para\0\0\0\0\0\x03\0\0".to_vec();
    for value in [2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.04045] {
        curve.extend_from_slice(&fixed(value));
    }
    curve
}

/// A curve with a single exponent.
fn gamma(exponent: u8) -> Vec<u8> {
    [b"curv\0\0\0\0\0\0\0\x01", &[exponent, 0][..]].concat()
}

/// A profile of a screen, with the given tags.
fn icc(color_space: &[u8; 4], tags: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut header = vec![0; 128];
    header[8..12].copy_from_slice(&[4, 0x20, 0, 0]);
    header[12..16].copy_from_slice(b"mntr");
    header[16..20].copy_from_slice(color_space);
    header[20..24].copy_from_slice(b"XYZ ");
    header[36..40].copy_from_slice(b"acsp");
    let white = [0.9642, 1.0, 0.8249].map(fixed).concat();
    header[68..80].copy_from_slice(&white);
    let mut list = (tags.len() as u32).to_be_bytes().to_vec();
    let mut data = Vec::new();
    for (name, content) in tags {
        let at = (128 + 4 + 12 * tags.len() + data.len()) as u32;
        list.extend_from_slice(*name);
        list.extend_from_slice(&at.to_be_bytes());
        list.extend_from_slice(&(content.len() as u32).to_be_bytes());
        data.extend_from_slice(content);
        data.resize(data.len().next_multiple_of(4), 0);
    }
    let mut profile = [header, list, data].concat();
    let length = (profile.len() as u32).to_be_bytes();
    profile[..4].copy_from_slice(&length);
    profile
}

/// A profile with a matrix, one curve, and a text as profiles usually have.
fn matrix(columns: [[f64; 3]; 3], curve: &[u8]) -> Vec<u8> {
    let column = |column: [f64; 3]| [&b"XYZ \0\0\0\0"[..], &column.map(fixed).concat()].concat();
    icc(
        b"RGB ",
        &[
            (b"cprt", b"text\0\0\0\0nobody\0".to_vec()),
            (b"rXYZ", column(columns[0])),
            (b"gXYZ", column(columns[1])),
            (b"bXYZ", column(columns[2])),
            (b"rTRC", curve.to_vec()),
            (b"gTRC", curve.to_vec()),
            (b"bTRC", curve.to_vec()),
        ],
    )
}

fn p3() -> Vec<u8> {
    matrix(P3, &srgb_curve())
}

#[derive(Clone, Copy, Debug)]
enum To {
    Jpeg,
    Png,
    Webp,
}

fn file(picture: &DynamicImage, profile: &[u8], to: To) -> Vec<u8> {
    let mut bytes = Vec::new();
    let profile = profile.to_vec();
    match to {
        To::Jpeg => {
            let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 100);
            encoder.set_icc_profile(profile).unwrap();
            picture.write_with_encoder(encoder).unwrap();
        }
        To::Png => {
            let mut encoder = PngEncoder::new(&mut bytes);
            encoder.set_icc_profile(profile).unwrap();
            picture.write_with_encoder(encoder).unwrap();
        }
        To::Webp => {
            let mut encoder = WebPEncoder::new_lossless(&mut bytes);
            encoder.set_icc_profile(profile).unwrap();
            picture.write_with_encoder(encoder).unwrap();
        }
    }
    bytes
}

fn flat(color: [u8; 3]) -> DynamicImage {
    RgbImage::from_pixel(24, 16, Rgb(color)).into()
}

fn converted(file: &[u8], shape: Shape) -> Picture {
    convert(file, &head(file).unwrap(), shape).unwrap()
}

fn decoded(bytes: &[u8]) -> RgbaImage {
    image::load_from_memory(bytes).unwrap().into_rgba8()
}

#[track_caller]
fn check(file: &[u8], expect: [u8; 3], about: u8, name: &str) {
    for shape in Shape::ALL {
        let made = converted(file, shape);
        for made in [Some(&made.original), made.preview.as_ref()].into_iter().flatten() {
            let [red, green, blue, _] = decoded(&made.bytes).get_pixel(3, 3).0;
            let found = [red, green, blue];
            let is_near = found.iter().zip(expect).all(|(a, b)| a.abs_diff(b) <= about);
            assert!(is_near, "{name} as {shape:?}: {found:?}, not {expect:?}");
        }
    }
}

/// A PNG with an additional chunk. Its checksum is wrong, but checksums of removed chunks are not verified.
fn with_chunk(png: &[u8], name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    [&png[..33], &length, name, data, b"sum.", &png[33..]].concat()
}

#[test]
fn pictures_with_a_wide_gamut_have_their_colors_in_srgb() {
    let (p3, srgb) = (p3(), matrix(SRGB, &srgb_curve()));
    let (linear, bright) = (matrix(SRGB, &gamma(1)), matrix(P3, &gamma(2)));
    for to in [To::Jpeg, To::Png, To::Webp] {
        for (name, profile, color, expect) in [
            // These values are the primary colors of sRGB in Display P3.
            ("red", &p3, [234, 51, 35], [255, 0, 0]),
            ("green", &p3, [117, 251, 76], [0, 255, 0]),
            ("blue", &p3, [0, 0, 245], [0, 0, 255]),
            ("more red than any of sRGB", &p3, [255, 0, 0], [255, 0, 0]),
            ("skin", &p3, [223, 180, 154], [231, 178, 150]),
            ("gray", &p3, [128, 128, 128], [128, 128, 128]),
            ("white", &p3, [255, 255, 255], [255, 255, 255]),
            ("sRGB", &srgb, [200, 100, 50], [200, 100, 50]),
            ("without a curve", &linear, [55, 55, 55], [128, 128, 128]),
            ("another curve", &bright, [128, 128, 128], [137, 137, 137]),
        ] {
            check(&file(&flat(color), profile, to), expect, 4, &format!("{name}, {to:?}"));
        }
    }
}

#[test]
fn profiles_are_found_wherever_a_format_has_them() {
    let jpeg = file(&flat([234, 51, 35]), &[], To::Jpeg);
    let p3 = p3();
    let part = |number: u8, data: &[u8]| {
        let data = [b"ICC_PROFILE\0", &[number, 2][..], data].concat();
        [&[0xff, 0xe2][..], &(data.len() as u16 + 2).to_be_bytes(), &data].concat()
    };
    let (first, second) = (part(1, &p3[..99]), part(2, &p3[99..]));
    let (start, rest) = jpeg.split_at(2);
    check(&[start, &first, &second, rest].concat(), [255, 0, 0], 4, "two parts");
    check(&[start, &second, &first, rest].concat(), [255, 0, 0], 4, "two parts, swapped");
    check(&[start, &second, rest].concat(), [234, 51, 35], 4, "a part is missing");
    check(&[start, &first, &first, rest].concat(), [234, 51, 35], 4, "a part twice");

    let png = file(&flat([234, 51, 35]), &p3, To::Png);
    let plain = media::without_metadata(&png).unwrap();
    check(&with_chunk(&plain, b"cICP", &[12, 13, 0, 1]), [255, 0, 0], 3, "numbers of P3");
    check(&with_chunk(&plain, b"cICP", &[1, 13, 0, 1]), [234, 51, 35], 1, "numbers of sRGB");
    check(&with_chunk(&png, b"cICP", &[1, 13, 0, 1]), [234, 51, 35], 1, "and a profile");
    for unknown in
        [&[12, 16, 0, 1][..], &[12, 13, 9, 1], &[0, 0, 0, 0], &[200, 200, 0, 1], b"", b"12"]
    {
        check(&with_chunk(&plain, b"cICP", unknown), [234, 51, 35], 0, "unknown numbers");
    }
}

#[test]
fn gray_transparency_and_turned_pictures_keep_what_they_are() {
    let gray = icc(b"GRAY", &[(b"kTRC", gamma(1))]);
    let picture = DynamicImage::from(GrayImage::from_pixel(24, 16, Luma([55])));
    for to in [To::Jpeg, To::Png] {
        check(&file(&picture, &gray, to), [128; 3], 3, "gray");
        // A profile is ignored if it has other color components than the picture.
        check(&file(&picture, &p3(), to), [55; 3], 3, "gray with a profile of colors");
        check(&file(&flat([234, 51, 35]), &gray, to), [234, 51, 35], 4, "colors with one of gray");
    }
    let source = RgbaImage::from_fn(24, 16, |x, _| Rgba([234, 51, 35, (x * 10) as u8]));
    for to in [To::Png, To::Webp] {
        let made = converted(&file(&source.clone().into(), &p3(), to), Shape::Attachment);
        let pixels = decoded(&made.original.bytes);
        assert!(pixels.pixels().zip(source.pixels()).all(|(a, b)| a.0[3] == b.0[3]), "{to:?}");
        assert!(pixels.get_pixel(20, 3).0[0] > 250, "{to:?}");
    }
    // The picture is turned, and its colors are converted.
    let left = RgbImage::from_fn(24, 16, |x, _| Rgb(if x < 12 { [234, 51, 35] } else { [0; 3] }));
    let png = file(&left.into(), &p3(), To::Png);
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let crc = crc32(&[b"eXIf", &exif[..]].concat()).to_be_bytes();
    let length = (exif.len() as u32).to_be_bytes();
    let png = [&png[..33], &length, b"eXIf", exif, &crc, &png[33..]].concat();
    let made = decoded(&converted(&png, Shape::Attachment).original.bytes);
    assert_eq!((made.width(), made.height()), (16, 24));
    assert!(made.get_pixel(8, 3).0[0] > 250 && made.get_pixel(8, 3).0[1] < 4);
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn profiles_that_are_long_or_list_much_are_not_read() {
    let color = [234, 51, 35];
    let plain = media::without_metadata(&file(&flat(color), &[1], To::Png)).unwrap();
    let named = |profile: &[u8]| [b"name\0\0", &zlib(profile)[..]].concat();
    let right = with_chunk(&plain, b"iCCP", &named(&p3()));
    check(&right, [255, 0, 0], 3, "as it should be");
    for (name, profile) in [
        ("a profile that inflates", [p3(), vec![0; 32 << 20]].concat()),
        ("no profile", vec![]),
        ("a header", p3()[..128].to_vec()),
        ("a header and nothing in its list", p3()[..132].to_vec()),
        ("a header and a part of its list", p3()[..150].to_vec()),
    ] {
        check(&with_chunk(&plain, b"iCCP", &named(&profile)), color, 0, name);
    }
    for data in [&b""[..], b"name", b"name\0", b"name\0\x01xx", b"name\0\0xx", b"\0\0"] {
        check(&with_chunk(&plain, b"iCCP", data), color, 0, "not packed");
    }
    // Tags that are not read take no time, even if many of them refer to a long text.
    let mut many = p3();
    let tags: Vec<u8> =
        [b"desc", &200u32.to_be_bytes()[..], &900_000u32.to_be_bytes()].concat().repeat(80_000);
    many.splice(132..132, tags.iter().copied());
    many[128..132].copy_from_slice(&80_007u32.to_be_bytes());
    check(&with_chunk(&plain, b"iCCP", &named(&many)), color, 0, "many tags that are elsewhere");
    let unknown = u32::MAX.to_be_bytes();
    let mut wrong = p3();
    wrong[128..132].copy_from_slice(&unknown);
    check(&with_chunk(&plain, b"iCCP", &named(&wrong)), [255, 0, 0], 3, "a list without an end");
    // These profiles have a matrix without an inverse, a matrix of zeros, or a curve that is invalid.
    for (name, columns, curve) in [
        ("no color", [[0.0; 3]; 3], srgb_curve()),
        ("the largest numbers", [[32_767.9; 3]; 3], gamma(255)),
        ("negative", [[-30_000.0; 3]; 3], gamma(0)),
        ("an empty table", P3, b"curv\0\0\0\0\0\0\0\0".to_vec()),
        ("a table without values", P3, b"curv\0\0\0\0\xff\xff\xff\xff".to_vec()),
    ] {
        for to in [To::Jpeg, To::Png, To::Webp] {
            let made = converted(&file(&flat(color), &matrix(columns, &curve), to), Shape::Avatar);
            assert_eq!((made.original.width, made.original.height), (16, 16), "{name}");
        }
    }
}

/// A profile with some bytes replaced.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let sources = prop_oneof![
        Just(p3()),
        Just(matrix(SRGB, &gamma(2))),
        Just(icc(b"GRAY", &[(b"kTRC", srgb_curve())])),
    ];
    let numbers = prop_oneof![any::<u32>(), Just(0), Just(u32::MAX), Just(0x7fff_ffff), 0..600u32];
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), numbers), 1..8);
    (sources, changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut profile, changes, cut, is_cut)| {
            for (at, number) in changes {
                // Replace a word of the header, of the list of tags, or of the data.
                let at = at.index(profile.len() / 4) * 4;
                profile[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
            if is_cut {
                profile.truncate(cut.index(profile.len()));
            }
            profile
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_profile_leaves_a_picture_of_its_size(
        profile in prop_oneof![damaged(), proptest::collection::vec(any::<u8>(), 0..700)],
        to in prop_oneof![Just(To::Jpeg), Just(To::Png), Just(To::Webp)],
        is_gray: bool,
    ) {
        let picture = match is_gray {
            true => GrayImage::from_fn(24, 16, |x, y| Luma([(x * 10 + y) as u8])).into(),
            false => RgbImage::from_fn(24, 16, |x, y| Rgb([x as u8, y as u8, 200])).into(),
        };
        let made = converted(&file(&picture, &profile, to), Shape::Attachment);
        prop_assert_eq!((made.original.width, made.original.height), (24, 16));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_instead_of_a_profile_change_nothing(
        profile in proptest::collection::vec(any::<u8>(), 0..700),
    ) {
        let picture = flat([1, 150, 250]);
        for to in [To::Jpeg, To::Png, To::Webp] {
            let made = converted(&file(&picture, &profile, to), Shape::Attachment);
            let plain = converted(&file(&picture, b"none", to), Shape::Attachment);
            prop_assert_eq!(made, plain);
        }
    }
}
