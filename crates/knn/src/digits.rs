//! The built-in digits: 2,339 drawings of the digits 0 to 9.
//!
//! `examples/make_references.rs` makes `data/digits.bin`, and `data/NOTICE.md` names its source and license. The file
//! is a sequence of entries of 129 bytes: the digit, then the bytes of [`Bits::from_bytes`].

use crate::bits::{BYTES, Bits};
use crate::samples::Samples;

const DIGITS: &[u8] = include_bytes!("../data/digits.bin");
const ENTRY: usize = 1 + BYTES;
const NAMES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

const _: () = assert!(DIGITS.len() == 2_339 * ENTRY);

/// The built-in digits, with the labels `0` to `9` and ids from 0 on.
#[must_use]
pub fn digits() -> Samples {
    let mut samples = Samples::new();
    let (entries, _) = DIGITS.as_chunks::<ENTRY>();
    for (id, [digit, bytes @ ..]) in (0..).zip(entries) {
        let Some(name) = NAMES.get(usize::from(*digit)) else {
            unreachable!("the file was made with digits")
        };
        samples.push(id, name, &Bits::from_bytes(bytes));
    }
    samples
}
