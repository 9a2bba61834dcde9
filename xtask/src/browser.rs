//! Tests of the pages: a real browser against the real binary, in `e2e/`.

use std::path::Path;
use std::process::Command;

use crate::fetch::Fetcher;
use crate::has;

/// Names of Chromium on different systems.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Missing system packages that these tests need.
pub(crate) fn packages() -> Vec<&'static str> {
    // Add only what is missing: the nodejs of another source includes npm, which conflicts with Debian's npm.
    let mut packages = Vec::new();
    if !has("node") || !has("npm") {
        packages.extend(["nodejs", "npm"]);
    }
    if !has_chromium() {
        packages.push("chromium");
    }
    packages
}

/// Fetches the modules of these tests into `e2e/`. Returns what is missing afterwards.
pub(crate) fn prepare(fetcher: &Fetcher<'_>) -> Option<String> {
    if missing_programs() { missing(fetcher.root) } else { fetcher.modules() }
}

/// Reason why these tests cannot run, if any.
pub(crate) fn missing(root: &Path) -> Option<String> {
    if missing_programs() {
        return Some("the pages in a browser: install the packages nodejs, npm, chromium".into());
    }
    (!modules(root))
        .then(|| "the pages in a browser: cargo xtask test --install runs npm ci in e2e/".into())
}

/// Returns the command of the tests. They use the binary that was built for the tests of the workspace.
pub(crate) fn tests(root: &Path) -> Command {
    let mut node = Command::new("node");
    node.current_dir(root.join("e2e"));
    node.args(["--test", "--test-concurrency=2", "--test-reporter=spec"]);
    node
}

fn missing_programs() -> bool {
    !has("node") || !has("npm") || !has_chromium()
}

fn has_chromium() -> bool {
    CHROMIUM.into_iter().any(has)
}

fn modules(root: &Path) -> bool {
    ["playwright-core", "axe-core"]
        .iter()
        .all(|module| root.join("e2e/node_modules").join(module).exists())
}
