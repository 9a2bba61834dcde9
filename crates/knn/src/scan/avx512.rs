//! The scan with 512-bit vectors: one instruction works on a word of all eight vectors.
#![expect(unsafe_code, reason = "vector loads and stores take pointers")]

use std::arch::x86_64::{
    __m512i, _mm_storeu_si128, _mm512_add_epi64, _mm512_cvtepi64_epi16, _mm512_popcnt_epi64,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

use super::{Block, Chunk, Distances, carry_save};
use crate::bits::{Bits, WORDS};
use crate::nearest::{K, Neighbour};

#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
pub(super) fn search(query: &Bits, chunk: &Chunk<'_>, k: K, found: &mut Vec<Neighbour>) {
    chunk.search(k, found, |blocks, out| measure(query, blocks, out));
}

/// Writes the distance of `query` to every vector of `blocks`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn measure(query: &Bits, blocks: &[Block], out: &mut Distances) {
    let mut words = [_mm512_setzero_si512(); WORDS];
    for (spread, word) in words.iter_mut().zip(query.words()) {
        *spread = _mm512_set1_epi64(word.cast_signed());
    }
    for (block, out) in blocks.iter().zip(out) {
        let mut differing = words;
        for (word, row) in differing.iter_mut().zip(rows(block)) {
            *word = _mm512_xor_si512(*word, *row);
        }
        let sums = _mm512_cvtepi64_epi16(ones(&differing));
        // SAFETY: `out` is eight writable u16, 16 bytes; the store needs no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    }
}

/// The rows of a block as vectors.
fn rows(block: &Block) -> &[__m512i; WORDS] {
    // SAFETY: a block is `repr(C)` of 16 rows of 64 bytes, aligned to 64 as a vector is, and any bits
    // make a vector.
    unsafe { &*std::ptr::from_ref(block).cast() }
}

/// How many ones the words have in each of the eight lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn ones(words: &[__m512i; WORDS]) -> __m512i {
    // The tables of "an odd number of them" and "two or more of them".
    let full_add = |a, b, c| {
        (_mm512_ternarylogic_epi64::<0x96>(a, b, c), _mm512_ternarylogic_epi64::<0xe8>(a, b, c))
    };
    let [last, ones, twos, fours, eights] = carry_save(words, full_add);
    // From the highest on: twice what there is, plus the next.
    let mut sum = _mm512_popcnt_epi64(eights);
    for next in [fours, twos, ones] {
        sum = _mm512_add_epi64(_mm512_slli_epi64::<1>(sum), _mm512_popcnt_epi64(next));
    }
    _mm512_add_epi64(sum, _mm512_popcnt_epi64(last))
}
