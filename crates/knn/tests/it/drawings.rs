//! Tests that drawings of any size, pen, paper and place are recognized.

use knn::{BITS, Bits, DrawingError, Grey, K};
use proptest::prelude::*;

/// Polylines through these points, in a square from 0 to 10.
type Strokes = &'static [&'static [(f64, f64)]];

const ZERO: Strokes = &[&[
    (5.0, 0.0),
    (7.0, 1.2),
    (8.0, 5.0),
    (7.0, 8.8),
    (5.0, 10.0),
    (3.0, 8.8),
    (2.0, 5.0),
    (3.0, 1.2),
    (5.0, 0.0),
]];
const ONE: Strokes = &[&[(5.0, 0.0), (5.0, 10.0)]];
const TWO: Strokes =
    &[&[(2.0, 2.0), (3.5, 0.3), (6.0, 0.3), (7.5, 2.5), (6.0, 5.5), (2.0, 10.0), (8.5, 10.0)]];
const FOUR: Strokes = &[&[(3.0, 0.0), (2.0, 6.0), (8.0, 6.0)], &[(7.0, 0.5), (7.0, 10.0)]];
const SEVEN: Strokes = &[&[(2.0, 0.5), (8.0, 0.5), (4.0, 10.0)]];

struct Image {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Image {
    fn grey(&self) -> Grey<'_> {
        Grey::new(self.width, self.height, &self.pixels).unwrap()
    }

    fn bits(&self) -> Bits {
        self.grey().normalize().unwrap()
    }
}

/// Style of a drawing.
#[derive(Clone, Copy, Debug)]
struct Hand {
    /// Height of the drawing, width of the pen, and margins on the left and at the top, in pixels.
    height: usize,
    pen: f64,
    left: usize,
    above: usize,
    /// Pixels to the left per pixel down.
    slant: f64,
    paper: u8,
    ink: u8,
}

const HAND: Hand =
    Hand { height: 40, pen: 5.0, left: 10, above: 10, slant: 0.0, paper: 255, ink: 0 };

impl Hand {
    fn draw(&self, strokes: Strokes) -> Image {
        let (width, height) = (3 * self.height + self.left, 2 * self.height + self.above);
        let scale = self.height as f64 / 10.0;
        let place = |(x, y): (f64, f64)| {
            let (x, y) = (x * scale, y * scale);
            (x - self.slant * y + (self.height + self.left) as f64, y + self.above as f64)
        };
        let is_ink = |at: (f64, f64)| {
            let pairs = strokes.iter().flat_map(|stroke| stroke.windows(2));
            pairs
                .map(|pair| distance(at, place(pair[0]), place(pair[1])))
                .any(|d| d < self.pen / 2.0)
        };
        let pixel = |index: usize| {
            let at = ((index % width) as f64, (index / width) as f64);
            if is_ink(at) { self.ink } else { self.paper }
        };
        Image { width, height, pixels: (0..width * height).map(pixel).collect() }
    }
}

/// Distance of the point `at` from the line between the other two points.
fn distance(at: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let along = ((at.0 - from.0) * dx + (at.1 - from.1) * dy) / (dx * dx + dy * dy);
    let along = along.clamp(0.0, 1.0);
    (at.0 - from.0 - along * dx).hypot(at.1 - from.1 - along * dy)
}

#[track_caller]
fn check_read(hand: Hand) {
    let samples = knn::digits();
    for (strokes, digit) in [(ZERO, "0"), (ONE, "1"), (TWO, "2"), (FOUR, "4"), (SEVEN, "7")] {
        let bits = hand.draw(strokes).bits();
        let mut found = Vec::new();
        samples.nearest(&bits, K::DEFAULT, &mut found);
        let said = samples.name(samples.vote(&found)[0].label);
        assert_eq!(said, digit, "{hand:?}\n{bits}");
        let ones = bits.ones() as usize;
        assert!((BITS / 4..BITS / 3).contains(&ones), "{ones} ones, {hand:?}\n{bits}");
    }
}

#[test]
fn digits_are_read_whatever_the_size_the_pen_the_paper_the_place_and_the_slant() {
    check_read(HAND);
    check_read(Hand { height: 16, pen: 2.0, ..HAND });
    check_read(Hand { height: 300, pen: 30.0, ..HAND });
    check_read(Hand { pen: 1.5, ..HAND });
    check_read(Hand { pen: 7.0, ..HAND });
    check_read(Hand { height: 300, pen: 2.0, ..HAND });
    check_read(Hand { paper: 0, ink: 255, ..HAND });
    check_read(Hand { paper: 120, ink: 90, ..HAND });
    check_read(Hand { left: 0, above: 70, ..HAND });
    check_read(Hand { slant: 0.4, ..HAND });
}

#[test]
fn dark_on_light_and_light_on_dark_give_the_same_bits() {
    for strokes in [ZERO, ONE, TWO, FOUR, SEVEN] {
        let mut image = Hand { paper: 230, ink: 17, ..HAND }.draw(strokes);
        let bits = image.bits();
        image.pixels.iter_mut().for_each(|pixel| *pixel = 255 - *pixel);
        assert_eq!(image.bits(), bits, "{bits}\n{}", image.bits());
    }
}

#[test]
fn what_is_no_drawing_is_refused_with_its_fault() {
    for (width, height, found) in [(0, 0, 0), (2, 2, 3), (2, 2, 5), (usize::MAX, 2, 4), (0, 4, 4)] {
        let fault = Grey::new(width, height, &vec![0; found]).unwrap_err();
        assert_eq!(fault, DrawingError::Size { width, height, found });
    }
    for pixels in [vec![0; 100], vec![255; 100], vec![7; 100]] {
        let blank = Grey::new(10, 10, &pixels).unwrap().normalize();
        assert_eq!(blank, Err(DrawingError::Blank));
    }
}

#[test]
fn the_built_in_digits_are_2339_in_the_shares_of_the_training_images() {
    let samples = knn::digits();
    let counts: Vec<_> = samples.counts().collect();
    let names: Vec<_> = counts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    assert!(counts.iter().all(|(_, count)| (200..280).contains(count)), "{counts:?}");
    assert_eq!(samples.len(), 2_339);
    let ids: Vec<_> = samples.iter().map(|(id, _, _)| id).collect();
    assert_eq!(ids, (0..2_339).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn any_image_but_a_blank_one_has_a_quarter_of_its_cells_inked(
        width in 1..60usize,
        height in 1..60usize,
        noise in prop::collection::vec(any::<u8>(), 3_600),
        levels in 2..=256u16,
    ) {
        let levels = |byte: &u8| (u16::from(*byte) % levels) as u8;
        let pixels: Vec<u8> = noise.iter().take(width * height).map(levels).collect();
        let blank = pixels.iter().all(|pixel| *pixel == pixels[0]);
        match Grey::new(width, height, &pixels).unwrap().normalize() {
            Ok(bits) => prop_assert!(!blank && bits.ones() as usize >= BITS / 4),
            Err(fault) => prop_assert!(blank && fault == DrawingError::Blank),
        }
    }
}
