//! Finds cyclic dependencies between the files of a crate, because such files can be understood only together. A folder
//! counts as one file, except folders of features: their rules use mechanisms that in turn use their records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::tidy::rust_files;

/// Crates without cycles.
const CRATES: [&str; 18] = [
    "api",
    "backup",
    "commitlog",
    "edge",
    "feed",
    "knn",
    "kv",
    "media",
    "node",
    "rank",
    "redis",
    "resp",
    "roost",
    "rows",
    "sim",
    "store",
    "testkit",
    "web",
];

/// Crates whose folders are features.
const WITH_FEATURES: [&str; 1] = ["feed"];

/// Names of the files that each file uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Adds a fault for each crate with a cycle.
pub(crate) fn check(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    for name in CRATES {
        let folder = root.join("crates").join(name).join("src");
        if let Some(circle) = circle(&uses(&folder, WITH_FEATURES.contains(&name))?) {
            faults.push(format!(
                "files of {name} depend on each other in a cycle: {}",
                circle.join(", ")
            ));
        }
    }
    Ok(())
}

fn uses(folder: &Path, by_file: bool) -> anyhow::Result<Uses> {
    let mut files = Vec::new();
    rust_files(folder, &mut files)?;
    let mut texts = BTreeMap::<String, String>::new();
    for path in files {
        let inside = path.strip_prefix(folder)?;
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        let is_test = parts.iter().any(|part| matches!(part.as_ref(), "tests" | "tests.rs"));
        let shown = if by_file {
            parts.join("::")
        } else {
            parts.first().cloned().unwrap_or_default().into()
        };
        let name = shown.trim_end_matches(".rs").trim_end_matches("::mod").to_owned();
        if name != "lib" && !is_test {
            texts.entry(name).or_default().push_str(&code(&fs::read_to_string(&path)?));
        }
    }
    let used = |(name, text): (&String, &String)| {
        let of_others = texts.keys().filter(|file| root_of(file) != root_of(name));
        (name.clone(), of_others.filter(|file| is_used(file, text)).cloned().collect())
    };
    Ok(texts.iter().map(used).collect())
}

/// The code of a file, without comments and tests.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The folder of a file, or its own name.
fn root_of(file: &str) -> &str {
    file.split("::").next().unwrap_or_default()
}

/// Whether code names a file: a file in a folder by any path, any other file after `crate::`.
fn is_used(file: &str, code: &str) -> bool {
    let path = if file.contains("::") { file.to_owned() } else { format!("crate::{file}") };
    let is_name = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    code.split(&path).skip(1).any(|rest| !is_name(rest))
}

/// Removes files that use no other file or are not used, repeatedly. Returns the remaining files, if there are any.
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
        let text = code("use crate::a::B;\n// crate::no\n fn f() { c::rules::d() }\n");
        let used: Vec<_> =
            ["a", "no", "c", "c::rules"].into_iter().filter(|file| is_used(file, &text)).collect();
        assert_eq!(used, ["a", "c::rules"]);
    }
}
