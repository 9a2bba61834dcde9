//! `cargo xtask power`: a given number of power losses and kills of the real binary under load.
//!
//! The test is `crates/roost/tests/e2e/power.rs`. This module only passes the parameters to it.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{cargo, step};

/// Parameters of the campaign.
#[derive(Args)]
pub(crate) struct Options {
    /// Number of power losses
    #[arg(long, default_value_t = 300)]
    losses: u32,
    /// Number of kills
    #[arg(long, default_value_t = 1_000)]
    kills: u32,
    /// Seed of the campaign [default: a new one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Simulated disk. Two of them ignore syncs, so they lose acknowledged changes, which the test must find
    #[arg(long, value_parser = ["honest", "forgets-files", "forgets-directories"])]
    disk: Option<String>,
    /// File for the results
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Expected time per loss or kill with its comparison, on two cores, in seconds.
const SECONDS_EACH: f64 = 1.5;

/// Runs the campaign.
///
/// # Errors
/// If an acknowledged change was lost.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let Options { losses, kills, seed, disk, out } = options;
    let test = ["test", "-p", "roost", "--test", "e2e", "--"];
    let mut test = cargo(root, &test);
    test.args(["--ignored", "--exact", "--nocapture", "power::campaign"]);
    test.envs(seed.map(|seed| ("ROOST_TEST_SEED", seed.to_string())));
    test.envs(disk.as_ref().map(|disk| ("ROOST_POWER_DISK", disk)));
    if let Some(out) = out {
        test.env("ROOST_POWER_OUT", std::path::absolute(out)?);
    }
    test.env("ROOST_POWER_LOSSES", losses.to_string());
    test.env("ROOST_POWER_KILLS", kills.to_string());
    let minutes = f64::from(losses + kills) * SECONDS_EACH / 60.0;
    println!("{losses} power losses and {kills} kills: about {minutes:.0} minutes on two cores");
    step(&mut test)
}
