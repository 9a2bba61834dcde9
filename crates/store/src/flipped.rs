//! Corrects a flipped bit: searches for the bit whose change makes the checksum right. With a checksum of 128 bits,
//! only the original bytes match.

/// Maximum number of bytes in which a flipped bit is searched for. Every bit is tried, so the time grows with the
/// square of the length. With the maximum it is a few seconds.
const BYTES_MAX: usize = 64 << 10;

/// Flips the bit that makes the bytes right. Returns false, and changes nothing, if there is no such bit or the bytes
/// are too long.
pub(crate) fn correct(bytes: &mut [u8], is_right: impl Fn(&[u8]) -> bool) -> bool {
    if bytes.len() > BYTES_MAX {
        return false;
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            flip(bytes, at, bit);
            if is_right(bytes) {
                return true;
            }
            flip(bytes, at, bit);
        }
    }
    false
}

fn flip(bytes: &mut [u8], at: usize, bit: u32) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

/// Returns the number of bits that differ; `None` if the lengths differ.
pub(crate) fn bits_that_differ(a: &[u8], b: &[u8]) -> Option<u32> {
    let bits = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
    (a.len() == b.len()).then_some(bits)
}
