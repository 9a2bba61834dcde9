//! `cargo xtask dst`: builds the simulation tests with optimization and runs them.

use std::path::Path;
use std::process::Command;

use crate::{cargo, step, target};

/// Seconds of new seeds in `cargo xtask test`.
const TEST_SECONDS: &str = "20";
/// Seeded bugs that `cargo xtask test` looks for: each is found within a second or two.
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
    build(root, with_bugs)?;
    step(simulator(root).args(arguments))
}

/// Runs the seeds that failed once, new ones for [`TEST_SECONDS`], and looks for a few seeded bugs.
///
/// # Errors
/// See [`run`].
pub(crate) fn smoke(root: &Path) -> anyhow::Result<()> {
    build(root, true)?;
    step(simulator(root).arg("--regressions"))?;
    step(simulator(root).args(["--seconds", TEST_SECONDS]))?;
    TEST_BUGS.iter().try_for_each(|bug| step(simulator(root).args(["--bugs", bug])))
}

/// Runs the simulator's own tests, the seeds that failed once, new ones for [`NIGHTLY_SECONDS`], and looks for each of the
/// seeded bugs.
///
/// # Errors
/// See [`run`].
pub(crate) fn nightly(root: &Path) -> anyhow::Result<()> {
    step(cargo(root, &["test", "--release", "-p", "dst", "--features", "bugs", "--quiet"]))?;
    build(root, true)?;
    step(simulator(root).arg("--regressions"))?;
    step(simulator(root).args(["--seconds", NIGHTLY_SECONDS]))?;
    step(simulator(root).arg("--bugs"))
}

fn build(root: &Path, with_bugs: bool) -> anyhow::Result<()> {
    let mut build = cargo(root, &["build", "--release", "-p", "dst", "--quiet"]);
    if with_bugs {
        build.args(["--features", "bugs"]);
    }
    step(&mut build)
}

fn simulator(root: &Path) -> Command {
    let mut simulator = Command::new(target(root).join("release/dst"));
    simulator.current_dir(root);
    simulator
}
