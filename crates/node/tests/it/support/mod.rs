//! Moving the data of a node into another directory by an export and an import.

use node::{NodeOptions, TransferCounts};
use tempfile::TempDir;

/// Returns all lines of an export of a directory whose node is closed.
pub(crate) fn exported(options: &NodeOptions) -> String {
    let mut out = Vec::new();
    node::export(options, "test", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Imports lines into a new directory; returns its options.
pub(crate) fn imported(
    options: &NodeOptions,
    lines: &str,
) -> Result<(NodeOptions, TempDir, TransferCounts), node::ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let options = NodeOptions { data: folder.path().join("data"), ..options.clone() };
    let counts = node::import(&options, lines.as_bytes())?;
    Ok((options, folder, counts))
}

/// Returns the lines without the first one, which has the time.
pub(crate) fn facts(lines: &str) -> &str {
    lines.split_once('\n').unwrap().1
}

/// Moves everything into another directory. Its export must be the same.
pub(crate) fn moved(options: &NodeOptions) -> (NodeOptions, TempDir) {
    let lines = exported(options);
    let (options, folder, _) = imported(options, &lines).unwrap();
    assert_eq!(facts(&exported(&options)), facts(&lines));
    (options, folder)
}
