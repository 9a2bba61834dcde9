//! `cargo xtask power`: a given number of power losses and kills of the real binary under load.
//!
//! The test itself is `crates/roost/tests/e2e/power.rs`; this passes the numbers to it.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::{cargo, step};

/// The arguments: `--losses N --kills M --seed S --disk KIND --out FILE`, all optional.
const USAGE: &str = "cargo xtask power [--losses 300] [--kills 1000] [--seed NUMBER] [--out FILE]
                  [--disk honest|forgets-files|forgets-directories]

forgets-files and forgets-directories are disks that ignore syncs: losses must be found.";
/// Seconds for a loss or a kill with the comparison after it, on two cores.
const SECONDS_EACH: f64 = 1.5;

/// Runs the campaign.
///
/// # Errors
/// If arguments are wrong, or something acknowledged was lost.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let test = ["test", "-p", "roost", "--test", "e2e", "--"];
    let mut test = cargo(root, &test);
    test.args(["--ignored", "--exact", "--nocapture", "power::campaign"]);
    let (mut losses, mut kills) = (300, 1_000);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().with_context(|| format!("{name} has no value\n\n{USAGE}"))?;
        match name.as_str() {
            "--losses" => losses = value.parse::<u32>()?,
            "--kills" => kills = value.parse::<u32>()?,
            "--seed" => drop(test.env("ROOST_TEST_SEED", value)),
            "--disk" => drop(test.env("ROOST_POWER_DISK", value)),
            "--out" => drop(test.env("ROOST_POWER_OUT", std::path::absolute(value)?)),
            _ => bail!("{USAGE}"),
        }
    }
    test.env("ROOST_POWER_LOSSES", losses.to_string());
    test.env("ROOST_POWER_KILLS", kills.to_string());
    let minutes = f64::from(losses + kills) * SECONDS_EACH / 60.0;
    println!("{losses} power losses and {kills} kills: about {minutes:.0} minutes on two cores");
    step(&mut test)
}
