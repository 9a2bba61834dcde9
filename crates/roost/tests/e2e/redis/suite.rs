//! Test suite of Redis 7.0 from Debian's source package: the units about strings, keys, expiry, scans, transactions and
//! the protocol.
//!
//! Tags exclude tests that need replicas, `DEBUG`, a limit of memory, or access to the process. Tests of encodings in
//! memory are excluded, because roost stores all strings in the same way. `suite_skips.txt` lists other exclusions; the
//! reason follows ` -- `.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use super::serve;
use crate::support::{fetched, skipped};

const UNITS: [&str; 8] = [
    "unit/type/string",
    "unit/type/incr",
    "unit/keyspace",
    "unit/expire",
    "unit/scan",
    "unit/multi",
    "unit/protocol",
    "unit/quit",
];
/// Minimum number of tests that pass. With fewer, the run ended early.
const PASSED_MIN: usize = 235;

fn folder() -> Option<PathBuf> {
    let entries = std::fs::read_dir(fetched("redis-suite")).ok()?;
    let folders = entries.map(|entry| entry.unwrap().path());
    folders.into_iter().find(|folder| folder.join("runtest").exists())
}

#[test]
fn the_test_suite_of_redis_passes() {
    let (Some(folder), Ok(_)) = (folder(), Command::new("tclsh").arg("/dev/null").output()) else {
        skipped(
            "Redis's test suite is not here (cargo xtask test --install fetches it), or no tclsh",
        );
        return;
    };
    let data = tempfile::tempdir().unwrap();
    let (server, port) = serve(data.path());
    let skips = data.path().join("skips.txt");
    let names = include_str!("suite_skips.txt")
        .lines()
        .map(|line| line.split_once(" -- ").expect("every skipped test has its reason").0);
    std::fs::write(&skips, names.collect::<Vec<_>>().join("\n")).unwrap();
    let mut command = Command::new("./runtest");
    command
        .current_dir(folder)
        // If there is no terminal, the suite writes no colors.
        .env_remove("TERM")
        .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--durable"])
        .args(["--ignore-encoding", "--ignore-digest"])
        .args(["--tags", "-needs:debug -needs:repl -needs:config-maxmemory"])
        .arg("--skipfile")
        .arg(skips);
    for unit in UNITS {
        command.args(["--single", unit]);
    }
    let output = command.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    let count = |mark: &str| report.lines().filter(|line| line.contains(mark)).count();
    let (passed, failed) = (count("[ok]"), count("[err]") + count("[exception]"));
    let left_out = count("[skip]") + count("[ignore]");
    let counts =
        format!("Redis's test suite: {passed} passed, {failed} failed, {left_out} left out\n");
    std::io::stderr().write_all(counts.as_bytes()).unwrap();
    assert!(failed == 0 && output.status.success(), "{report}");
    assert!(passed >= PASSED_MIN, "{passed} tests passed: {report}");
    server.stop();
}
