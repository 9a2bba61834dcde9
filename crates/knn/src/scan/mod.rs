//! Search of many vectors for those nearest to a query, with the best instructions of the processor.
//!
//! A [`Block`] stores eight vectors word by word: the first words of all eight, then the second words, and so on. An
//! instruction works on as many vectors as it has lanes. At the end, each lane contains the distance of one vector, so
//! nothing has to be added across lanes.
//!
//! The features of the processor are detected once, when a [`Scan`] is created.
//!
//! **Invariant:** a [`Scan`] uses only instructions that this processor has.
//! **Invariant:** the search is exact: all instruction sets give the same result. Only this folder uses `unsafe`.

use std::fmt;

use crate::bits::{Bits, WORDS};
use crate::labels::Label;
use crate::nearest::{FAR, K, Neighbor, STRIDE, select, within};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// Number of vectors in a block.
pub(crate) const LANES: usize = 8;

/// Eight vectors: each row has one word of every vector, each column is a vector.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Block([[u64; LANES]; WORDS]);

impl Block {
    pub(crate) fn put(&mut self, lane: usize, bits: &Bits) {
        for (row, word) in self.0.iter_mut().zip(bits.words()) {
            let Some(place) = row.get_mut(lane) else { unreachable!("a lane is below LANES") };
            *place = *word;
        }
    }

    #[inline]
    pub(crate) fn take(&self, lane: usize) -> Bits {
        let mut words = [0; WORDS];
        for (word, row) in words.iter_mut().zip(&self.0) {
            let Some(place) = row.get(lane) else { unreachable!("a lane is below LANES") };
            *word = *place;
        }
        Bits::from_words(words)
    }
}

/// Instructions used by a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// Instructions of every processor of the build target.
    Plain,
    /// x86-64 with `POPCNT`, which counts the ones of a 64-bit word.
    Popcnt,
    /// x86-64 with 256-bit vectors.
    Avx2,
    /// x86-64 with 512-bit vectors and `VPOPCNTDQ`, which counts the ones of each of eight words.
    Avx512,
}

impl InstructionSet {
    /// All instruction sets, slowest first.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Popcnt, Self::Avx2, Self::Avx512];

    /// Whether this processor has these instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Plain => true,
            Self::Popcnt => is_x86_feature_detected!("popcnt"),
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vpopcntdq")
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Self::Plain
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Popcnt => "popcnt",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

/// Error: this processor does not have these instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this processor has no {0} instructions")]
pub struct Unavailable(pub InstructionSet);

/// Scan with instructions that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan(InstructionSet);

impl Scan {
    pub(crate) fn best() -> Self {
        let best = InstructionSet::ALL.into_iter().rfind(|set| set.is_available());
        Self(best.unwrap_or(InstructionSet::Plain))
    }

    pub(crate) fn with(instructions: InstructionSet) -> Result<Self, Unavailable> {
        if instructions.is_available() {
            Ok(Self(instructions))
        } else {
            Err(Unavailable(instructions))
        }
    }

    pub(crate) fn instructions(self) -> InstructionSet {
        self.0
    }

    /// Updates `found`, the `k` nearest samples so far, with the samples of the chunk.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "calls functions that need instructions")]
    pub(crate) fn search(self, query: &Bits, chunk: &Chunk<'_>, k: K, found: &mut Vec<Neighbor>) {
        match self.0 {
            InstructionSet::Plain => plain(query, chunk, k, found),
            // SAFETY: a `Scan` is only created if `is_available` found these instructions in this processor. It checks
            // exactly the features with which these functions are compiled.
            InstructionSet::Popcnt => unsafe { popcnt(query, chunk, k, found) },
            // SAFETY: as above.
            InstructionSet::Avx2 => unsafe { avx2::search(query, chunk, k, found) },
            // SAFETY: as above.
            InstructionSet::Avx512 => unsafe { avx512::search(query, chunk, k, found) },
        }
    }

    /// Updates `found`, the `k` nearest samples so far, with the samples of the chunk.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn search(self, query: &Bits, chunk: &Chunk<'_>, k: K, found: &mut Vec<Neighbor>) {
        plain(query, chunk, k, found);
    }
}

/// Samples whose distances are computed together, before they are compared.
pub(crate) struct Chunk<'a> {
    pub(crate) blocks: &'a [Block],
    pub(crate) ids: &'a [u64],
    pub(crate) labels: &'a [Label],
}

