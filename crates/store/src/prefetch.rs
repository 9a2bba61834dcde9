//! Prefetching: loads a row into the processor's cache before the row is looked up.
//!
//! **Invariant:** a prefetch changes no result, for every address. This is the only file of the crate with `unsafe`.

/// Length of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Prefetches a short row at `address`, and returns immediately. Does nothing on processors other than those below.
#[inline]
#[cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a load cannot replace it: the locks between two look-ups wait for loads"
    )
)]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    for line in [address, address.wrapping_add(LINE_BYTES)] {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is a hint. It reads nothing that the program sees, and never faults, for every
        // address. Every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn no_address_is_wrong() {
        let near = 7_u8;
        for address in [std::ptr::null(), std::ptr::without_provenance(usize::MAX), &raw const near]
        {
            prefetch(address);
        }
        assert_eq!(near, 7);
    }
}
