//! Licenses of the libraries that are compiled into the program. Most must be distributed with it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::tool;

/// Beginnings of the names of license files, in capitals.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Name, version, license and texts of every library of the program, and the license of the font.
///
/// # Errors
/// If cargo or the sources of a library cannot be read.
pub(super) fn all(root: &Path) -> anyhow::Result<String> {
    let used = used(root)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_str(&tool(&mut metadata)?)?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
    let mut text = String::from("Licenses of the libraries in roost\n");
    for package in packages {
        let value = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{} v{}", value("name"), value("version"));
        if package.get("source").is_some_and(Value::is_string) && used.contains(&name) {
            write!(text, "\n{:=<80}\n{name}: {}\n", "", value("license"))?;
            let folder = Path::new(value("manifest_path")).parent().context("no folder")?;
            texts(folder, &mut text)?;
        }
    }
    let font = fs::read_to_string(root.join("crates/web/fonts/inter-license.txt"))?;
    write!(text, "\n{:=<80}\nInter, the font of the pages\n\n{font}", "")?;
    Ok(text)
}

/// Returns the crates that are linked into the program, as `name vVERSION`, without those for tools and tests.
fn used(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.current_dir(root).args(["tree", "--locked", "-p", "roost", "-e", "normal"]);
    let lines = tool(tree.args(["--prefix", "none", "--format", "{p}"]))?;
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Ok(lines.lines().map(name).collect())
}

/// Appends the texts of the licenses in a folder.
fn texts(folder: &Path, text: &mut String) -> anyhow::Result<()> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let name = file.file_name().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|begin| name.starts_with(begin)) && file.path().is_file() {
            let bytes = fs::read(file.path())?;
            write!(text, "\n{}\n", String::from_utf8_lossy(&bytes).trim_end())?;
        }
    }
    Ok(())
}
