//! `cargo xtask dst`: builds the simulation tests and runs them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, step, target};

/// Seconds of new seeds in `cargo xtask test`.
const TEST_SECONDS: &str = "20";
/// Seeded bugs that `cargo xtask test` looks for; each is found within a second or two.
const TEST_BUGS: [&str; 3] = ["no-segment-sync", "apply-twice", "wrong-layer"];
/// Seconds of new seeds in `cargo xtask nightly`.
const NIGHTLY_SECONDS: &str = "600";

/// Runs the simulator with these arguments.
///
/// # Errors
/// If it does not build, or finds something.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let with_bugs = arguments.iter().any(|argument| argument.starts_with("--bugs"))
        || std::env::var_os("ROOST_BUG").is_some();
    let simulator = Simulator::build(root, "release", with_bugs)?;
    simulator.run(arguments)
}

/// Runs the seeds that failed once and new ones for [`TEST_SECONDS`], and looks for a few seeded bugs.
///
/// # Errors
/// See [`run`].
pub(crate) fn smoke(root: &Path) -> anyhow::Result<()> {
    let simulator = Simulator::build(root, "dev", true)?;
    simulator.run(&["--regressions"])?;
    simulator.run(&["--seconds", TEST_SECONDS])?;
    TEST_BUGS.iter().try_for_each(|bug| simulator.run(&["--bugs", bug]))
}

/// Runs the simulator's own tests, the seeds that failed once and new ones for [`NIGHTLY_SECONDS`], and looks for each
/// of the seeded bugs.
///
/// # Errors
/// See [`run`].
pub(crate) fn nightly(root: &Path) -> anyhow::Result<()> {
    step(cargo(root, &["test", "--release", "-p", "dst", "--features", "bugs", "--quiet"]))?;
    let simulator = Simulator::build(root, "release", true)?;
    simulator.run(&["--regressions"])?;
    simulator.run(&["--seconds", NIGHTLY_SECONDS])?;
    simulator.run(&["--bugs"])
}

/// Built simulator.
struct Simulator<'a> {
    root: &'a Path,
    program: PathBuf,
}

impl<'a> Simulator<'a> {
    /// Builds the simulator with a profile: `dev`, which shares the dependencies of the other tests, or `release`,
    /// which is faster.
    fn build(root: &'a Path, profile: &str, with_bugs: bool) -> anyhow::Result<Self> {
        // Nothing of roost is built, but selecting it makes cargo unify the features of dependencies as for the other
        // tests.
        let package = ["-p", "dst", "-p", "roost", "--bin", "dst"];
        let mut build = cargo(root, &["build", "--quiet", "--profile", profile]);
        build.args(package);
        if with_bugs {
            build.args(["--features", "dst/bugs"]);
        }
        step(&mut build)?;
        let folder = if profile == "dev" { "debug" } else { profile };
        Ok(Self { root, program: target(root).join(folder).join("dst") })
    }

    fn run(&self, arguments: &[impl AsRef<OsStr>]) -> anyhow::Result<()> {
        step(Command::new(&self.program).current_dir(self.root).args(arguments))
    }
}
