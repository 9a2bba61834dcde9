//! Faulty machines for single processes: with a wrong clock, or with a small disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Process;
use crate::skipped;

/// Clock of processes that run under libfaketime. It changes the time of the machine's clock, but not its rate.
#[derive(Debug)]
pub struct WrongClock {
    library: PathBuf,
    file: PathBuf,
}

impl WrongClock {
    /// Creates a clock whose time is set in a file. If libfaketime is not installed, reports a skipped test and returns
    /// `None`.
    #[must_use]
    pub fn new(file: PathBuf) -> Option<Self> {
        let folders = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
        let libraries = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
        let Some(library) = libraries.into_iter().find(|path| path.exists()) else {
            skipped("wrong clocks: libfaketime is not installed (apt-get install faketime)");
            return None;
        };
        let clock = Self { library, file };
        clock.set("+0");
        Some(clock)
    }

    /// Sets the clock in the format of libfaketime: `+3d`, or `@2200-01-01 00:00:00`.
    pub fn set(&self, time: &str) {
        // Replace the file as a whole, because a process may read it at any time.
        let new = self.file.with_extension("new");
        std::fs::write(&new, time).unwrap();
        std::fs::rename(new, &self.file).unwrap();
    }

    /// Makes a command use this clock.
    pub fn give(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }
}

/// Disk in memory that only chosen processes see. A process that does nothing keeps it mounted.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
    holder: Process,
}

impl SmallDisk {
    /// Mounts a disk of `bytes` bytes in an existing folder. If this user cannot mount one, reports a skipped test and
    /// returns `None`.
    #[must_use]
    pub fn new(folder: &Path, bytes: usize) -> Option<Self> {
        let mount = "mount -t tmpfs -o size=$1 tmpfs $0 && echo mounted && exec sleep infinity";
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", mount]).arg(folder).arg(bytes.to_string());
        let holder = Process::start(&mut command);
        if holder.said("mounted").is_none() {
            skipped("full disks: unshare cannot mount a disk here");
            return None;
        }
        Some(Self { folder: folder.to_owned(), holder })
    }

    /// Wraps a command so that it sees the disk.
    #[must_use]
    pub fn inside(&self, inner: &Command) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.id(), "-U", "-m", "--preserve-credentials", "--"]);
        command.arg(inner.get_program()).args(inner.get_args());
        command
    }

    /// Path of a file on the disk for processes that do not see the disk, such as this one.
    #[must_use]
    pub fn outside(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.id()));
        root.join(self.folder.strip_prefix("/").unwrap()).join(name)
    }

    fn id(&self) -> String {
        self.holder.id().as_raw_nonzero().to_string()
    }
}
