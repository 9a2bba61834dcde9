//! `cargo xtask cluster`: a cluster under load while nodes, NATS servers, links, disks and clocks fail; or its figures.
//!
//! The tests themselves are `faults.rs` and `figures.rs` in `crates/roost/tests/e2e/cluster`; this passes the numbers to
//! them.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::fetch::Fetcher;
use crate::suite::Suite;
use crate::{cargo, is_ci, no_skip, step, target};

const USAGE: &str = "cargo xtask cluster [--minutes 30] [--seed NUMBER] [--out FOLDER]
cargo xtask cluster --figures [--out FOLDER]

The first writes summary.txt, faults.csv and pauses.csv to the folder. The second measures a build of the profile `dist` instead, and
writes figures.txt.";
/// Seconds in `cargo xtask test`.
const TEST_SECONDS: &str = "20";
/// Arguments of the test binary that select the campaign.
const CAMPAIGN: [&str; 4] = ["--ignored", "--exact", "--nocapture", "cluster::faults::campaign"];
/// Arguments of the test binary that select the measurement.
const FIGURES: [&str; 4] = ["--ignored", "--exact", "--nocapture", "cluster::figures::figures"];

/// Runs the campaign.
///
/// # Errors
/// If arguments are wrong, or something acknowledged was lost.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let mut rest = arguments.iter().peekable();
    let measures = rest.next_if(|first| *first == "--figures").is_some();
    let mut test = cargo(root, &["test", "-p", "roost", "--test", "e2e"]);
    test.args(measures.then_some("--profile=dist"));
    test.arg("--").args(if measures { FIGURES } else { CAMPAIGN });
    let mut minutes = 30.0;
    while let Some(name) = rest.next() {
        let value = rest.next().with_context(|| format!("{name} has no value\n\n{USAGE}"))?;
        match name.as_str() {
            "--minutes" => minutes = value.parse::<f64>()?,
            "--seed" => drop(test.env("ROOST_TEST_SEED", value)),
            "--out" => drop(test.env("ROOST_CLUSTER_OUT", std::path::absolute(value)?)),
            _ => bail!("{USAGE}"),
        }
    }
    for missing in (Fetcher { root, target: &target(root), may_install: is_ci() }).nats() {
        println!("missing: {missing}");
    }
    test.env("ROOST_CLUSTER_SECONDS", format!("{:.0}", minutes * 60.0));
    step(test.envs(no_skip()))
}

/// Runs the campaign for [`TEST_SECONDS`], with the binaries that the other tests use.
///
/// # Errors
/// If something acknowledged was lost.
pub(crate) fn smoke(suite: &Suite) -> anyhow::Result<()> {
    let mut test = suite.command("roost::e2e")?;
    test.args(CAMPAIGN).env("ROOST_CLUSTER_SECONDS", TEST_SECONDS);
    step(&mut test)
}
