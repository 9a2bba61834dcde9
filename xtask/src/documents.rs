//! Compares documents with the code: the picture of the crates, the path of a request, names of files, and links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::tidy::rust_files;

/// Document about former versions. It may name files that were removed.
const HISTORY: &str = "CHANGELOG.md";
/// Markers around the picture of the crates in ARCHITECTURE.md.
const PICTURE: [&str; 2] = ["<!-- crates -->\n\n", "\n<!-- end -->"];
/// Markers around the path of a request.
const WAY: [&str; 2] = ["<!-- request -->\n\n", "\n<!-- end -->"];
/// Folder of the records of decisions, and its index.
const DECISIONS: &str = "docs/decisions";
const INDEX: &str = "README.md";
/// Maximum size of some documents, in bytes.
const BYTES_MAX: [(&str, usize); 3] =
    [("ARCHITECTURE.md", 20_480), ("CHANGELOG.md", 6_144), ("DESIGN.md", 15_000)];
/// Maximum length of some documents, in lines.
const LINES_MAX: [(&str, usize); 2] = [("README.md", 100), ("docs/api.md", 225)];
/// Beginnings of the first and the last paragraph of each page in `docs/`.
const PAGE: [&str; 2] = ["This page is for ", "This page does not "];
/// Maximum size of a decision record, in bytes.
const RECORD_BYTES_MAX: usize = 4_096;
/// Required parts of a decision record.
const RECORD_PARTS: [&str; 4] = ["\nDecided 20", "\n**Question", "\n**Decision", "\n**Look again"];

/// Adds a fault for every difference. `edges` are the crates and what each uses.
///
/// # Errors
/// If a document cannot be read.
pub(crate) fn check(
    root: &Path,
    edges: &[(&str, &[&str])],
    faults: &mut Vec<String>,
) -> anyhow::Result<()> {
    let architecture = read(&root.join("ARCHITECTURE.md"))?;
    let drawn = picture(edges);
    if between(&architecture, PICTURE) != Some(&drawn) {
        faults.push(format!("ARCHITECTURE.md has another picture of the crates than:\n{drawn}"));
    }
    for line in between(&architecture, WAY).unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        let (Some(file), Some(function)) = (words.next(), words.next()) else { continue };
        let text = read(&root.join("crates").join(file)).unwrap_or_default();
        let name = function.rsplit("::").next().unwrap_or(function);
        if !text.contains(&format!("fn {name}")) {
            faults.push(format!("ARCHITECTURE.md: there is no {function} in {file}"));
        }
    }
    dependencies(root, faults)?;
    decisions(root, faults)?;
    sizes(root, faults)?;
    pages(root, faults)?;
    let (functions, constants) = declared(root)?;
    let mut files = Vec::new();
    for folder in ["bench", "crates", "docs", "e2e", "runs", "xtask"] {
        files_below(&root.join(folder), &mut files)?;
    }
    for document in documents(root)? {
        let (name, text) = (document.strip_prefix(root).unwrap_or(&document), read(&document)?);
        let is_history = name == Path::new(HISTORY);
        for file in files_named(&text).into_iter().filter(|_| !is_history) {
            if !files.iter().any(|path| path.ends_with(&file)) {
                faults.push(format!("{}: there is no file {file}", name.display()));
            }
        }
        for run in runs_named(&text) {
            if !root.join(&run).exists() {
                faults.push(format!("{}: there is no {run}", name.display()));
            }
        }
        let wrong = wrong_names(&text, &functions, &constants);
        faults.extend(wrong.into_iter().map(|fault| format!("{}: {fault}", name.display())));
        for link in links(&text) {
            if let Some(fault) = broken(&document, &text, &link) {
                faults.push(format!("{}: the link {link} {fault}", name.display()));
            }
        }
    }
    Ok(())
}

/// Constants: name and value.
type Constants = BTreeSet<(String, String)>;

/// Returns the names of all functions and modules of the crates, and all constants with their values as written in
/// tables.
fn declared(root: &Path) -> anyhow::Result<(BTreeSet<String>, Constants)> {
    let mut files = Vec::new();
    rust_files(&root.join("crates"), &mut files)?;
    let (mut names, mut constants) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        let text = read(&file)?;
        let functions = ["fn ", "mod "].map(|word| text.split(word).skip(1));
        let functions = functions
            .into_iter()
            .flatten()
            .filter_map(|rest| rest.split(['(', ' ', ';', '<']).next());
        names.extend(functions.map(str::to_owned));
        constants.extend(text.lines().filter_map(constant));
    }
    Ok((names, constants))
}

