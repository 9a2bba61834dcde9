//! `cargo xtask fuzz`: searches for inputs that make a fuzz target fail, with libFuzzer.
//!
//! The targets are functions in `fuzz/`. Every run of the tests also replays the inputs in `fuzz/corpus`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::{step, target};

/// Target and length of a search.
#[derive(Args)]
pub(crate) struct Options {
    /// Target: a folder of fuzz/corpus
    target: String,
    /// Length of the search
    #[arg(long, default_value_t = 30)]
    minutes: u32,
}

/// Resident memory above which an input fails, in MiB.
const MEMORY_MIB: u32 = 4_096;
/// Time after which an input fails, in seconds.
const SECONDS_EACH: u32 = 20;
/// Maximum length of an input, in bytes.
const INPUT_BYTES: u32 = 8_192;

/// Runs one target.
///
/// # Errors
/// If tools are missing, or an input fails.
pub(crate) fn run(root: &Path, Options { target: name, minutes }: &Options) -> anyhow::Result<()> {
    let seeds = root.join("fuzz/corpus").join(name);
    ensure!(seeds.is_dir(), "there is no target {name}: it is a folder of fuzz/corpus");
    let folder = target(root).join("fuzz");
    let (found, failures) = (folder.join("corpus").join(name), folder.join("failures"));
    for folder in [&found, &failures] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    // Use no sanitizer: almost all code is safe Rust, and a program without a sanitizer is five times as fast.
    let mut fuzz = Command::new("cargo");
    fuzz.current_dir(root.join("fuzz/runner"));
    fuzz.args(["+nightly", "fuzz", "run", "--fuzz-dir", ".", "--sanitizer", "none"]);
    fuzz.arg(name).args([&found, &seeds]).arg("--");
    fuzz.arg(format!("-max_total_time={}", minutes * 60));
    fuzz.args([format!("-rss_limit_mb={MEMORY_MIB}"), format!("-timeout={SECONDS_EACH}")]);
    fuzz.args([format!("-max_len={INPUT_BYTES}"), "-print_final_stats=1".into()]);
    fuzz.arg(format!("-artifact_prefix={}/{name}-", failures.display()));
    fuzz.env("CARGO_TARGET_DIR", &folder);
    step(fuzz)
}
