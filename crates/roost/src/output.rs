//! Standard output and standard error: lines of commands, banners of the server, and lines of its log.
//!
//! A command writes its result to standard output. If the reader closes it, the command continues, and its exit code is
//! that of its work. Any other failure to write, such as a full disk, is an error at the end. A server drops banners
//! and log lines that it cannot write. **Invariant:** a full disk, a closed pipe or a reader that has stopped does not
//! end the server, and delays it by at most [`PATIENCE`] each time.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Writes a line of the result of a command to standard output.
macro_rules! out {
    ($($line:tt)*) => { $crate::output::line(format_args!($($line)*)) };
}
/// Writes a line about the work of a command to standard error; ignores failures.
macro_rules! note {
    ($($line:tt)*) => { $crate::output::note_line(format_args!($($line)*)) };
}
/// Writes a banner of the server to standard output; ignores failures.
macro_rules! banner {
    ($($line:tt)*) => { $crate::output::banner_line(format_args!($($line)*)) };
}
pub(crate) use {banner, note, out};

/// Longest wait for a reader of banners or of the log. After that, lines are dropped until the reader continues.
const PATIENCE: Duration = Duration::from_millis(100);
/// Number of bytes that a writable pipe accepts without blocking (`PIPE_BUF` of Linux).
const PIECE_BYTES: usize = 4 << 10;

/// First failure to write a result to standard output.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output for the result of a command, as a [`Write`] that never fails: see [`finish`].
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        keep_failure(|out| out.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        keep_failure(|out| out.flush());
        Ok(())
    }
}

fn keep_failure(write: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) {
    let mut failed = lock(&FAILED);
    if failed.is_none() {
        *failed = write(&mut io::stdout().lock()).err();
    }
}

/// Implementation of [`out!`].
pub(crate) fn line(line: fmt::Arguments<'_>) {
    let _infallible = writeln!(Stdout, "{line}");
}

/// Implementation of [`note!`].
pub(crate) fn note_line(line: fmt::Arguments<'_>) {
    let _unread = writeln!(io::stderr(), "{line}");
}

/// Whether output can no longer be written.
pub(crate) fn is_closed() -> bool {
    lock(&FAILED).is_some()
}

