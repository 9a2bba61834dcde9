//! Samples: labelled drawings in sets.

pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use serde::{Deserialize, Serialize};

use crate::ids::SampleSetId;
use crate::text::{Label, SetName};

/// A labelled drawing that was added by a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Set of the sample.
    pub set: SetName,
    /// Label of the drawing.
    pub label: Label,
    /// The drawing.
    pub bits: SampleBits,
}

/// A drawing of 32 rows of 32 pixels, one bit each. The first pixel is the most significant bit of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
// In four parts, because serde supports arrays of at most 32 elements.
pub struct SampleBits([[u8; 32]; 4]);

/// A set of samples. It exists as long as it has samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSet {
    /// Id of the set in rows.
    pub id: SampleSetId,
    /// Number of added samples.
    pub samples: u32,
    /// Number of distinct labels of the added samples.
    pub labels: u32,
}

impl From<[u8; 128]> for SampleBits {
    fn from(bytes: [u8; 128]) -> Self {
        let mut pieces = [[0; 32]; 4];
        pieces.as_flattened_mut().copy_from_slice(&bytes);
        Self(pieces)
    }
}

impl From<SampleBits> for [u8; 128] {
    fn from(SampleBits(pieces): SampleBits) -> Self {
        let mut bytes = [0; 128];
        bytes.copy_from_slice(pieces.as_flattened());
        bytes
    }
}
