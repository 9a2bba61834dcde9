//! Code that the tests share: processes, clients, event streams, and a reference model.

pub(crate) mod world;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

pub(crate) use testkit::{PATIENCE, events, files, http, process, redis};

/// Folder of shared data, from `ROOST_SHARED` or next to the repository; `None` if it is not on this machine.
pub(crate) fn shared() -> Option<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("ROOST_SHARED").map(PathBuf::from);
    let near = ["../shared", "../../../shared"].map(|path| here.join(path));
    named.into_iter().chain(near).find(|path| path.is_dir())
}

/// Reports a skipped test with its reason. In CI, which sets `ROOST_NO_SKIP`, a skipped test is a failure. The print
/// macros are not used, because the output of tests that pass is hidden.
pub(crate) fn skipped(what: &str) {
    assert!(std::env::var_os("ROOST_NO_SKIP").is_none(), "nothing may be skipped here: {what}");
    std::io::stderr().write_all(format!("SKIPPED: {what}\n").as_bytes()).unwrap();
}

/// Reports a test that was skipped because it needs a file that may not be in the repository.
pub(crate) fn not_here(what: &str) {
    std::io::stderr().write_all(format!("SKIPPED: {what}\n").as_bytes()).unwrap();
}

/// Reports that a run measured nothing because the machine was too busy. The other results of the run are still
/// checked.
pub(crate) fn inconclusive(why: &str) {
    std::io::stderr().write_all(format!("INCONCLUSIVE: {why}\n").as_bytes()).unwrap();
}

/// Folder in which `cargo xtask test --install` stores a tool.
pub(crate) fn fetched(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("fetched").join(name)
}

/// Output of a program, which must have succeeded.
pub(crate) fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}
