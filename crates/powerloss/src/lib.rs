//! Simulated power losses of a whole process, without root and without a kernel module.
//!
//! `LD_PRELOAD` loads `libpowerloss.so` into the process under test. A seccomp filter turns every system call that can
//! change a file into a signal. The handler of the signal makes the call and records it in a [`Journal`], a file in
//! shared memory that survives the process. This also records calls that bypass the C library; a call that the handler
//! does not know ends the process. Afterwards, a [`Disk`] computes a possible content of the disk: everything that was
//! synced, and any part of the rest.
//!
//! It works only on Linux on x86-64, and only tests use it.
//!
//! Read `layer`, `filter`, `journal`, then `disk` and `loss`.

mod disk;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod filter;
mod journal;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod layer;
mod loss;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod paths;

pub use disk::{Accounting, Disk};
pub use journal::{Journal, Record};
pub use loss::Loss;

/// Environment variable with the path of the journal.
pub const JOURNAL: &str = "POWERLOSS_JOURNAL";
/// Environment variable with the absolute path of the directory whose files are recorded.
pub const DIRECTORY: &str = "POWERLOSS_DIRECTORY";
/// Whether processes can be recorded on this machine.
pub const SUPPORTED: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
