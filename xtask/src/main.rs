//! `cargo xtask test` runs all checks of the project, `dst` simulates the node, `bench` measures, `figures` writes
//! measured values into the documents, and `dist` makes packages. All work in every folder of the repository.
//!
//! `suite` runs tests; `tidy`, `documents` and `circles` check sources and documents.

mod browser;
mod circles;
mod cluster;
mod dist;
mod documents;
mod dst;
mod fetch;
mod figures;
mod fuzz;
mod licences;
mod power;
mod suite;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::{Args, Parser};

use crate::fetch::Fetcher;
use crate::suite::Suite;

/// Tasks of the project with its own sources.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Task {
    /// Check format, lints and documents, and run all tests
    Test {
        /// First install and fetch the tools of tests
        #[arg(long, conflicts_with = "packages")]
        install: bool,
        /// Run only the tests of these packages
        packages: Vec<String>,
    },
    /// Run the checks that take long: documentation, races, statistics, campaigns with faults
    Nightly {
        /// First install and fetch the tools of tests
        #[arg(long)]
        install: bool,
    },
    /// Run only the quick checks of the sources
    Tidy,
    /// Simulate the node with faults (options: --help)
    #[command(disable_help_flag = true)]
    Dst(Passed),
    /// Run benchmarks; raw data goes to runs/DATE-bench (list: --help)
    #[command(disable_help_flag = true)]
    Bench(Passed),
    /// Write the figures of runs/ into docs/figures.md and the documents that link to it
    Figures,
    /// Build a release as a directory, an archive and a Debian package
    Dist(dist::Options),
    /// Test power losses and kills of the real server under load
    Power(power::Options),
    /// Test a cluster while nodes, NATS servers, links, disks and clocks fail, or measure one
    ///
    /// The campaign writes summary.txt, faults.csv and pauses.csv to the folder --out. The measurement builds the
    /// profile dist and writes figures.txt.
    Cluster(cluster::Options),
    /// Damage random bits of every file of a data directory
    Damage {
        /// Length of the run
        #[arg(long)]
        minutes: f64,
        /// File to write the results to
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Search for inputs that make a target fail, with libFuzzer
    ///
    /// It needs a nightly toolchain and cargo-fuzz (cargo install cargo-fuzz). New inputs go to
    /// target/fuzz/corpus/TARGET, failing ones to target/fuzz/failures. When you have repaired the fault, copy the
    /// failing inputs to fuzz/corpus/TARGET.
    Fuzz(fuzz::Options),
}

/// Arguments for another program.
#[derive(Args)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

/// Timeout of installing system packages.
const APT_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Duration of the cluster test with faults in `cargo xtask nightly`, in minutes.
const NIGHTLY_CLUSTER_MINUTES: f64 = 10.0;
/// Number of random requests to each endpoint of Mastodon's API in `cargo xtask nightly`.
const NIGHTLY_EXAMPLES: &str = "175";

fn main() -> anyhow::Result<()> {
    let task = Task::parse();
    let root = root()?;
    match task {
        Task::Test { install, packages } if packages.is_empty() => test(&root, install),
        Task::Test { packages, .. } => Suite::build(&root, &packages, &[])?.run(&root),
        Task::Nightly { install } => nightly(&root, install),
        Task::Tidy => quick(&root),
        Task::Dst(Passed { arguments }) => dst::run(&root, &arguments),
        Task::Bench(Passed { arguments }) => bench(&root, &arguments),
        Task::Figures => figures::write(&root),
        Task::Dist(options) => dist::run(&root, options),
        Task::Power(options) => power::run(&root, &options),
        Task::Cluster(options) => cluster::run(&root, &options),
        Task::Damage { minutes, out } => damage(&root, minutes, out),
        Task::Fuzz(options) => fuzz::run(&root, &options),
    }
}

fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    Ok(root.to_owned())
}

/// Whether this runs in CI, which installs missing tools and fails if a test would be skipped.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// Environment variable that makes a test fail instead of being skipped if tools are missing. It is set in CI.
fn no_skip() -> Option<(&'static str, &'static str)> {
    is_ci().then_some(("ROOST_NO_SKIP", "1"))
}

/// Provides the tools of tests. Returns the tests that are skipped because tools are missing.
fn provide(root: &Path, install: bool) -> anyhow::Result<Vec<String>> {
    let mut skipped = prepare(root, install || is_ci());
    for what in &skipped {
        eprintln!("\nSKIPPED: {what}");
    }
    ensure!(!is_ci() || skipped.is_empty(), "in CI nothing may be skipped");
    skipped.extend(outside(root));
    Ok(skipped)
}