/// Returns the name and value of a numeric constant. The value has commas; if it is shifted, it is in KiB, MiB or GiB.
fn constant(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.split_once("const ")?.1.split_once(": ")?;
    let value = rest.split_once(" = ")?.1.strip_suffix(';')?;
    let (number, unit) = match value.split_once(" << ") {
        None => (value, ""),
        Some((number, "10")) => (number, " KiB"),
        Some((number, "20")) => (number, " MiB"),
        Some((number, "30")) => (number, " GiB"),
        Some(_) => return None,
    };
    let is_number = number.chars().all(|c| c.is_ascii_digit() || c == '_');
    is_number.then(|| (name.to_owned(), number.replace('_', ",") + unit))
}

/// Whether a row contains this number, other than as a part of a longer number.
fn has_number(row: &str, number: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || c == ',';
    row.match_indices(number).any(|(at, _)| {
        let (before, rest) = row.split_at(at);
        !before.ends_with(is_part)
            && !rest.trim_start_matches(number).starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Returns the constants that rows of tables name, each with its row.
fn constants_named(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter(|row| row.starts_with('|'));
    let named = rows.flat_map(|row| row.split('`').skip(1).step_by(2).map(move |name| (name, row)));
    let is_constant = |name: &str| {
        name.ends_with("_MAX") && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    named.filter(|(name, _)| is_constant(name)).collect()
}

/// Returns the faults in rows of tables: names of tests that do not exist, and wrong values of constants.
fn wrong_names(text: &str, functions: &BTreeSet<String>, constants: &Constants) -> Vec<String> {
    let mut faults = Vec::new();
    for test in tests_named(text) {
        let is_named = |function: &String| match test.strip_suffix('…') {
            Some(begin) => function.starts_with(begin),
            None => *function == test,
        };
        if !functions.iter().any(is_named) {
            faults.push(format!("there is no test {test}"));
        }
    }
    for (constant, row) in constants_named(text) {
        let mut declared = constants.iter().filter(|(name, _)| name == constant);
        if !declared.any(|(_, value)| has_number(row, value)) {
            faults.push(format!("{constant} has another value than in {row}"));
        }
    }
    faults
}

/// Returns the functions in the last column of tables with the heading "test". A "…" at the end of a name matches any
/// rest.
fn tests_named(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_table = false;
    for row in text.lines() {
        is_table = row.starts_with('|') && (is_table || row.ends_with("| test |"));
        let last = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().filter(|_| is_table);
        let names = last.unwrap_or_default().split('`').skip(1).step_by(2);
        let is_function = |name: &&str| {
            name.contains('_')
                && !name.contains(|c: char| !c.is_ascii_alphanumeric() && !"_…".contains(c))
        };
        found.extend(names.filter(is_function).map(str::to_owned));
    }
    found
}

/// Checks that no document is longer than its limit.
fn sizes(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    for (name, bytes_max) in BYTES_MAX {
        let bytes = read(&root.join(name))?.len();
        if bytes > bytes_max {
            faults.push(format!("{name} has {bytes} bytes, {bytes_max} at most"));
        }
    }
    for (name, lines_max) in LINES_MAX {
        let lines = read(&root.join(name))?.lines().count();
        if lines > lines_max {
            faults.push(format!("{name} has {lines} lines, {lines_max} at most"));
        }
    }
    Ok(())
}

/// Checks that each page says what it is for and what it is not for, and is in the list of pages.
fn pages(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let list = read(&root.join("docs").join(INDEX))?;
    for page in documents(root)?.iter().filter(|page| page.parent() == Some(&root.join("docs"))) {
        let (text, name) = (read(page)?, page.file_name().unwrap_or_default().display());
        let paragraphs: Vec<&str> = text.trim_end().split("\n\n").skip(1).collect();
        let found =
            [paragraphs.first(), paragraphs.last()].map(|found| found.copied().unwrap_or_default());
        for (paragraph, begins) in found.iter().zip(PAGE) {
            if !paragraph.starts_with(begins) {
                faults.push(format!("docs/{name}: \"{begins}\" does not begin {paragraph:?}"));
            }
        }
        if !list.contains(&format!("]({name}")) && *page != root.join("docs").join(INDEX) {
            faults.push(format!("docs/{INDEX} does not list {name}"));
        }
    }
    Ok(())
}

/// Documents at the root, in `docs/`, and the decision records.
pub(crate) fn documents(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in [root.to_owned(), root.join("docs"), root.join(DECISIONS)] {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Targets of the links of a document.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let targets =
        targets.filter_map(|(target, _)| target.split_whitespace().next().map(str::to_owned));
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// Reason why a link of a document is broken, if it is.
fn broken(document: &Path, text: &str, link: &str) -> Option<&'static str> {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, at)| (file, Some(at)));
    let path = document.parent()?.join(file);
    if !file.is_empty() && !path.exists() {
        return Some("leads to no file");
    }
    let anchor = anchor.filter(|_| file.is_empty() || file.ends_with(".md"))?;
    let other = if file.is_empty() { None } else { fs::read_to_string(path).ok() };
    let known = anchors(other.as_deref().unwrap_or(text));
    (!known.contains(anchor)).then_some("leads to no heading")
}

/// Returns the anchors of the headings, as GitHub generates them: a repeated heading gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_block = false;
    for line in text.lines() {
        is_block ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_block || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(numbered);
        found.extend(names.find(|name| !found.contains(name)));
    }
    found
}

/// Files and folders of raw data that a document names.
fn runs_named(text: &str) -> BTreeSet<String> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c));
    let named = text.match_indices("runs/20").filter_map(|(at, _)| {
        // In `gone/runs/...`, this is another folder.
        let is_begin = !text.get(..at)?.ends_with(|c: char| c.is_alphanumeric() || c == '/');
        let rest = text.get(at..).filter(|_| is_begin)?;
        let name = rest.get(..rest.find(is_end).unwrap_or(rest.len()))?;
        let is_pattern = rest.get(name.len()..)?.starts_with(['*', '{', '<']);
        (!is_pattern).then(|| name.trim_end_matches(['.', '/']).to_owned())
    });
    named.collect()
}

pub(crate) fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() {
            found.push(path);
        } else if !path.ends_with("node_modules") {
            files_below(&path, found)?;
        }
    }
    Ok(())
}

