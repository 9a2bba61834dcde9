//! `cargo xtask dst`: builds the simulation tests and runs them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, step, target};

/// Duration of the run with new seeds in `cargo xtask test`, in seconds.
const TEST_SECONDS: &str = "20";
/// Seeded bugs for which `cargo xtask test` searches. Each is found within two seconds.
const TEST_BUGS: [&str; 3] = ["no-segment-sync", "apply-twice", "wrong-layer"];
/// Duration of the run with new seeds in `cargo xtask nightly`, in seconds.
const NIGHTLY_SECONDS: &str = "600";

/// Runs the simulator with these arguments.
///
/// # Errors
/// If it does not build, or if it finds a failure.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let with_bugs = arguments.iter().any(|argument| argument.starts_with("--bugs"))
        || std::env::var_os("ROOST_BUG").is_some();
    let simulator = Simulator::build(root, "release", with_bugs)?;
    simulator.run(arguments)
}

/// Runs the seeds that once failed, then new ones for [`TEST_SECONDS`]. Searches for a few seeded bugs.
///
/// # Errors
/// See [`run`].
pub(crate) fn smoke(root: &Path) -> anyhow::Result<()> {
    let simulator = Simulator::build(root, "dev", true)?;
    simulator.run(&["--regressions"])?;
    simulator.run(&["--seconds", TEST_SECONDS])?;
    TEST_BUGS.iter().try_for_each(|bug| simulator.run(&["--bugs", bug]))
}

/// Runs the tests of the simulator, the seeds that once failed, and new ones for [`NIGHTLY_SECONDS`]. Searches for each
/// seeded bug.
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
    /// Builds the simulator with a profile: `dev` shares the dependencies of the other tests, and `release` makes a
    /// faster simulator.
    fn build(root: &'a Path, profile: &str, with_bugs: bool) -> anyhow::Result<Self> {
        // No target of roost is built. roost is selected so that cargo uses the same features of dependencies as for
        // the other tests.
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
