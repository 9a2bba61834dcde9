//! Tests of all responses of Mastodon's API against a description: their shapes, and the responses to random requests.
//!
//! The description is in the folder of shared data. It contains paths, parameters and fields, but no text.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{HERE, python, server};
use crate::support::process::Server;
use crate::support::{not_here, said, shared};

/// Minimum number of compared responses. With fewer, the check is incomplete.
const COMPARED_MIN: usize = 100;
/// Number of random examples per endpoint in a test run; `ROOST_EXAMPLES` overrides it.
const EXAMPLES: &str = "12";

/// Path of the description. If it is missing, reports a skipped test and returns `None`.
fn description() -> Option<PathBuf> {
    let file = shared().map(|shared| shared.join("mastodon-openapi.json"));
    let file = file.filter(|file| file.is_file());
    if file.is_none() {
        not_here(
            "a description of Mastodon's API: set ROOST_SHARED to a folder with mastodon-openapi.json",
        );
    }
    file
}

/// Writes the endpoints of the server to a file.
fn endpoints(data: &Path) -> PathBuf {
    let rows = ::mastodon::endpoints().into_iter().map(|endpoint| {
        let state = format!("{:?}", endpoint.state);
        json!({"method": endpoint.method, "path": endpoint.path, "state": state})
    });
    let file = data.join("endpoints.json");
    std::fs::write(&file, json!(rows.collect::<Vec<_>>()).to_string()).unwrap();
    file
}

/// Runs a program of this folder on a new server. At its end, the program prints counts.
fn run(data: &Path, program: &str, more: &[&str]) -> Option<(Server, String)> {
    let (description, mut python) = (description()?, python()?);
    let server = server(data, &["--anonymous-reads"]);
    python.arg(format!("{HERE}/{program}")).arg(format!("http://{}", server.address));
    python.arg(endpoints(data)).arg(description).args(more);
    let counted = said(&python.output().unwrap()).trim_end().to_owned();
    std::io::stderr().write_all(format!("{program}: {counted}\n").as_bytes()).unwrap();
    Some((server, counted))
}

/// Number at the beginning of a text.
fn number(counted: &str) -> usize {
    counted.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn every_response_has_the_shape_that_mastodon_describes() {
    let data = tempfile::tempdir().unwrap();
    let Some((server, counted)) = run(data.path(), "shapes.py", &[]) else { return };
    assert!(number(&counted) >= COMPARED_MIN, "{counted}");
    server.stop();
}

#[test]
fn random_requests_fail_nothing() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let campaign = std::env::var("ROOST_EXAMPLES");
    // In a test run, leave out the second phase, which takes a minute and is not random.
    let (examples, phases) = match &campaign {
        Ok(examples) => (examples.as_str(), "coverage,fuzzing"),
        Err(_) => (EXAMPLES, "fuzzing"),
    };
    let run = run(data.path(), "random_requests.py", &[folder, examples, phases]);
    let Some((server, counted)) = run else { return };
    assert!(number(&counted) > 500, "{counted}");
    let ended = server.stop();
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
}
