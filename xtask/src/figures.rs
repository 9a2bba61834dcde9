//! `cargo xtask figures` writes measured figures from `runs/**/summary.json` into the documents.
//!
//! Two places get values: a row of a table in docs/figures.md that begins with the name of a figure, and a link to that
//! page that has the name of a figure as its title. The values are from all samples of the newest run that measured the
//! figure. Every figure that has a target and is from a run with a known commit needs a row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use crate::documents::{between, documents, files_below, read};

/// Page of all figures.
const PAGE: &str = "docs/figures.md";
/// First line of a table of figures.
const HEADER: &str =
    "| figure | unit | median (min–max) | runs | target | | earlier medians | measured |";
/// Markers around the table of runs, and the first line of this table.
const RUNS: [&str; 2] = ["<!-- runs -->\n\n", "<!-- end -->"];
const RUNS_HEADER: &str = "| run | date | machine | commit | commits since |";
/// Number of later commits above which the rows of a run are marked.
const COMMITS_MAX: u64 = 200;
/// Mark of rows of runs with more than [`COMMITS_MAX`] later commits.
const OLD: &str = " †";

/// Folder with a summary.
struct Run {
    folder: String,
    date: String,
    machine: String,
    /// Commit of the measured build, if the summary names it.
    commit: Option<String>,
    figures: Vec<Figure>,
}

struct Figure {
    name: String,
    unit: String,
    samples: Vec<f64>,
    target: Option<Target>,
}

enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// Commit of a run, as the page shows it, and the number of later commits.
type Origin = (String, Option<u64>);

/// Rewrites docs/figures.md and the figures claimed in other documents.
///
/// # Errors
/// If a document names a figure that no run has.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let runs = load(root)?;
    let origins = runs.iter().map(|run| (run.folder.clone(), origin(root, run))).collect();
    for document in documents(root)? {
        let text = read(&document)?;
        let written = written(&document, &text, &runs, &origins).map_err(anyhow::Error::msg)?;
        if written != text {
            fs::write(&document, written)?;
            println!("{} changed", document.strip_prefix(root).unwrap_or(&document).display());
        }
    }
    Ok(())
}

/// Adds a fault for every document whose figures differ from those of the runs. The numbers of later commits are not
/// compared, because each new commit changes them.
///
/// # Errors
/// If a document or a summary cannot be read.
pub(crate) fn check(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let runs = load(root)?;
    let page = read(&root.join(PAGE))?;
    let origins = shown_origins(&page);
    for document in documents(root)? {
        let text = read(&document)?;
        let name = document.strip_prefix(root).unwrap_or(&document).display();
        match written(&document, &text, &runs, &origins) {
            Ok(written) if written == text => {}
            Ok(_) => {
                faults.push(format!("{name} has other figures than runs/: cargo xtask figures"));
            }
            Err(fault) => faults.push(format!("{name}: {fault}")),
        }
    }
    let shown: BTreeSet<&str> = page.lines().filter_map(first_cell).collect();
    for run in runs.iter().filter(|run| run.commit.is_some()) {
        let with_target = run.figures.iter().filter(|figure| figure.target.is_some());
        for figure in with_target.filter(|figure| !shown.contains(figure.name.as_str())) {
            faults.push(format!("{PAGE} has no row of {}, in {}", figure.name, run.folder));
        }
    }
    Ok(())
}

/// Loads all runs with figures, newest first.
fn load(root: &Path) -> anyhow::Result<Vec<Run>> {
    let mut files = Vec::new();
    files_below(&root.join("runs"), &mut files)?;
    let mut runs = Vec::new();
    for file in files.iter().filter(|file| file.ends_with("summary.json")) {
        let summary: Value = serde_json::from_str(&read(file)?)
            .with_context(|| format!("{} is not JSON", file.display()))?;
        runs.extend(run(root, file, &summary));
    }
    runs.sort_by(|one, other| (&other.date, &one.folder).cmp(&(&one.date, &other.folder)));
    Ok(runs)
}

