//! Tests of the files that are distributed with the binary: packages, unit, image, dashboard and alerts.

mod container;
mod debian;
mod monitoring;
mod shells;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::support::{said, skipped};

/// A file of `packaging/`.
fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(packaging(name)).unwrap()
}

/// Output of `cargo xtask dist` for the tested binary.
struct Dist {
    tree: PathBuf,
    archive: PathBuf,
    package: PathBuf,
}

impl Dist {
    /// Builds the output once for all tests of this process. Other processes wait, because they use the same folder.
    fn made() -> &'static Self {
        static MADE: OnceLock<(File, Dist)> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dist.lock");
            let lock = File::create(lock).unwrap();
            lock.lock().unwrap();
            (lock, Self::make("dist"))
        });
        &made.1
    }

    fn make(folder: &str) -> Self {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::remove_dir_all(&out).ok();
        let mut xtask = Command::new(env!("CARGO"));
        xtask.current_dir(env!("CARGO_MANIFEST_DIR"));
        xtask.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--binary"]);
        xtask.arg(env!("CARGO_BIN_EXE_roost")).arg("--out").arg(out).arg("--fast");
        let paths = said(&xtask.output().unwrap());
        let mut paths = paths.lines().map(PathBuf::from);
        let mut next = || paths.next().unwrap();
        Self { tree: next(), archive: next(), package: next() }
    }
}

/// Output of a tool. If it is not installed, reports a skipped test and returns `None`.
fn tool(command: &mut Command) -> Option<Output> {
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skipped(&format!("{} is not installed", command.get_program().to_string_lossy()));
            None
        }
        output => Some(output.unwrap()),
    }
}
