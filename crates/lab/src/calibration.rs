//! A fixed piece of work before every trial. If it takes longer than usual, other programs kept the machine busy.

use std::hint::black_box;
use std::time::Instant;

use crate::measured::nanoseconds;
use crate::threads;

/// Number of steps of the loop: about 10 ms on a processor of 2020.
const STEPS: u64 = 4_000_000;

/// Does the work on as many threads as there are cores. Returns the time until the last thread was done, in
/// nanoseconds, so a single busy core is noticed.
pub(crate) fn measure() -> u64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads::cores() {
            scope.spawn(move || black_box(work(black_box(thread))));
        }
    });
    nanoseconds(start.elapsed())
}

/// A chain of dependent multiplications: the mixing steps of `SplitMix64`.
fn work(mut state: u64) -> u64 {
    for _ in 0..STEPS {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state
}
