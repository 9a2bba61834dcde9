//! What the tests of the Redis edge use and the Rust toolchain does not bring: Redis's own test suite,
//! its tools, and two client libraries. All of it goes to `fetched` in the target folder, except
//! packages of the system.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The suite is that of this version; others test commands that are not there.
const REDIS: &str = "redis-7.0.";
/// What is fetched from registries, in versions whose behaviour is known.
const REDIS_PY: &str = "redis==6.4.0";
const IOREDIS: &str = "ioredis@5.8.2";

/// Fetches what is missing; returns what cannot be had.
pub(crate) fn redis(target: &Path) -> Vec<String> {
    let fetched = target.join("fetched");
    let mut missing = Vec::new();
    if !is_suite(&fetched.join("redis-suite")) {
        suite(&fetched.join("redis-suite"));
    }
    if !is_suite(&fetched.join("redis-suite")) {
        missing.push(format!(
            "Redis's test suite: apt-get source redis did not bring {REDIS}x, so put its source into {}",
            fetched.join("redis-suite").display()
        ));
    }
    let python = fetched.join("redis-py");
    if !python.is_dir() {
        let folder = python.as_os_str();
        run(Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", REDIS_PY])
            .arg("--target")
            .arg(folder));
    }
    if !python.is_dir() {
        missing.push(format!("the client redis-py: pip install {REDIS_PY}"));
    }
    let node = fetched.join("ioredis");
    if !node.is_dir() {
        run(Command::new("npm").args(["install", "--silent", IOREDIS, "--prefix"]).arg(&node));
    }
    if !node.join("node_modules").is_dir() {
        missing.push(format!("the client ioredis: npm install {IOREDIS}"));
    }
    missing
}

fn is_suite(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |name: &str| name.starts_with(REDIS);
    entries.into_iter().any(|entry| {
        named(&entry.file_name().to_string_lossy()) && entry.path().join("runtest").exists()
    })
}

/// Downloads the source package, with lists of packages of our own: the system's may have no sources.
fn suite(folder: &Path) {
    let apt = folder.join("apt");
    let made = ["lists/partial", "cache/archives/partial", "parts"]
        .iter()
        .try_for_each(|name| fs::create_dir_all(apt.join(name)));
    if made.is_err() || sources(&apt).is_err() {
        return;
    }
    let folder_option = |name: &str, path: &str| format!("{name}={}", apt.join(path).display());
    let options = [
        folder_option("Dir::Etc::sourcelist", "sources.list"),
        folder_option("Dir::Etc::sourceparts", "parts"),
        folder_option("Dir::State::lists", "lists"),
        folder_option("Dir::Cache", "cache"),
    ];
    let apt_get = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        options.iter().for_each(|option| {
            command.args(["-o", option]);
        });
        run(command.args(words).current_dir(folder))
    };
    if apt_get(&["--quiet", "update"]) && apt_get(&["source", "--download-only", "redis"]) {
        run(Command::new("sh").args(["-c", "tar xzf redis_*.orig.tar.gz"]).current_dir(folder));
    }
}

/// The system's lists, for sources instead of packages.
fn sources(apt: &Path) -> std::io::Result<()> {
    let old = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
    fs::write(apt.join("sources.list"), old.replace("deb ", "deb-src "))?;
    let debian = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").unwrap_or_default();
    fs::write(apt.join("parts/debian.sources"), debian.replace("Types: deb", "Types: deb-src"))
}

/// Whether it ended well.
fn run(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
