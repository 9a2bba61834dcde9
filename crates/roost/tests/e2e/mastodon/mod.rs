//! Tests of Mastodon's API on the real binary: toot's own tests, Mastodon.py, masto.js, a description of the API, and
//! random requests by schemathesis.

mod checks;
mod simulation;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::support::process::{Server, serve};
use crate::support::{fetched, said, skipped};

/// Number of toot's own tests. If it differs, the version of toot differs.
const TOOT_TESTS: usize = 114;

/// Folder with the files of these tests.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/mastodon");

/// Starts a server on which everybody may sign up, with additional settings.
fn server(data: &Path, more: &[&str]) -> Server {
    let about = data.join("about.toml");
    std::fs::write(&about, "title = 'Tests'\nrules = ['Be kind']\ntext = 'One.'").unwrap();
    let open = ["--registrations", "open", "--password-grant", "--about", about.to_str().unwrap()];
    Server::start(&mut serve(&data.join("data"), &[&open, more].concat()))
}

/// Python with the libraries fetched for these tests. If they are missing, reports a skipped test and returns `None`.
fn python() -> Option<Command> {
    let library = fetched("mastodon-python");
    if !library.is_dir() {
        skipped(
            "Mastodon.py, toot and schemathesis are not here (cargo xtask test --install fetches them)",
        );
        return None;
    }
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", format!("{}:{HERE}", library.display()));
    // Write no bytecode into the folders of the project and of the libraries.
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    Some(python)
}

/// Number before a word of pytest's summary.
fn count(summary: &str, what: &str) -> usize {
    let words: Vec<_> = summary.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair[1] == what);
    pair.map_or(0, |pair| pair[0].parse().unwrap())
}

#[test]
fn toots_own_tests_pass_except_those_of_missing_features() {
    let suite = fetched("toot").join("toot-0.52.1");
    if !suite.is_dir() {
        return skipped("toot's tests are not here (cargo xtask test --install fetches them)");
    }
    let Some(mut python) = python() else { return };
    let data = tempfile::tempdir().unwrap();
    // Some of toot's tests contain this address. The plugin redirects it to the server.
    let url = "http://localhost:3000";
    let server = server(data.path(), &["--anonymous-reads", "--public-url", url]);
    python
        .current_dir(suite)
        .args(["-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "toot_plugin"])
        .arg("tests/integration")
        .env("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        // toot stores its settings in this folder.
        .env("HOME", data.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env("TOOT_TEST_BASE_URL", url)
        .env("TOOT_SERVER", server.address.to_string())
        .env("TOOT_LACKS", format!("{HERE}/toot_lacks.txt"));
    let output = python.output().unwrap();
    let report = said(&output);
    let summary = report.lines().next_back().unwrap_or_default();
    let (passed, lacking) = (count(summary, "passed"), count(summary, "xfailed"));
    let counts = format!("toot's tests: {passed} passed, {lacking} of missing features\n");
    std::io::stderr().write_all(counts.as_bytes()).unwrap();
    assert_eq!(passed + lacking, TOOT_TESTS, "{report}");
    server.stop();
}

#[test]
fn an_account_lives_with_mastodon_py() {
    let Some(mut python) = python() else { return };
    let data = tempfile::tempdir().unwrap();
    let server = server(data.path(), &[]);
    python.arg(format!("{HERE}/life.py")).arg(format!("http://{}", server.address));
    assert_eq!(said(&python.output().unwrap()).trim_end(), "done");
    server.stop();
}

#[test]
fn an_account_lives_with_masto_js() {
    let library = fetched("masto");
    if !library.is_dir() {
        return skipped("masto.js is not here (cargo xtask test --install fetches it)");
    }
    let data = tempfile::tempdir().unwrap();
    let server = server(data.path(), &[]);
    let mut node = Command::new("node");
    node.arg(format!("{HERE}/life.js")).arg(format!("http://{}", server.address));
    node.env("NODE_PATH", library.join("node_modules"));
    assert_eq!(said(&node.output().unwrap()).trim_end(), "done");
    server.stop();
}
