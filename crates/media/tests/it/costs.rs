//! Prints the times of converting the slowest pictures: `cargo test -p media --test it costs -- --ignored --nocapture`.
//! The environment variable PICTURES may name a folder with more files.

use std::io::Cursor;
use std::time::Instant;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};

fn print(name: &str, file: &[u8]) {
    let head = match media::head(file) {
        Ok(head) => head,
        Err(error) => return println!("{name}, {} bytes: {error}", file.len()),
    };
    let start = Instant::now();
    let made = media::convert(file, &head, media::Shape::Attachment);
    let took = start.elapsed();
    let made =
        made.map_or_else(|error| error.to_string(), |made| made.original.bytes.len().to_string());
    println!("{name}, {} bytes, {} x {}: {took:.1?}, {made}", file.len(), head.width, head.height);
}

fn noise(x: u32, y: u32) -> u8 {
    let mixed = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d);
    (mixed >> 13) as u8
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

#[test]
#[ignore = "a measurement"]
fn pictures_that_take_long() {
    for file in std::env::var("PICTURES").iter().flat_map(|dir| std::fs::read_dir(dir).unwrap()) {
        let path = file.unwrap().path();
        print(&path.display().to_string(), &std::fs::read(&path).unwrap());
    }
    let plain = DynamicImage::from(RgbImage::from_pixel(7_680, 4_320, Rgb([1, 2, 3])));
    print("JPEG of one color", &encoded(&plain, ImageFormat::Jpeg));
    let waves = RgbaImage::from_fn(7_680, 4_320, |x, y| {
        Rgba([(x / 8) as u8, (y / 8) as u8, (x ^ y) as u8, if x == 0 { 0 } else { 255 }])
    });
    let mut png = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut png, CompressionType::Best, FilterType::Paeth);
    waves.write_with_encoder(encoder).unwrap();
    print("PNG with transparency", &png);
    let rough = RgbImage::from_fn(4_000, 3_000, |x, y| {
        let (x, y) = (x / 3, y / 3);
        Rgb([noise(x, y), noise(y, x + 1), noise(x + 3, y)])
    });
    let mut jpeg = Vec::new();
    rough.write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, 90)).unwrap();
    print("JPEG of noise", &jpeg);
    print("WebP without loss", &encoded(&rough.into(), ImageFormat::WebP));
    let colors =
        RgbImage::from_fn(4_096, 4_000, |x, y| Rgb([(x / 8) as u8, (y / 8) as u8, (x ^ y) as u8]));
    print("GIF", &encoded(&colors.into(), ImageFormat::Gif));
}