/// Prints that all checks have passed since `start`, and which were skipped.
fn passed(start: Instant, skipped: &[String]) {
    for what in skipped {
        eprintln!("SKIPPED: {what}");
    }
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    println!("\nall checks passed in {minutes:.1} minutes, {} skipped", skipped.len());
}

/// Runs the checks that every change must pass, the quick ones first.
fn test(root: &Path, install: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    let skipped = provide(root, install)?;
    quick(root)?;
    let lints = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    step(cargo(root, &lints))?;
    let suite = Suite::build(root, &[], no_skip().as_slice())?;
    suite.run(root)?;
    Suite::examples(root)?;
    cluster::smoke(&suite)?;
    dst::smoke(root)?;
    if browser::missing(root).is_none() {
        step(&mut browser::tests(root))?;
    }
    passed(start, &skipped);
    Ok(())
}

/// Runs the checks that are too slow for every change: documentation of all crates, races, an upgrade, statistics, and
/// campaigns with faults and random requests.
fn nightly(root: &Path, install: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    let skipped = provide(root, install)?;
    let mut doc = cargo(root, &["doc", "--workspace", "--no-deps", "--quiet"]);
    step(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    let races = ["test", "-p", "node", "--features", "loom", "--lib", "--quiet", "--", "races"];
    step(cargo(root, &races))?;
    let upgrade = ["test", "-p", "store", "--features", "next-format", "--quiet", "--", "format"];
    step(cargo(root, &upgrade))?;
    // Run the tests of statistics with all repetitions.
    let envs: Vec<_> = no_skip().into_iter().chain([("ROOST_NIGHTLY", "1")]).collect();
    Suite::build(root, &["stats".into()], &envs)?.run(root)?;
    dst::nightly(root)?;
    cluster::campaign(root, NIGHTLY_CLUSTER_MINUTES)?;
    let mut requests = cargo(root, &["test", "-p", "roost", "--test", "e2e", "--"]);
    requests.args(["--nocapture", "mastodon::checks::random_requests"]);
    step(requests.env("ROOST_EXAMPLES", NIGHTLY_EXAMPLES).envs(no_skip()))?;
    passed(start, &skipped);
    Ok(())
}

/// Checks formatting, sources, documents and licenses. Takes some seconds.
fn quick(root: &Path) -> anyhow::Result<()> {
    step(cargo(root, &["fmt", "--all", "--check"]))?;
    tidy::check(root)?;
    licences::check(root)
}

/// Programs of tests, their Debian packages, and what they test.
const PROGRAMS: [(&str, &str, &str); 20] = [
    ("ab", "apache2-utils", "the old report's command lines with ab"),
    ("curl", "curl", "the commands in the documents"),
    ("dpkg-deb", "dpkg", "the Debian package"),
    ("erlc", "erlang-base", "the lab's designs in Erlang"),
    ("faketime", "faketime", "wrong clocks"),
    ("fish", "fish", "completions of fish"),
    ("go", "golang-go", "the log of a cluster"),
    ("groff", "groff-base", "man pages"),
    ("javac", "default-jdk-headless", "the lab's design in Java"),
    ("lintian", "lintian", "the rules for Debian packages"),
    ("openssl", "openssl", "TLS between a node and NATS"),
    ("pip3", "python3-pip", "clients in Python"),
    ("promtool", "prometheus", "queries of the dashboard, and alerts"),
    ("python3", "python3", "clients in Python"),
    ("redis-cli", "redis-tools", "redis-cli and redis-benchmark"),
    ("redis-server", "redis-server", "a comparison of replies with Redis"),
    ("systemd-analyze", "systemd", "the unit of the service"),
    ("tclsh", "tcl", "Redis's test suite"),
    ("tmux", "tmux", "the dashboard on a terminal"),
    ("zsh", "zsh", "completions of zsh"),
];

/// Programs with a minimum version, and what they test. From 1.21 on, Go fetches the version that NATS needs. Debian 12
/// has Go 1.19 and Node.js 18.
const OLDEST: [(&str, (u32, u32), &str); 3] = [
    ("go", (1, 21), "the log of a cluster"),
    ("node", (20, 0), "the pages in a browser, and clients in JavaScript"),
    ("python3", (3, 11), "clients in Python"),
];
/// Checks that need files outside of the repository, because the files may not be part of it.
const OUTSIDE: [(&str, &str); 1] =
    [("responses against a description of Mastodon's API", "mastodon-openapi.json")];

/// Installs the tools of tests that are not in the Rust toolchain, if `may_install`: system packages, and others in the
/// target folder and in `e2e/`. Returns what is still missing.
fn prepare(root: &Path, may_install: bool) -> Vec<String> {
    let missing = PROGRAMS.into_iter().filter(|(program, ..)| !has(program));
    let mut packages: Vec<&str> = missing.map(|(_, package, _)| package).collect();
    packages.extend(browser::packages());
    if !packages.is_empty() {
        let packages = packages.join(" ");
        if may_install {
            println!("installing system packages with apt-get: {packages}");
            install(&packages);
        } else {
            println!("system packages are missing; --install runs: apt-get install -y {packages}");
        }
    }
    let missing = PROGRAMS.into_iter().filter(|(program, ..)| !has(program));
    let mut skipped: Vec<String> = missing
        .map(|(_, package, what)| format!("{what}: install the package {package}"))
        .collect();
    skipped.extend(OLDEST.into_iter().filter_map(|(program, oldest, what)| {
        let found = version(program).filter(|found| *found < oldest)?;
        Some(format!(
            "{what}: {program} {}.{} is too old: install {}.{} or later from its own site",
            found.0, found.1, oldest.0, oldest.1
        ))
    }));
    let fetcher = Fetcher { root, target: &target(root), may_install };
    skipped.extend(fetcher.all());
    skipped.extend(browser::prepare(&fetcher));
    skipped
}

/// Tries to install Debian packages. The caller checks the result.
fn install(packages: &str) {
    let install = format!("apt-get install -y {packages}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{install} || (apt-get update && {install})")]);
    if let Err(error) = fetch::run(shell.env("DEBIAN_FRONTEND", "noninteractive"), APT_LIMIT) {
        println!("{install}: {error}");
    }
}