/// Parses a summary. `None` for programs other than `bench`, which have no figures.
fn run(root: &Path, file: &Path, summary: &Value) -> Option<Run> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let figures = summary.get("figures")?.as_array()?.iter().filter_map(|figure| {
        let samples = figure.get("samples")?.as_array()?.iter().filter_map(Value::as_f64);
        let target = figure.get("target").and_then(|target| {
            let least = target.get("AtLeast").and_then(Value::as_f64).map(Target::AtLeast);
            least.or_else(|| target.get("AtMost").and_then(Value::as_f64).map(Target::AtMost))
        });
        let samples = samples.collect::<Vec<f64>>();
        let (name, unit) = (text(figure, "name")?, text(figure, "unit")?);
        (!samples.is_empty()).then_some(Figure { name, unit, samples, target })
    });
    Some(Run {
        folder: file.parent()?.strip_prefix(root).ok()?.to_str()?.to_owned(),
        date: text(summary, "date")?,
        machine: text(summary, "machine")?,
        commit: text(summary, "commit"),
        figures: figures.collect(),
    })
}

/// Returns the commit of a run, according to git. If an old summary does not name it, it is the parent of the commit
/// that added the summary.
fn origin(root: &Path, run: &Run) -> Origin {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    let file = format!("{}/summary.json", run.folder);
    let added = || git(&["log", "-1", "--diff-filter=A", "--format=%h", "--abbrev=8", "--", &file]);
    let Some(commit) = run.commit.clone().or_else(added) else { return ("unknown".into(), None) };
    let clean = commit.trim_end_matches("-dirty");
    let since = git(&["rev-list", "--count", &format!("{clean}..HEAD")]);
    let shown = if run.commit.is_some() { commit } else { format!("before {commit}") };
    (shown, since.and_then(|count| count.parse().ok()))
}

/// Returns the origins that the page shows.
fn shown_origins(page: &str) -> BTreeMap<String, Origin> {
    let rows = between(page, RUNS).unwrap_or_default().lines();
    let origins = rows.filter_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, run, _, _, commit, since, _] = cells.as_slice() else { return None };
        let folder = run.strip_prefix("[")?.split_once(']')?.0;
        Some((format!("runs/{folder}"), ((*commit).to_owned(), since.parse().ok())))
    });
    origins.collect()
}

/// Returns a document with the current figures.
fn written(
    document: &Path,
    text: &str,
    runs: &[Run],
    origins: &BTreeMap<String, Origin>,
) -> Result<String, String> {
    let text = claimed(text, runs)?;
    if !document.ends_with(PAGE) {
        return Ok(text);
    }
    let mut used = BTreeSet::new();
    let mut lines = Vec::new();
    let mut is_table = false;
    for line in text.lines() {
        is_table = line == HEADER || (is_table && line.starts_with('|'));
        lines.push(match first_cell(line).filter(|_| is_table && line != HEADER) {
            Some(name) => row(name, runs, origins, &mut used)?,
            None => line.to_owned(),
        });
    }
    let text = lines.join("\n") + "\n";
    let [start, end] = RUNS;
    let (before, rest) = text.split_once(start).ok_or("the table of runs is missing")?;
    let (_, after) = rest.split_once(end).ok_or("the table of runs has no end")?;
    let mut table = format!("{RUNS_HEADER}\n|---|---|---|---|---|\n");
    for run in runs.iter().filter(|run| used.contains(&run.folder)) {
        let (commit, since) = origins.get(&run.folder).cloned().unwrap_or_default();
        let since = since.map_or("unknown".to_owned(), |since| since.to_string());
        let (link, date, machine) = (link(&run.folder), &run.date, &run.machine);
        table.push_str(&format!("| {link} | {date} | {machine} | {commit} | {since} |\n"));
    }
    Ok(format!("{before}{start}{table}\n{end}{after}"))
}

/// First cell of a row of a table.
fn first_cell(line: &str) -> Option<&str> {
    let (cell, _) = line.strip_prefix("| ")?.split_once(" |")?;
    Some(cell)
}