/// Flushes the result of a command.
///
/// # Errors
/// If a part of the result could not be written, unless the reader has closed the pipe.
pub(crate) fn finish() -> anyhow::Result<()> {
    let _infallible = Stdout.flush();
    match lock(&FAILED).take() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes a secret that cannot be shown again to standard output. Call this before the secret takes effect, so that no
/// active secret is unknown to the user.
///
/// # Errors
/// If standard output cannot be written or is `/dev/null`.
pub(crate) fn secret(secret: &str) -> anyhow::Result<()> {
    let write = || -> io::Result<()> {
        // The runtime replaces a closed descriptor by this device before `main`.
        if is_null(&io::stdout())? {
            return Err(io::Error::other("it is closed or /dev/null"));
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{secret}")?;
        out.flush()
    };
    write().context("cannot print the secret to standard output, so nothing was changed")
}

fn is_null(out: &impl AsFd) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let out = rustix::fs::fstat(out)?;
    let null = std::fs::metadata("/dev/null");
    let is_device = rustix::fs::FileType::from_raw_mode(out.st_mode).is_char_device();
    Ok(is_device && null.is_ok_and(|null| null.rdev() == out.st_rdev))
}

/// Stream that drops lines instead of blocking or failing.
pub(crate) struct BestEffort {
    state: Mutex<State>,
    is_log: bool,
}

#[derive(Default)]
struct State {
    /// Whether the reader did not read for [`PATIENCE`].
    is_stuck: bool,
    /// Whether a part of the last line was dropped.
    is_cut: bool,
    /// Number of lines dropped since the last one that was written.
    dropped: u64,
}

static BANNERS: BestEffort = BestEffort::new(false);
/// Standard error, for the lines of the log.
pub(crate) static LOG: BestEffort = BestEffort::new(true);

/// Implementation of [`banner!`].
pub(crate) fn banner_line(line: fmt::Arguments<'_>) {
    BANNERS.write(format!("{line}\n").as_bytes());
}

impl BestEffort {
    const fn new(is_log: bool) -> Self {
        let state = State { is_stuck: false, is_cut: false, dropped: 0 };
        Self { state: Mutex::new(state), is_log }
    }

    /// Writes a line, or drops it.
    pub(crate) fn write(&self, line: &[u8]) {
        let mut state = lock(&self.state);
        let (out, err) = (io::stdout(), io::stderr());
        let to = if self.is_log { err.as_fd() } else { out.as_fd() };
        if state.dropped > 0 && self.is_log {
            let dropped = about_dropped(state.dropped, err.is_terminal());
            if !state.write(&to, dropped.as_bytes()) {
                state.dropped += 1;
                return;
            }
        }
        state.dropped = if state.write(&to, line) { 0 } else { 1 };
    }
}

impl State {
    /// Writes a line; returns whether all of it was written.
    fn write(&mut self, to: &impl AsFd, line: &[u8]) -> bool {
        let mut rest = line;
        if self.is_cut {
            if self.write_some(to, b"\n") != Some(1) {
                return false;
            }
            self.is_cut = false;
        }
        while !rest.is_empty() {
            let piece = rest.get(..PIECE_BYTES).unwrap_or(rest);
            match self.write_some(to, piece) {
                Some(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
                _ => {
                    self.is_cut = rest.len() < line.len();
                    return false;
                }
            }
        }
        true
    }

    /// Writes at most [`PIECE_BYTES`]; `None` on any error.
    fn write_some(&mut self, to: &impl AsFd, piece: &[u8]) -> Option<usize> {
        let patience = if self.is_stuck { Duration::ZERO } else { PATIENCE };
        let patience = Timespec::try_from(patience).ok()?;
        let mut ready = [PollFd::new(to, PollFlags::OUT)];
        let is_ready = match poll(&mut ready, Some(&patience)) {
            Ok(count) => count > 0,
            // A signal has interrupted the wait. The next line tries again.
            Err(_) => return None,
        };
        self.is_stuck = !is_ready;
        if !is_ready {
            return None;
        }
        rustix::io::write(to, piece).ok()
    }
}

/// Formats the line about dropped lines of the log.
fn about_dropped(dropped: u64, is_text: bool) -> String {
    let what = format!("{dropped} lines of the log were dropped: they could not be written");
    if is_text {
        return format!("WARN {what}\n");
    }
    let now = jiff::Timestamp::now();
    format!("{{\"timestamp\":\"{now}\",\"level\":\"WARN\",\"message\":\"{what}\"}}\n")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_line_is_dropped_while_its_reader_is_stuck_and_the_next_one_begins_a_new_line() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut state = State::default();
        assert!(state.write(&writer, b"first\n"));
        // The text is longer than the buffer of any pipe.
        let long = vec![b'x'; 2 << 20];
        assert!(!state.write(&writer, &long), "nobody reads it");
        assert!(state.is_stuck && state.is_cut);
        assert!(!state.write(&writer, b"lost\n"));
        let (mut part, mut read) = (vec![0; 256 << 10], Vec::new());
        while !state.write(&writer, b"second\n") {
            let count = reader.read(&mut part).unwrap();
            read.extend_from_slice(&part[..count]);
        }
        drop(writer);
        reader.read_to_end(&mut read).unwrap();
        assert!(read.starts_with(b"first\nxxx") && read.ends_with(b"x\nsecond\n"));
    }

    #[test]
    fn a_line_to_a_full_disk_or_a_closed_pipe_is_dropped() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (reader, closed) = io::pipe().unwrap();
        drop(reader);
        for to in [full.as_fd(), closed.as_fd()] {
            let mut state = State::default();
            assert!(!state.write(&to, b"line\n") && !state.write(&to, b"line\n"));
        }
    }

    #[test]
    fn the_line_about_dropped_lines_is_json_for_programs() {
        let line: serde_json::Value = serde_json::from_str(&about_dropped(3, false)).unwrap();
        assert_eq!(line["level"], "WARN");
        assert!(about_dropped(3, true).starts_with("WARN 3 lines"));
    }

    #[test]
    fn only_the_null_device_is_null() {
        let open = |path| File::options().write(true).open(path).unwrap();
        assert!(is_null(&open("/dev/null")).unwrap());
        assert!(!is_null(&open("/dev/full")).unwrap());
        assert!(!is_null(&tempfile::tempfile().unwrap()).unwrap());
    }
}
