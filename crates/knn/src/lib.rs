//! Nearest neighbors of 1,024-bit vectors: finds the K nearest by an exact scan of Hamming distances, and counts their
//! votes.
//!
//! [`Bits`] is a vector, for example a 32 x 32 drawing in black and white. [`Samples`] holds labeled vectors and finds
//! those nearest to a query; [`Samples::vote`] counts the labels of those found. [`Grey`] converts an image into a
//! vector that can be compared with others. [`digits()`] returns 2,339 built-in drawings. The caller owns the samples
//! and shares them.
//!
//! **Invariant:** the crate does no I/O, reads no clock, starts no thread, and uses no other crate of this repository.
//! **Invariant:** a clone of [`Samples`] is a snapshot. It shares each part with the original until either changes the
//! part; a [`Meter`] counts the memory of both.
//!
//! Read `bits`, `samples`, `part`, `scan/mod.rs`, `nearest`, then `vote`; `drawing` is independent of these.
//!
//! ```
//! use knn::{Bits, K, Samples};
//!
//! let mut samples = Samples::new();
//! samples.push(1, "left", &Bits::from_fn(|index| index % 32 < 16));
//! samples.push(2, "right", &Bits::from_fn(|index| index % 32 >= 16));
//!
//! let mut nearest = Vec::new();
//! samples.nearest(&Bits::from_fn(|index| index % 32 < 15), K::DEFAULT, &mut nearest);
//! assert_eq!((nearest[0].id, nearest[0].distance), (1, 32));
//! assert_eq!(samples.name(samples.vote(&nearest)[0].label), "left");
//! ```

mod bits;
mod digits;
mod drawing;
mod labels;
mod meter;
mod nearest;
mod part;
mod samples;
mod scan;
mod vote;

pub use bits::{BITS, BYTES, Bits, BitsError, SIDE};
pub use digits::digits;
pub use drawing::{DrawingError, Grey};
pub use labels::{LABEL_BYTES, LABEL_PLACE_BYTES, Label};
pub use meter::Meter;
pub use nearest::{K, Neighbor};
pub use samples::{SAMPLE_BYTES, SET_BYTES, Samples};
pub use scan::{InstructionSet, Unavailable};
pub use vote::Tally;
