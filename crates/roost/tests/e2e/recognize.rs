//! Tests of `roost recognize` as users start it.

use image::{GrayImage, Luma};
use knn::SIDE;

use crate::support::process::{Process, roost};

/// A built-in drawing of a 7 whose nearest samples are also of 7.
fn seven() -> knn::Bits {
    let digits = knn::digits();
    let mut nearest = Vec::new();
    let clear = digits.iter().find(|(_, label, bits)| {
        digits.nearest(bits, knn::K::DEFAULT, &mut nearest);
        digits.name(*label) == "7" && nearest.iter().all(|one| one.label == *label)
    });
    clear.unwrap().2
}

#[test]
fn drawings_in_files_are_reported_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    let (text, png) = (directory.path().join("seven.txt"), directory.path().join("seven.png"));
    let drawing = seven();
    std::fs::write(&text, drawing.to_string().replace('#', "1").replace('.', "0")).unwrap();
    let cell = |at: u32| (at / 8) as usize;
    let side = 8 * SIDE as u32;
    let image = GrayImage::from_fn(side, side, |x, y| {
        Luma([if drawing.bit(cell(y) * SIDE + cell(x)) { 0 } else { 255 }])
    });
    image.save(&png).unwrap();
    let ended = Process::start(roost(["recognize"]).args([&text, &png])).ended();
    assert!(ended.status.success(), "{ended:#?}");
    for file in [&text, &png] {
        assert!(ended.out.contains(&format!("{}: 7, confidence ", file.display())), "{ended:#?}");
    }
    assert!(ended.out.contains("7, confidence 1.00 (15 of 15)"), "{}", ended.out);
    assert!(ended.out.contains(&drawing.to_string()), "{}", ended.out);
    let ended = Process::start(roost(["recognize", "--k", "1"]).arg(&text)).ended();
    assert!(ended.out.contains("7, confidence 1.00 (1 of 1)"), "{}", ended.out);
}

#[test]
fn files_that_are_no_drawings_are_reported_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wrong");
    for (contents, why) in [
        (&b"0101"[..], "4 digits"),
        (b"\x89PNG\r\n\x1a\nxxxx", "cannot be decoded"),
        (b"\xff\xff", "neither an image nor text"),
    ] {
        std::fs::write(&file, contents).unwrap();
        let ended = Process::start(roost(["recognize"]).arg(&file)).ended();
        assert!(!ended.status.success(), "{ended:#?}");
        assert!(ended.err.contains("wrong") && ended.err.contains(why), "{why}: {}", ended.err);
    }
    // A file after an invalid one is still read.
    let good = directory.path().join("seven.txt");
    std::fs::write(&good, seven().to_string().replace('#', "1").replace('.', "0")).unwrap();
    let ended = Process::start(roost(["recognize"]).args([&file, &good])).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    assert!(ended.out.contains("seven.txt: 7, confidence"), "{ended:#?}");
    assert!(ended.err.contains("1 of 2 files"), "{ended:#?}");
    for k in ["0", "101"] {
        let ended = Process::start(roost(["recognize", "--k", k]).arg(&file)).ended();
        assert!(ended.err.contains("1 to 100"), "{}", ended.err);
    }
}
