//! Checks the structure of the sources: crate edges, cycles, file lengths, file headers, and openings of doc comments.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::{circles, documents, figures};

/// Longest file of product code, in lines.
const LINES_MAX: usize = 1_000;
/// First words that a doc comment must not have: with them, it answers a question that its reader has to guess.
const NOT_FIRST: [&str; 12] =
    ["Of", "What", "Who", "Which", "Whom", "That", "As", "Without", "With", "In", "By", "If"];
/// Crates of this repository that each crate may use. ARCHITECTURE.md gives the reasons.
const EDGES: [(&str, &[&str]); 31] = [
    ("allocator", &[]),
    ("backup", &[]),
    ("budget", &[]),
    ("commitlog", &[]),
    ("jetlog", &["commitlog"]),
    ("rows", &[]),
    ("feed", &["rows"]),
    ("kv", &["rows"]),
    ("knn", &[]),
    ("rank", &[]),
    ("resp", &[]),
    ("store", &["kv", "rows"]),
    (
        "node",
        &["backup", "budget", "commitlog", "feed", "knn", "kv", "media", "rank", "rows", "store"],
    ),
    ("edge", &["budget"]),
    (
        "api",
        &["backup", "budget", "edge", "feed", "knn", "kv", "media", "node", "rank", "webhooks"],
    ),
    ("redis", &["budget", "edge", "kv", "node", "resp"]),
    ("media", &[]),
    ("mastodon", &["budget", "edge", "feed", "media", "node"]),
    ("web", &["edge"]),
    ("webhooks", &[]),
    ("stats", &[]),
    ("charts", &["stats"]),
    ("sim", &["charts", "stats"]),
    ("lab", &["charts", "feed", "knn", "kv", "node", "sim", "stats"]),
    (
        "roost",
        &[
            "allocator",
            "api",
            "backup",
            "edge",
            "feed",
            "jetlog",
            "knn",
            "lab",
            "mastodon",
            "media",
            "node",
            "redis",
            "sim",
            "web",
            "webhooks",
        ],
    ),
    (
        "bench",
        &[
            "allocator",
            "charts",
            "feed",
            "knn",
            "kv",
            "mastodon",
            "node",
            "sim",
            "stats",
            "testkit",
        ],
    ),
    ("xtask", &[]),
    // These are only for tests, and no other crate may depend on them.
    ("testkit", &["commitlog", "kv", "rows"]),
    ("powerloss", &[]),
    (
        "fuzz",
        &[
            "api",
            "commitlog",
            "edge",
            "feed",
            "knn",
            "kv",
            "mastodon",
            "node",
            "redis",
            "resp",
            "testkit",
            "web",
            "webhooks",
        ],
    ),
    ("dst", &["allocator", "commitlog", "feed", "kv", "node", "rows", "store", "testkit"]),
];

/// Checks the tree at `root`.
///
/// # Errors
/// Lists every violation.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    println!("\n==> tidy");
    let mut faults = Vec::new();
    edges(root, &mut faults)?;
    documents::check(root, &EDGES, &mut faults)?;
    circles::check(root, &mut faults)?;
    figures::check(root, &mut faults)?;
    let mut files = Vec::new();
    for folder in ["crates", "bench", "xtask", "fuzz"] {
        rust_files(&root.join(folder), &mut files)?;
    }
    for file in &files {
        let text = fs::read_to_string(file)?;
        let name = file.strip_prefix(root).unwrap_or(file).display();
        if !text.starts_with("//!") {
            faults.push(format!("{name} does not begin with a //! header"));
        }
        faults.extend(openings(&text).map(|(line, word)| {
            format!("{name}:{line} begins with {word:?}: name the thing, or begin with a verb")
        }));
        let is_product = file.starts_with(root.join("crates"))
            && file.components().any(|part| part.as_os_str() == "src");
        let is_tool =
            ["dst", "testkit"].iter().any(|tool| file.starts_with(root.join("crates").join(tool)));
        if is_product && !is_tool && !file.ends_with("tests.rs") {
            faults.extend(prints(&text).map(|line| {
                format!(
                    "{name}:{line} prints with a macro that panics: see crates/roost/src/output.rs"
                )
            }));
        }
        let lines = text.lines().count();
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        if lines > LINES_MAX && !is_test {
            faults.push(format!("{name} has {lines} lines; {LINES_MAX} at most"));
        }
    }
    if faults.is_empty() {
        println!("{} files, {} crates", files.len(), EDGES.len());
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// Compares the dependencies in the manifests with [`EDGES`], except dependencies of tests. Checks that only the
/// manifest of the workspace has features of dependencies.
fn edges(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let ours: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in EDGES {
        let folder = if ours_at_root(name) { root.to_owned() } else { root.join("crates") };
        let manifest = folder.join(name).join("Cargo.toml");
        let text = fs::read_to_string(&manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        let mut section = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let forbidden = ours.contains(used) && !allowed.contains(&used);
            if section == "[dependencies]" && forbidden {
                faults.push(format!("{name} must not use {used}"));
            }
            // Otherwise, if a crate is built alone, its dependencies are built again with fewer features.
            if !ours.contains(used)
                && line.contains("workspace = true")
                && line.contains("features")
            {
                faults.push(format!(
                    "{name}: the features of {used} belong in the workspace's Cargo.toml"
                ));
            }
        }
    }
    for entry in fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name();
        if !ours.contains(name.to_string_lossy().as_ref()) {
            faults.push(format!("crate {} has no edges in xtask/src/tidy.rs", name.display()));
        }
    }
    Ok(())
}

/// Numbers of the lines before a file's tests that use a printing macro. Such a macro panics if the output is closed.
fn prints(text: &str) -> impl Iterator<Item = usize> {
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let panics = |line: &str| line.contains("println!(") || line.contains("print!(");
    lines.zip(1..).filter(move |(line, _)| panics(line)).map(|(_, number)| number)
}

/// Returns the doc comments that begin with a word of [`NOT_FIRST`]: the number of the line, and the word.
fn openings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut before = None;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let marked = |marker: &'static str| Some((marker, line.trim_start().strip_prefix(marker)?));
        let found = ["///", "//!"].into_iter().find_map(marked);
        let marker = found.map(|(marker, _)| marker);
        let is_first = std::mem::replace(&mut before, marker) != marker;
        let (_, comment) = found.filter(|_| is_first)?;
        let word = comment.trim_start().split(|c: char| !c.is_alphanumeric()).next()?;
        NOT_FIRST.contains(&word).then_some((number, word))
    })
}

fn ours_at_root(name: &str) -> bool {
    matches!(name, "bench" | "fuzz" | "xtask")
}

/// Adds all Rust files below `folder` to `found`.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_names_a_thing_or_begins_with_a_verb() {
        for (text, expected) in [
            ("//! Of the crate.\n\n/// Reads a file.\nfn a() {}", vec![(1, "Of")]),
            ("/// Number of posts.\n/// What a line begins with does not count.\na: u32,", vec![]),
            (
                "    /// If there is one.\n    b: u8,\n    /// As `b`.\n    c: u8,",
                vec![(1, "If"), (3, "As")],
            ),
            ("/// Inserts a row.\n///\n/// # Errors\n/// If it exists.\nfn d() {}", vec![]),
            ("//! A module.\n/// In a file.\nmod e {}\n// Who reads this?", vec![(2, "In")]),
            ("/// Whether it is empty.\n/// `As` is a keyword.\nf: bool,", vec![]),
        ] {
            assert_eq!(openings(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