/// Checks the shape of each decision record, and that the index lists it.
fn decisions(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let index = read(&root.join(DECISIONS).join(INDEX))?;
    for entry in fs::read_dir(root.join(DECISIONS))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == INDEX {
            continue;
        }
        for fault in record_faults(&name, &read(&path)?, &index) {
            faults.push(format!("{DECISIONS}/{name}: {fault}"));
        }
    }
    Ok(())
}

/// Faults of a record `NNNN-name.md`.
fn record_faults(name: &str, text: &str, index: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let number = name.split('-').next().unwrap_or_default();
    let title = text.lines().next().and_then(|line| line.strip_prefix(&format!("# {number}: ")));
    if number.len() != 4 || title.is_none() {
        faults.push(format!("the heading is not `# {number}: ...`"));
    }
    if !index.contains(&format!("[{number}]({name}) {}", title.unwrap_or_default())) {
        faults.push("the index does not list it with its heading".to_owned());
    }
    for part in RECORD_PARTS.into_iter().filter(|part| !text.contains(part)) {
        faults.push(format!("there is no {}", part.trim().trim_matches('*')));
    }
    if text.len() > RECORD_BYTES_MAX {
        faults.push(format!("{} bytes, {RECORD_BYTES_MAX} at most", text.len()));
    }
    faults
}

/// Checks that docs/dependencies.md has a line for every dependency, and no other lines.
fn dependencies(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let page = read(&root.join("docs/dependencies.md"))?;
    let section = |text: &str, start: &str, end: &str| {
        let rest = text.split_once(start).map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        rest.split_once(end).map_or(rest.clone(), |(inside, _)| inside.to_owned())
    };
    let listed = section(&manifest, "[workspace.dependencies]\n", "\n[");
    let used: BTreeSet<&str> = listed
        .lines()
        .filter(|line| !line.contains("path = "))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let explained: BTreeSet<&str> =
        rows.flat_map(|(names, _)| names.split(", ")).filter(|name| *name != "crate").collect();
    for name in used.difference(&explained) {
        faults.push(format!("docs/dependencies.md does not list {name}"));
    }
    for name in explained.difference(&used) {
        faults.push(format!(
            "docs/dependencies.md lists {name}, which is no dependency of the workspace"
        ));
    }
    Ok(())
}

pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(crate) fn between<'t>(text: &'t str, [start, end]: [&str; 2]) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inside, _)| inside)
}