/// Returns the row of a figure, and adds the run of the figure to `used`.
fn row(
    name: &str,
    runs: &[Run],
    origins: &BTreeMap<String, Origin>,
    used: &mut BTreeSet<String>,
) -> Result<String, String> {
    let mut measured = measurements(name, runs);
    let (run, figure) = measured.next().ok_or_else(|| format!("no run has the figure {name}"))?;
    let (factor, unit) = scale(figure.median(), &figure.unit);
    let earlier: Vec<String> =
        measured.map(|(_, figure)| rounded(figure.median() / factor)).collect();
    used.insert(run.folder.clone());
    let since = origins.get(&run.folder).and_then(|(_, since)| *since);
    let (target, verdict) = figure.verdict(factor);
    Ok(format!(
        "| {name} | {unit} | {} | {} | {target} | {verdict} | {} | {}{} |",
        figure.values(factor, true),
        figure.samples.len(),
        earlier.join(", "),
        link(&run.folder),
        if since.is_some_and(|since| since <= COMMITS_MAX) { "" } else { OLD },
    ))
}

/// Measurements of a figure, newest first.
fn measurements<'r>(name: &str, runs: &'r [Run]) -> impl Iterator<Item = (&'r Run, &'r Figure)> {
    runs.iter()
        .filter_map(move |run| Some((run, run.figures.iter().find(|figure| figure.name == name)?)))
}

fn link(folder: &str) -> String {
    format!("[{}](../{folder})", folder.trim_start_matches("runs/"))
}

/// Replaces the texts of links to the page of figures by the values of the figures that are named in the titles.
fn claimed(text: &str, runs: &[Run]) -> Result<String, String> {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("figures.md") {
        let title = after.trim_start().strip_prefix('"').and_then(|title| title.split_once('"'));
        match title {
            None => written.push_str(before),
            Some((title, _)) => {
                let (start, value, end) = link_text(before).ok_or("a figure without a link")?;
                let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                let name = one_line(title);
                let measured = measurements(&name, runs).next();
                let (_, figure) =
                    measured.ok_or_else(|| format!("no run has the figure {name}"))?;
                let claim = figure.claim(value.contains('–'));
                // Keep a correct value, which may be wrapped over two lines.
                let claim = if one_line(value) == claim { value } else { &claim };
                written.push_str(&format!("{start}{claim}{end}"));
            }
        }
        written.push_str("figures.md");
        rest = after;
    }
    Ok(written + rest)
}

/// Splits the text before the target of a link: the text before the link, the link text, and the rest.
fn link_text(before: &str) -> Option<(&str, &str, &str)> {
    let (start, end) = before.split_at(before.rfind("](")?);
    let (start, value) = start.split_at(start.rfind('[')? + 1);
    Some((start, value, end))
}

impl Figure {
    fn sorted(&self) -> Vec<f64> {
        let mut samples = self.samples.clone();
        samples.sort_by(f64::total_cmp);
        samples
    }

    fn median(&self) -> f64 {
        let sorted = self.sorted();
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            at(middle)
        } else {
            (at(middle.saturating_sub(1)) + at(middle)) / 2.0
        }
    }

    /// Formats the median, and the range of all samples if there are several.
    fn values(&self, factor: f64, has_range: bool) -> String {
        let median = rounded(self.median() / factor);
        match self.sorted().as_slice() {
            [least, .., most] if has_range => {
                format!("{median} ({}–{})", rounded(least / factor), rounded(most / factor))
            }
            _ => median,
        }
    }

    /// Formats the value with its unit. Rates and ratios get no unit, because the sentence names what they count.
    fn claim(&self, has_range: bool) -> String {
        let (factor, unit) = scale(self.median(), &self.unit);
        let (space, unit) = if matches!(unit, "" | "per second") { ("", "") } else { (" ", unit) };
        let values = self.values(factor, has_range);
        match values.split_once(" (") {
            Some((median, range)) => format!("{median}{space}{unit} ({range}"),
            None => format!("{values}{space}{unit}"),
        }
    }

    /// Target, and whether the median meets it.
    fn verdict(&self, factor: f64) -> (String, &'static str) {
        let (sign, target, is_met) = match self.target {
            None => return (String::new(), ""),
            Some(Target::AtLeast(least)) => ("≥", least, self.median() >= least),
            Some(Target::AtMost(most)) => ("≤", most, self.median() <= most),
        };
        let target = format!("{sign} {}", grouped(&(target / factor).to_string()));
        (target, if is_met { "met" } else { "missed" })
    }
}

