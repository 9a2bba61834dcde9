//! The scan with 256-bit vectors: each row of a block is two vectors of four words.
//!
//! AVX2 cannot count ones, but one instruction looks up 32 nibbles in a table of 16 bytes. Counts are kept in bytes,
//! which are summed at the end.
#![expect(unsafe_code, reason = "vector loads and stores take pointers")]

use std::arch::x86_64::{
    __m256i, _mm_setr_epi8, _mm256_add_epi8, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_or_si256, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::{Block, Chunk, Distances, LANES, carry_save};
use crate::bits::{Bits, WORDS};
use crate::nearest::{K, Neighbor, within};

#[target_feature(enable = "avx2")]
pub(super) fn search(query: &Bits, chunk: &Chunk<'_>, k: K, found: &mut Vec<Neighbor>) {
    chunk.search(k, found, |blocks, out| measure(query, blocks, out), within);
}

/// Writes the distance of `query` to every vector of `blocks`.
#[inline]
#[target_feature(enable = "avx2")]
fn measure(query: &Bits, blocks: &[Block], out: &mut Distances) {
    let mut words = [_mm256_setzero_si256(); WORDS];
    for (spread, word) in words.iter_mut().zip(query.words()) {
        *spread = _mm256_set1_epi64x(word.cast_signed());
    }
    for (block, out) in blocks.iter().zip(out) {
        let mut sums = [0_u64; LANES];
        for (half, sums) in sums.as_chunks_mut::<{ LANES / 2 }>().0.iter_mut().enumerate() {
            let mut differing = words;
            for (word, row) in differing.iter_mut().zip(rows(block)) {
                *word = _mm256_xor_si256(*word, if half == 0 { row[0] } else { row[1] });
            }
            // SAFETY: `sums` is four writable `u64`, 32 bytes; the store needs no alignment.
            unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), ones(&differing)) };
        }
        *out = sums.map(|sum| sum as u16);
    }
}

/// Rows of a block, each as two vectors of four words.
fn rows(block: &Block) -> &[[__m256i; 2]; WORDS] {
    // SAFETY: a block is `repr(C)`, 16 rows of 64 bytes, and aligned to 64 bytes. Each row has the size of two vectors,
    // the alignment is sufficient, and any bits are a valid vector.
    unsafe { &*std::ptr::from_ref(block).cast() }
}

/// Number of ones in the words of each of the four lanes.
#[target_feature(enable = "avx2")]
fn ones(words: &[__m256i; WORDS]) -> __m256i {
    let full_add = |a, b, c| {
        let half = _mm256_xor_si256(a, b);
        let carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(half, c));
        (_mm256_xor_si256(half, c), carry)
    };
    let [last, ones, twos, fours, eights] = carry_save(words, full_add);
    // The maximum of a byte is 8 * (1 + 1 + 2 + 4 + 8), so no byte overflows.
    let mut bytes = _mm256_add_epi8(look_up::<1>(last), look_up::<1>(ones));
    bytes = _mm256_add_epi8(bytes, look_up::<2>(twos));
    bytes = _mm256_add_epi8(bytes, look_up::<4>(fours));
    bytes = _mm256_add_epi8(bytes, look_up::<8>(eights));
    _mm256_sad_epu8(bytes, _mm256_setzero_si256())
}

/// Number of ones in each byte, times `WEIGHT`.
#[target_feature(enable = "avx2")]
fn look_up<const WEIGHT: i8>(x: __m256i) -> __m256i {
    let [n0, n1, n2, n3, n4] = [0, WEIGHT, 2 * WEIGHT, 3 * WEIGHT, 4 * WEIGHT];
    let nibbles = _mm_setr_epi8(n0, n1, n1, n2, n1, n2, n2, n3, n1, n2, n2, n3, n2, n3, n3, n4);
    let table = _mm256_broadcastsi128_si256(nibbles);
    let low = _mm256_set1_epi8(0x0f);
    let of_low = _mm256_shuffle_epi8(table, _mm256_and_si256(x, low));
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(x), low);
    _mm256_add_epi8(of_low, _mm256_shuffle_epi8(table, high))
}