/// Draws the crates as layers, highest first. A crate uses only crates of lower layers. Each line has a crate and the
/// crates that it uses.
fn picture(edges: &[(&str, &[&str])]) -> String {
    let uses: BTreeMap<&str, &[&str]> = edges.iter().copied().collect();
    let mut layers: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for name in uses.keys() {
        layers.entry(layer(name, &uses)).or_default().push(name);
    }
    let mut text = String::new();
    for names in layers.values().rev() {
        for name in names {
            let used = uses.get(name).map(|used| used.join(" ")).unwrap_or_default();
            text.push_str(format!("    {name:<10} {used}").trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    format!("{}\n", text.trim_end())
}

/// Returns the layer of a crate: the length of the longest chain of uses below it.
fn layer(name: &str, uses: &BTreeMap<&str, &[&str]>) -> usize {
    let used = uses.get(name).copied().unwrap_or_default();
    used.iter().map(|used| 1 + layer(used, uses)).max().unwrap_or(0)
}

/// Returns the paths between backticks that contain a folder. Expands `{a,b}`.
fn files_named(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let plain = quoted.filter(|name| {
        let ending = name.rsplit('.').next().unwrap_or_default();
        let kinds = ["rs", "md", "txt", "toml", "mjs", "js", "py"];
        name.contains('/')
            && kinds.contains(&ending)
            && !name.contains(|odd: char| odd.is_whitespace() || "<>*:$#?".contains(odd))
            && !name.starts_with('/')
    });
    plain.flat_map(expand).collect()
}

fn expand(name: &str) -> Vec<String> {
    let braces = name.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    match braces {
        None => vec![name.to_owned()],
        Some((before, inside, after)) => {
            inside.split(',').map(|part| format!("{before}{part}{after}")).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_drawn_above_what_they_use() {
        let edges: [(&str, &[&str]); 4] =
            [("base", &[]), ("top", &["middle", "base"]), ("middle", &["base"]), ("alone", &[])];
        let drawn = "    top        middle base\n\n    middle     base\n\n    alone\n    base\n";
        assert_eq!(picture(&edges), drawn);
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        let folder = std::env::temp_dir().join(format!("xtask-links-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = "# A `b`: c?\n\n# Two\n\n# Two\n\n```\n# no heading\n```\n";
        fs::write(folder.join("other.md"), text).unwrap();
        for (link, expect) in [
            ("#a-b-c", None),
            ("#two-1", None),
            ("#no-heading", Some("leads to no heading")),
            ("other.md", None),
            ("other.md#two", None),
            ("other.md#three", Some("leads to no heading")),
            ("none.md", Some("leads to no file")),
        ] {
            assert_eq!(broken(&folder.join("this.md"), text, link), expect, "{link}");
        }
        fs::remove_dir_all(&folder).unwrap();
        let text = "[a](b.md#c \"i\"), [d](https://e.example/f), [g](#h)";
        assert_eq!(links(text), ["b.md#c", "#h"]);
    }

    #[test]
    fn a_record_has_its_parts_and_is_in_the_index() {
        let text = "# 0001: A\n\nDecided 2026-01-02.\n\n**Question.** B\n\n**Decision, c.** D\n\n**Look again** if E.\n";
        let index = "| [0001](0001-a.md) A | 2026-01-02 |";
        assert_eq!(record_faults("0001-a.md", text, index), Vec::<String>::new());
        assert_eq!(record_faults("0002-a.md", text, index).len(), 2);
        assert_eq!(
            record_faults("0001-a.md", text, ""),
            ["the index does not list it with its heading"]
        );
        let shorter = text.replace("**Look again** if E.", "");
        assert_eq!(record_faults("0001-a.md", &shorter, index), ["there is no Look again"]);
        let longer = format!("{text}{}", "x".repeat(RECORD_BYTES_MAX));
        assert_eq!(record_faults("0001-a.md", &longer, index).len(), 1);
    }

    #[test]
    fn raw_data_are_found_anywhere() {
        let text = "in runs/2026-01-02-a, (`runs/2026-01-03-b/x.csv`), runs/2026-*, runs/DATE-c.";
        let found: Vec<String> = runs_named(text).into_iter().collect();
        assert_eq!(found, ["runs/2026-01-02-a", "runs/2026-01-03-b/x.csv"]);
    }

    #[test]
    fn constants_are_compared_as_tables_show_them() {
        for (line, expect) in [
            ("pub const FOLLOWS_MAX: u32 = 7_500;", Some(("FOLLOWS_MAX", "7,500"))),
            ("    const FILE_MAX: u64 = 16 << 20;", Some(("FILE_MAX", "16 MiB"))),
            ("const TEXT: &str = \"a\";", None),
            ("const SUM: u32 = A + 1;", None),
        ] {
            let expect = expect.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(constant(line), expect, "{line}");
        }
        assert_eq!(
            constants_named("`A_MAX`\n| `B_MAX` of `x_MAX` |"),
            [("B_MAX", "| `B_MAX` of `x_MAX` |")]
        );
    }

    #[test]
    fn tests_are_found_in_the_last_column() {
        let text = "| limit | test |\n|---|---|\n| `a_b` | `c_d`, `e_f…`, `g::h`, `i/j_k.rs` |\n\n| x | `l_m` |\n";
        let found: Vec<String> = tests_named(text).into_iter().collect();
        assert_eq!(found, ["c_d", "e_f…"]);
    }

    #[test]
    fn files_are_found_between_backticks() {
        let text =
            "See `a/b.rs`, `c.rs`, `x/{y,z}.md`, `<noun>/d.rs`, `http://e/f.js` and `g h/i.py`.";
        assert_eq!(files_named(text), ["a/b.rs", "x/y.md", "x/z.md"]);
    }
}