/// Distances of a chunk, one row for each block.
type Distances = [[u16; LANES]; Chunk::BLOCKS];

impl Chunk<'_> {
    /// Number of blocks in a full chunk. Their 512 KiB stay in a second-level cache while a batch is compared with
    /// them.
    pub(crate) const BLOCKS: usize = 512;
    pub(crate) const SAMPLES: usize = Self::BLOCKS * LANES;

    /// Common code of every `search`. It and its callees are inlined, so that they are compiled with the instructions
    /// of the calling function.
    #[inline(always)]
    fn search(
        &self,
        k: K,
        found: &mut Vec<Neighbor>,
        measure: impl FnOnce(&[Block], &mut Distances),
        within: impl Fn(&[u16; STRIDE], u16) -> u32,
    ) {
        let mut distances = [[FAR; LANES]; Self::BLOCKS];
        measure(self.blocks, &mut distances);
        let distances = distances.as_flattened_mut();
        // Lanes after the last sample contain no distances.
        if let Some(after) = distances.get_mut(self.ids.len()..self.blocks.len() * LANES) {
            after.fill(FAR);
        }
        let (strides, _) = distances.as_chunks();
        let strides = strides.get(..self.ids.len().div_ceil(STRIDE)).unwrap_or(strides);
        select(strides, self.ids, self.labels, k, found, within);
    }
}

fn plain(query: &Bits, chunk: &Chunk<'_>, k: K, found: &mut Vec<Neighbor>) {
    one_by_one(query, chunk, k, found, |words| {
        let [last, ones, twos, fours, eights] = carry_save(words, full_add);
        let pairs = twos.count_ones() + 2 * (fours.count_ones() + 2 * eights.count_ones());
        last.count_ones() + ones.count_ones() + 2 * pairs
    });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn popcnt(query: &Bits, chunk: &Chunk<'_>, k: K, found: &mut Vec<Neighbor>) {
    one_by_one(query, chunk, k, found, |words| words.iter().map(|word| word.count_ones()).sum());
}

/// Measures one vector at a time with `ones`, which counts the ones of 16 words. Inlined, so that it is compiled with
/// the caller's instructions.
#[inline(always)]
fn one_by_one(
    query: &Bits,
    chunk: &Chunk<'_>,
    k: K,
    found: &mut Vec<Neighbor>,
    ones: impl Fn(&[u64; WORDS]) -> u32,
) {
    let measure = |blocks: &[Block], out: &mut Distances| {
        for (block, out) in blocks.iter().zip(out) {
            for (lane, out) in out.iter_mut().enumerate() {
                let mut words = *block.take(lane).words();
                words.iter_mut().zip(query.words()).for_each(|(word, of_query)| *word ^= of_query);
                *out = ones(&words) as u16;
            }
        }
    };
    chunk.search(k, found, measure, within);
}

/// Adds three bits at every position. Returns the sums and the carries.
#[inline(always)]
fn full_add(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, a & b | half & c)
}

/// Adds 16 words bit by bit, so that the ones of only five words remain to be counted. Each one of the first two words
/// counts 1, and those of the other words count 2, 4 and 8.
///
/// `full_add` adds three bits at every position and returns the sums and the carries. It takes less time than the
/// counting of ones that it saves, unless counting is a single instruction (Harley and Seal; Mula, Kurz and Lemire,
/// "Faster population counts using AVX2 instructions", 2018).
#[inline(always)]
fn carry_save<V: Copy>(x: &[V; WORDS], full_add: impl Fn(V, V, V) -> (V, V)) -> [V; 5] {
    let (ones, a) = full_add(x[0], x[1], x[2]);
    let (ones, b) = full_add(ones, x[3], x[4]);
    let (ones, c) = full_add(ones, x[5], x[6]);
    let (twos, fours_a) = full_add(a, b, c);
    let (ones, a) = full_add(ones, x[7], x[8]);
    let (ones, b) = full_add(ones, x[9], x[10]);
    let (twos, fours_b) = full_add(twos, a, b);
    let (ones, a) = full_add(ones, x[11], x[12]);
    let (ones, b) = full_add(ones, x[13], x[14]);
    let (twos, fours_c) = full_add(twos, a, b);
    let (fours, eights) = full_add(fours_a, fours_b, fours_c);
    [x[15], ones, twos, fours, eights]
}
