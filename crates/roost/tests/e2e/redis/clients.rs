//! Tests with common clients: redis-cli, redis-benchmark, redis-py and ioredis.

use std::process::{Command, Stdio};

use super::serve;
use crate::support::{fetched, said, skipped};

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
}

#[test]
fn redis_cli_works() {
    if !is_there("redis-cli") {
        return skipped("redis-cli is not installed (apt-get install redis-tools)");
    }
    let data = tempfile::tempdir().unwrap();
    let (server, port) = serve(data.path());
    let check = |words: &[&str], expect: &str| {
        let port = port.to_string();
        let output = Command::new("redis-cli").args(["-p", &port]).args(words).output().unwrap();
        assert_eq!(said(&output).trim_end(), expect, "{words:?}");
    };
    check(&["PING"], "PONG");
    check(&["SET", "greeting", "hello", "EX", "100"], "OK");
    check(&["GET", "greeting"], "hello");
    check(&["TTL", "greeting"], "100");
    check(&["-3", "CONFIG", "GET", "databases"], "databases 16");
    check(
        &["LPUSH", "l", "v"],
        "ERR unknown command 'LPUSH', with args beginning with: 'l' 'v' \
        (roost keeps strings: lists, sets, hashes and streams are not supported)",
    );
    let fill: String = (0..10_000).map(|n| format!("SET key:{n} {n}\r\n")).collect();
    std::fs::write(data.path().join("fill"), fill).unwrap();
    let input = std::fs::File::open(data.path().join("fill")).unwrap();
    let mut piped = Command::new("redis-cli");
    let output = piped.args(["-p", &port.to_string(), "--pipe"]).stdin(input).output().unwrap();
    assert!(said(&output).contains("errors: 0, replies: 10000"), "{output:?}");
    let mut scanned = Command::new("redis-cli");
    let output = scanned.args(["-p", &port.to_string(), "--scan"]).output().unwrap();
    assert_eq!(said(&output).lines().count(), 10_001);
    server.stop();
}

#[test]
fn redis_benchmark_has_no_error() {
    if !is_there("redis-benchmark") {
        return skipped("redis-benchmark is not installed (apt-get install redis-tools)");
    }
    let data = tempfile::tempdir().unwrap();
    let (server, port) = serve(data.path());
    for pipeline in ["1", "16"] {
        let output = Command::new("redis-benchmark")
            .args(["-p", &port.to_string(), "-t", "set,get,incr,mset", "-n", "5000", "-c", "20"])
            .args(["-P", pipeline, "-r", "1000", "--csv"])
            .output()
            .unwrap();
        let report = said(&output);
        assert_eq!(report.lines().count(), 5, "{report}");
        assert!(!report.to_lowercase().contains("error"), "{report}");
    }
    server.stop();
}

#[test]
fn redis_py_does_what_it_does_with_redis() {
    let library = fetched("redis-py");
    if !library.is_dir() {
        return skipped("redis-py is not here (cargo xtask test --install fetches it)");
    }
    let data = tempfile::tempdir().unwrap();
    let (server, port) = serve(data.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/redis/client.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(port.to_string()).env("PYTHONPATH", library);
    assert_eq!(said(&python.output().unwrap()).trim_end(), "done");
    server.stop();
}

#[test]
fn ioredis_does_what_it_does_with_redis() {
    let library = fetched("ioredis");
    if !library.is_dir() {
        return skipped("ioredis is not here (cargo xtask test --install fetches it)");
    }
    let data = tempfile::tempdir().unwrap();
    let (server, port) = serve(data.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/redis/client.js");
    let mut node = Command::new("node");
    node.arg(script).arg(port.to_string()).env("NODE_PATH", library.join("node_modules"));
    assert_eq!(said(&node.output().unwrap()).trim_end(), "done");
    server.stop();
}
