//! How many threads there can be.

use std::thread::available_parallelism;

/// More threads than this for each core are refused: they measure the operating system's scheduler.
const PER_CORE: u64 = 4;

/// Cores that this process may use.
#[must_use]
pub fn cores() -> u64 {
    available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// The most threads that a trial may have on this machine.
#[must_use]
pub fn allowed() -> u64 {
    cores() * PER_CORE
}
