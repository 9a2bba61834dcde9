//! `cargo xtask cluster`: tests a cluster under load while nodes, NATS servers, links, disks and clocks fail, or
//! measures one.
//!
//! The tests are `faults.rs` and `figures.rs` in `crates/roost/tests/e2e/cluster`. This module only passes the
//! parameters to them.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::fetch::Fetcher;
use crate::suite::Suite;
use crate::{cargo, is_ci, no_skip, step, target};

/// Parameters of the campaign or of the measurement.
#[derive(Args)]
pub(crate) struct Options {
    /// Length of the campaign
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Seed of the campaign's faults [default: a new one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Measure instead of testing
    #[arg(long, conflicts_with_all = ["minutes", "seed"])]
    figures: bool,
    /// Folder for the results
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Seconds of the campaign in `cargo xtask test`.
const TEST_SECONDS: &str = "20";
/// Arguments of the test binary that select the campaign.
const CAMPAIGN: [&str; 4] = ["--ignored", "--exact", "--nocapture", "cluster::faults::campaign"];
/// Arguments of the test binary that select the measurement.
const FIGURES: [&str; 4] = ["--ignored", "--exact", "--nocapture", "cluster::figures::figures"];

/// Runs the campaign for some minutes with a new seed.
///
/// # Errors
/// See [`run`].
pub(crate) fn campaign(root: &Path, minutes: f64) -> anyhow::Result<()> {
    run(root, &Options { minutes, seed: None, figures: false, out: None })
}

/// Runs the campaign or the measurement.
///
/// # Errors
/// If an acknowledged change was lost.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let mut test = cargo(root, &["test", "-p", "roost", "--test", "e2e"]);
    test.args(options.figures.then_some("--profile=dist"));
    test.arg("--").args(if options.figures { FIGURES } else { CAMPAIGN });
    test.envs(options.seed.map(|seed| ("ROOST_TEST_SEED", seed.to_string())));
    if let Some(out) = &options.out {
        test.env("ROOST_CLUSTER_OUT", std::path::absolute(out)?);
    }
    for missing in (Fetcher { root, target: &target(root), may_install: is_ci() }).nats() {
        println!("missing: {missing}");
    }
    test.env("ROOST_CLUSTER_SECONDS", format!("{:.0}", options.minutes * 60.0));
    step(test.envs(no_skip()))
}

/// Runs the campaign for [`TEST_SECONDS`], with the binaries of the other tests.
///
/// # Errors
/// If an acknowledged change was lost.
pub(crate) fn smoke(suite: &Suite) -> anyhow::Result<()> {
    let mut test = suite.command("roost::e2e")?;
    test.args(CAMPAIGN).env("ROOST_CLUSTER_SECONDS", TEST_SECONDS);
    step(&mut test)
}
