//! Time at which a server last ran on a data directory, by the server's time, in a file of the directory. It lets the
//! next start detect a wrong clock, even if nothing was written for weeks.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use super::open_error::OpenError;
use crate::clock::Time;

const FILE: &str = "last-run";
/// Interval between two records.
const INTERVAL: Duration = Duration::from_secs(60);
/// Number of decimal digits of a record.
const DIGITS: usize = 20;

/// Records the time while the server runs.
pub(crate) struct LastRun {
    file: File,
    /// Time at which the next record is due, by [`Time::elapsed`].
    due: Duration,
}

impl LastRun {
    /// Opens the file in the data directory `data`.
    ///
    /// # Errors
    /// [`OpenError::Directory`]
    pub(crate) fn open(data: &Path) -> Result<Self, OpenError> {
        let mut options = File::options();
        let file =
            options.create(true).truncate(false).read(true).write(true).open(data.join(FILE));
        let file = file.map_err(|error| OpenError::Directory(data.to_owned(), error))?;
        Ok(Self { file, due: Duration::ZERO })
    }

    /// Returns the last record in the data directory `data`, in milliseconds since 1970; 0 if there is none. Changes
    /// nothing.
    ///
    /// # Errors
    /// [`OpenError::Directory`]
    pub(crate) fn read_of(data: &Path) -> Result<u64, OpenError> {
        match File::open(data.join(FILE)) {
            Ok(file) => Ok(Self { file, due: Duration::ZERO }.read()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(OpenError::Directory(data.to_owned(), error)),
        }
    }

    /// Returns the last record, in milliseconds since 1970; 0 if there is none.
    pub(crate) fn read(&self) -> u64 {
        let mut digits = [0; DIGITS];
        let read = self.file.read_exact_at(&mut digits, 0);
        let text = read.ok().and_then(|()| std::str::from_utf8(&digits).ok());
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Records the time if it is due.
    pub(crate) fn note_when_due(&mut self, time: &Time) {
        let now = time.elapsed();
        if now >= self.due {
            self.due = now + INTERVAL;
            self.note(time);
        }
    }

    /// Records the time. It is a hint: errors are ignored, and it is not synced.
    pub(crate) fn note(&self, time: &Time) {
        let text = format!("{:020}\n", time.now_ms());
        drop(self.file.write_all_at(text.as_bytes(), 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn what_is_no_note_is_none() {
        let data = tempfile::tempdir().unwrap();
        let last_run = LastRun::open(data.path()).unwrap();
        let file = last_run.file.try_clone().unwrap();
        for (text, read) in [
            ("", 0),
            ("1234", 0),
            ("xxxxxxxxxxxxxxxxxxxxx", 0),
            ("99999999999999999999\n", 0),
            ("00000001795348800000\n", 1_795_348_800_000),
        ] {
            file.set_len(0).unwrap();
            file.write_all_at(text.as_bytes(), 0).unwrap();
            assert_eq!(last_run.read(), read, "{text:?}");
        }
        last_run.note(&Time::new(Clock::from_fn(|| 42), 0, Duration::MAX));
        assert_eq!(last_run.read(), 42);
    }
}