/// Returns the divisor and the unit with which a value is easy to read.
fn scale(value: f64, unit: &str) -> (f64, &str) {
    let is_large = value.abs() >= 1_000.0;
    match unit {
        "ns" if is_large => (1e3, "µs"),
        "us" if is_large => (1e3, "ms"),
        "us" => (1.0, "µs"),
        "ms" if is_large => (1e3, "s"),
        "MB" if is_large => (1e3, "GB"),
        "1/s" => (1.0, "per second"),
        "ratio" => (1.0, ""),
        _ => (1.0, unit),
    }
}

/// Rounds to two significant digits; to three if the value is at least 100.
fn rounded(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let size = value.abs().log10().floor() as i32;
    let decimals = if size >= 2 { 2 - size } else { 1 - size };
    if decimals > 0 {
        return format!("{value:.0$}", decimals.unsigned_abs() as usize);
    }
    let step = 10f64.powi(-decimals);
    grouped(&((value / step).round() * step).to_string())
}

/// Inserts commas between thousands.
fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn measured(folder: &str, date: &str, commit: Option<&str>, samples: &[f64]) -> Run {
        let root = PathBuf::from("/repository");
        let summary = serde_json::json!({
            "machine": "2 cores", "date": date, "commit": commit,
            "figures": [{"name": "posts", "unit": "1/s", "samples": samples, "target": {"AtLeast": 25_000.0}}],
        });
        run(&root, &root.join(folder).join("summary.json"), &summary).unwrap()
    }

    #[test]
    fn the_newest_run_counts_with_all_its_samples() {
        let runs = [
            measured("runs/b", "2026-02-02", Some("beef"), &[30_000.0, 19_000.0, 20_000.0]),
            measured("runs/a", "2026-01-01", None, &[40_000.0]),
        ];
        let page = format!("{HEADER}\n|---|\n| posts | 41 |\n\n<!-- runs -->\n\n<!-- end -->\n");
        let origins = BTreeMap::from([("runs/b".to_owned(), ("beef".to_owned(), Some(201)))]);
        let path = Path::new("/repository/docs/figures.md");
        let once = written(path, &page, &runs, &origins).unwrap();
        let row = "| posts | per second | 20,000 (19,000–30,000) | 3 | ≥ 25,000 | missed | 40,000 | [b](../runs/b) † |";
        assert_eq!(once.lines().nth(2), Some(row));
        assert!(
            once.contains("\n| [b](../runs/b) | 2026-02-02 | 2 cores | beef | 201 |\n"),
            "{once}"
        );
        assert_eq!(shown_origins(&once), origins);
        assert_eq!(written(path, &once, &runs, &origins).unwrap(), once);
        let unknown = page.replace("posts", "likes");
        assert_eq!(
            written(path, &unknown, &runs, &origins).unwrap_err(),
            "no run has the figure likes"
        );
    }

    #[test]
    fn a_claim_is_the_text_of_a_link() {
        let runs = [measured("runs/b", "2026-02-02", None, &[30_000.0, 19_000.0, 20_000.0])];
        let text = |one: &str, other: &str| {
            format!(
                "It does [{one}](docs/figures.md \"posts\"), or\n[{other}](figures.md\n\"posts\"), figures.md."
            )
        };
        let before = text("1", "2 (1–3)");
        let after = text("20,000", "20,000 (19,000–30,000)");
        assert_eq!(claimed(&before, &runs).unwrap(), after);
        let divided = after.replace("20,000 (", "20,000\n(");
        assert_eq!(claimed(&divided, &runs).unwrap(), divided);
        assert!(claimed("[1](figures.md \"likes\")", &runs).is_err());
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.816, "0.82"),
            (4.25, "4.2"),
            (99.4, "99"),
            (648.3, "648"),
            (67_340.6, "67,300"),
            (1_094_000.0, "1,090,000"),
            (-1_234.0, "-1,230"),
        ] {
            assert_eq!(rounded(value), text);
        }
        let memory = Figure {
            name: String::new(),
            unit: "MB".into(),
            samples: vec![1_000.0, 2_000.0],
            target: None,
        };
        assert_eq!([memory.claim(true), memory.claim(false)], ["1.5 GB (1.0–2.0)", "1.5 GB"]);
    }
}
