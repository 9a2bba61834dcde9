//! Absolute paths of the files in system calls, determined without allocation.

#![expect(unsafe_code, reason = "memory of the process")]

use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;

use crate::filter::system;
use crate::layer::DIRECTORY;

/// Maximum length of a path, in bytes.
pub(crate) const PATH_BYTES: usize = 4096;

/// Writes the absolute path into `buffer`, with a zero at its end. Returns its length; `None` if the path is not below
/// the directory.
pub(crate) unsafe fn path_below(
    dir: i64,
    path: i64,
    buffer: &mut [u8; PATH_BYTES],
) -> Option<usize> {
    // SAFETY: the path is from the process, and the buffer is longer than what is written.
    unsafe {
        let path = CStr::from_ptr(path as *const c_char).to_bytes();
        let mut bytes = 0;
        if path.first() != Some(&b'/') {
            // The working directory is not below the directory, because tests do not start the process there.
            if dir == i64::from(libc::AT_FDCWD) {
                return None;
            }
            bytes = path_of(dir, buffer)?;
            *buffer.get_mut(bytes)? = b'/';
            bytes += 1;
        }
        buffer.get_mut(bytes..bytes + path.len())?.copy_from_slice(path);
        bytes += path.len();
        *buffer.get_mut(bytes)? = 0;
        let directory = CStr::from_ptr(DIRECTORY.load(Ordering::Acquire)).to_bytes();
        let rest = buffer.get(..bytes)?.strip_prefix(directory)?;
        rest.starts_with(b"/").then_some(bytes)
    }
}

/// The path of an open directory.
unsafe fn path_of(fd: i64, buffer: &mut [u8; PATH_BYTES]) -> Option<usize> {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0; 10];
    let (mut rest, mut count) = (fd, 0);
    while rest > 0 || count == 0 {
        *digits.get_mut(count)? = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    for (at, digit) in digits.iter().take(count).rev().enumerate() {
        *link.get_mut(14 + at)? = *digit;
    }
    // SAFETY: the link ends with a zero, and the kernel writes at most this number of bytes.
    let bytes = unsafe {
        let room = (PATH_BYTES / 2) as i64;
        system(
            libc::SYS_readlink,
            [link.as_ptr() as i64, buffer.as_mut_ptr() as i64, room, 0, 0, 0],
        )
    };
    usize::try_from(bytes).ok()
}