/// Checks that are skipped because their files outside of the repository are missing.
fn outside(root: &Path) -> Vec<String> {
    let shared = std::env::var_os("ROOST_SHARED").map_or(root.join("../shared"), PathBuf::from);
    let missing = OUTSIDE.into_iter().filter(|(_, file)| !shared.join(file).exists());
    missing
        .map(|(what, file)| format!("{what}: set ROOST_SHARED to a folder with {file}"))
        .collect()
}

/// Returns the version that a program prints, such as `go version go1.26.8 linux/amd64` or `v20.20.2`.
fn version(program: &str) -> Option<(u32, u32)> {
    let argument = if program == "go" { "version" } else { "--version" };
    let output = Command::new(program).arg(argument).output().ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    let (major, rest) = words.find(|word| word.contains('.'))?.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from)
}

fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(program).is_file())
}

fn bench(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    step(cargo(root, &["build", "--profile", "dist", "-p", "roost", "-p", "bench"]))?;
    let mut bench = Command::new(target(root).join("dist/bench"));
    bench.current_dir(root).args(arguments);
    if !arguments.iter().any(|argument| argument == "--out" || argument == "--help") {
        let date = Command::new("date").arg("+%Y-%m-%d").output()?.stdout;
        let date = String::from_utf8(date)?;
        bench.arg("--out").arg(format!("runs/{}-bench", date.trim()));
    }
    step(&mut bench)
}

/// Runs the test of damaged files for some minutes instead of a number of cases.
fn damage(root: &Path, minutes: f64, out: Option<PathBuf>) -> anyhow::Result<()> {
    let mut test =
        cargo(root, &["test", "-p", "node", "--test", "it", "--", "--nocapture", "damage::"]);
    test.env("ROOST_DAMAGE_MINUTES", minutes.to_string());
    if let Some(out) = out {
        test.env("ROOST_DAMAGE_OUT", std::path::absolute(out)?);
    }
    step(test)
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(arguments);
    if std::env::var_os("CI").is_some() {
        // CI builds everything once. Incremental builds would take time and a third of the disk.
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    cargo
}

/// Prints a command and runs it until it ends. Fails if the command fails.
fn step(mut command: impl std::borrow::BorrowMut<Command>) -> anyhow::Result<()> {
    let command = command.borrow_mut();
    let words = command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let line = format!("{} {}", program.to_string_lossy(), words.join(" "));
    println!("\n==> {line}");
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    ensure!(status.success(), "failed: {line}");
    println!("<== {:.1} minutes: {line}", start.elapsed().as_secs_f64() / 60.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        for (text, expect) in [
            ("go version go1.26.8 linux/amd64", Some((1, 26))),
            ("v20.20.2\n", Some((20, 20))),
            ("Python 3.11.7", Some((3, 11))),
            ("", None),
        ] {
            assert_eq!(parse_version(text), expect, "{text:?}");
        }
    }
}
