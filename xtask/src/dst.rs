//! `cargo xtask dst`: builds the simulation tests with optimization and runs them.

use std::path::Path;
use std::process::Command;

use crate::{cargo, step, target};

/// Seconds of new seeds in `cargo xtask test`.
const TEST_SECONDS: &str = "30";
/// Seeded bugs that `cargo xtask test` looks for: each is found within a second or two.
const TEST_BUGS: [&str; 3] = ["no-segment-sync", "apply-twice", "wrong-layer"];

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

/// What `cargo xtask test` runs: the seeds that once failed, new ones, and a few seeded bugs, which must be
/// found. One build serves all.
///
/// # Errors
/// See [`run`].
pub(crate) fn test(root: &Path) -> anyhow::Result<()> {
    build(root, true)?;
    step(simulator(root).arg("--regressions"))?;
    step(simulator(root).args(["--seconds", TEST_SECONDS]))?;
    TEST_BUGS.iter().try_for_each(|bug| step(simulator(root).args(["--bugs", bug])))
}

fn build(root: &Path, with_bugs: bool) -> anyhow::Result<()> {
    let mut build = cargo(root, &["build", "--profile", "dst", "-p", "dst", "--quiet"]);
    if with_bugs {
        build.args(["--features", "bugs"]);
    }
    step(&mut build)
}

fn simulator(root: &Path) -> Command {
    let mut simulator = Command::new(target(root).join("dst/dst"));
    simulator.current_dir(root);
    simulator
}
