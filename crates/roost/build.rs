//! Sets `ROOST_VERSION` to the version and the commit that was built.
//!
//! Runs again only when the commit or the checked-out branch changes.

use std::path::Path;
use std::process::Command;

fn main() {
    // Only in a checkout of roost itself, not where its sources are part of another repository.
    let commit = git(&["ls-files", "--error-unmatch", "build.rs"])
        .and_then(|_| git(&["rev-parse", "--short=12", "HEAD"]));
    // The reflog grows with every commit and checkout. In a worktree it is in another place.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    if Path::new(&log).is_file() {
        println!("cargo::rerun-if-changed={log}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let commit = commit.as_deref().unwrap_or("unknown");
    println!("cargo::rustc-env=ROOST_VERSION={version} (commit {commit})");
}

/// Output of a git command; `None` without git or outside of a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
