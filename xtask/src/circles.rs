//! Finds cyclic dependencies between the files of a crate: such files can only be understood together. A folder counts
//! as one file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::tidy::rust_files;

/// Crates without cycles.
const CRATES: [&str; 17] = [
    "api",
    "backup",
    "commitlog",
    "edge",
    "feed",
    "knn",
    "kv",
    "media",
    "node",
    "redis",
    "resp",
    "roost",
    "rows",
    "sim",
    "store",
    "testkit",
    "web",
];

/// Names of the files that each file uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Adds a fault for each crate with a cycle.
pub(crate) fn check(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    for name in CRATES {
        if let Some(circle) = circle(&uses(&root.join("crates").join(name).join("src"))?) {
            faults.push(format!(
                "files of {name} depend on each other in a cycle: {}",
                circle.join(", ")
            ));
        }
    }
    Ok(())
}

fn uses(folder: &Path) -> anyhow::Result<Uses> {
    let mut files = Vec::new();
    rust_files(folder, &mut files)?;
    let mut uses = Uses::new();
    for path in files {
        let inside = path.strip_prefix(folder)?;
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        let [first, ..] = parts.as_slice() else { continue };
        let (name, text) = (first.trim_end_matches(".rs"), fs::read_to_string(&path)?);
        let is_test = parts.iter().any(|part| matches!(part.as_ref(), "tests" | "tests.rs"));
        if name != "lib" && !is_test {
            uses.entry(name.to_owned()).or_default().extend(used(&text, name));
        }
    }
    Ok(uses)
}

/// Names after `crate::` in the code of a file, except its tests and its own name.
fn used(text: &str, name: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = lines.flat_map(|line| line.split("crate::").skip(1));
    let names =
        after.filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    names.filter(|used| *used != name).map(str::to_owned).collect()
}

/// Files that remain after removing, repeatedly, files that use no other file or are not used.
fn circle(uses: &Uses) -> Option<Vec<String>> {
    let mut left: BTreeSet<&String> = uses.keys().collect();
    loop {
        let before = left.len();
        let rest = left.clone();
        let is_used = |file: &String| rest.iter().any(|other| uses[*other].contains(file));
        left.retain(|file| uses[*file].iter().any(|used| rest.contains(used)) && is_used(file));
        if left.is_empty() {
            return None;
        }
        if left.len() == before {
            return Some(left.into_iter().cloned().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_and_no_other_file_is_named() {
        let uses = |edges: &[(&str, &[&str])]| -> Uses {
            let set = |used: &[&str]| used.iter().map(|name| (*name).to_owned()).collect();
            edges.iter().map(|(name, used)| ((*name).to_owned(), set(used))).collect()
        };
        let line = uses(&[("a", &["b", "c"]), ("b", &["c", "Type"]), ("c", &[])]);
        assert_eq!(circle(&line), None);
        let ring =
            uses(&[("top", &["a"]), ("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &[])]);
        assert_eq!(circle(&ring).unwrap(), ["a", "b", "c"]);
        assert_eq!(used("use crate::a::B;\n// crate::no\n fn f() { crate::c::d() }\n", "c"), ["a"]);
    }
}
