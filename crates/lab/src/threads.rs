//! Limits of the number of threads.

use std::thread::available_parallelism;

/// Maximum number of threads per core. With more, a trial would measure the operating system's scheduler.
const PER_CORE: u64 = 4;

/// Number of cores that this process may use.
#[must_use]
pub fn cores() -> u64 {
    available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// Maximum number of threads of a trial on this machine.
#[must_use]
pub fn allowed() -> u64 {
    cores() * PER_CORE
}
