//! The files of a report. Each is replaced atomically, so a reader never sees a partial file.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use charts::html::address;

use super::Recording;
use crate::capacity::{Capacity, Trial, Verdict};
use crate::feeds::Evaluation;
use crate::hgrm;
use crate::slo::Latency;
use crate::summary::Summary;
use crate::watch::Window;

/// Latency units per millisecond: latencies are recorded in microseconds.
const PER_MS: f64 = 1_000.0;

/// Link in the report to a file of raw data.
pub(super) struct DataLink {
    /// Text of the link.
    pub(super) name: String,
    /// Address of the file, relative to the report.
    pub(super) address: String,
}

/// Folder for the raw data of the report at `path`.
pub(super) fn data_folder(path: &Path) -> io::Result<PathBuf> {
    let Some(stem) = path.file_stem() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a report needs a file name"));
    };
    let mut name = stem.to_owned();
    name.push("-data");
    Ok(path.with_file_name(name))
}

/// File of raw data: its name and contents.
pub(super) type Data = (String, Vec<u8>);

/// The raw data of a run.
pub(super) fn of_run(summary: &Summary, recording: &Recording) -> io::Result<Vec<Data>> {
    let json = serde_json::to_vec_pretty(summary).map_err(io::Error::from)?;
    let mut files = vec![("summary.json".to_owned(), json)];
    files.push(("windows.tsv".to_owned(), windows(recording).into_bytes()));
    for (kind, latencies) in recording.kinds().iter().zip(recording.latencies_us()) {
        let mut text = Vec::new();
        hgrm::write(latencies, PER_MS, &mut text)?;
        files.push((format!("{}.hgrm", kind.replace(' ', "-")), text));
    }
    Ok(files)
}

/// The raw data of a search.
pub(super) fn of_search(capacity: &Capacity) -> io::Result<Vec<Data>> {
    let json = serde_json::to_vec_pretty(capacity).map_err(io::Error::from)?;
    let trials = trials(capacity).into_bytes();
    Ok(vec![("capacity.json".to_owned(), json), ("trials.tsv".to_owned(), trials)])
}

/// The raw data of an evaluation of feeds.
pub(super) fn of_evaluation(evaluation: &Evaluation) -> io::Result<Vec<Data>> {
    let json = serde_json::to_vec_pretty(evaluation).map_err(io::Error::from)?;
    Ok(vec![("evaluation.json".to_owned(), json)])
}

/// Writes raw data to `folder`, which is created if it is missing, and returns links to the files.
pub(super) fn write_data(folder: &Path, files: Vec<Data>) -> io::Result<Vec<DataLink>> {
    fs::create_dir_all(folder)?;
    let beside = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut links = Vec::new();
    for (name, bytes) in files {
        replace(&folder.join(&name), &bytes)?;
        links.push(DataLink { address: address(&format!("{beside}/{name}")), name });
    }
    Ok(links)
}

/// Replaces a file atomically. The target of a symbolic link is replaced; devices and pipes are written directly.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The file may not exist yet.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let new = path.with_file_name(name);
    fs::write(&new, bytes)?;
    fs::rename(&new, path)
}

/// Formats a table with a row for each window; missing measurements are empty cells.
fn windows(recording: &Recording) -> String {
    const OF_KIND: [&str; 6] = ["count", "errors", "p50_ms", "p90_ms", "p99_ms", "max_ms"];
    let mut names = vec!["end_s".to_owned(), "seconds".to_owned()];
    for kind in recording.kinds() {
        let kind = kind.replace(' ', "_");
        names.extend(OF_KIND.map(|name| format!("{kind}_{name}")));
    }
    for name in ["samples", "p50_ms", "p99_ms", "max_ms"] {
        names.push(format!("delivery_{name}"));
    }
    names.extend(
        ["scheduling_delay_p99_ms", "server_memory_bytes", "server_cores"].map(String::from),
    );
    let mut text = names.join("\t") + "\n";
    for window in recording.windows() {
        let _ = writeln!(text, "{}", row(window).join("\t"));
    }
    text
}

fn row(window: &Window) -> Vec<String> {
    let number = |value: f64| format!("{value:.3}");
    let mut cells = vec![number(window.end_s), number(window.seconds)];
    for kind in &window.kinds {
        cells.extend([kind.count, kind.errors].map(|count| count.to_string()));
        cells.extend([kind.p50_ms, kind.p90_ms, kind.p99_ms, kind.max_ms].map(number));
    }
    match window.delivery {
        Some(delivery) => {
            cells.push(delivery.samples.to_string());
            cells.extend([delivery.p50_ms, delivery.p99_ms, delivery.max_ms].map(number));
        }
        None => cells.extend(iter::repeat_n(String::new(), 4)),
    }
    cells.push(number(window.scheduling_delay_p99_ms));
    match window.server {
        Some(server) => cells.extend([server.memory_bytes.to_string(), number(server.cores)]),
        None => cells.extend([String::new(), String::new()]),
    }
    cells
}

/// Formats a table with a row for each trial; missing samples are empty cells.
fn trials(capacity: &Capacity) -> String {
    let mut text = "number\trepeat\trate_per_s\tdue_per_s\tdone_per_s\tp50_ms\tp90_ms\tp99_ms\t\
                    p999_ms\tmax_ms\terrors_share\tlag_p50_ms\tlag_p99_ms\tlag_max_ms\t\
                    scheduling_delay_p99_ms\tverdict\twhy\n"
        .to_owned();
    for trial in &capacity.trials {
        let _ = writeln!(text, "{}", trial_row(trial).join("\t"));
    }
    text
}

fn trial_row(trial: &Trial) -> Vec<String> {
    let number = |value: f64| format!("{value:.3}");
    let measures = &trial.measures;
    let repeat = trial.repeat.map_or_else(String::new, |repeat| repeat.to_string());
    let mut cells = vec![trial.number.to_string(), repeat];
    cells.extend([trial.rate_per_s, measures.asked_per_s, measures.done_per_s].map(number));
    let Latency { p50_ms, p90_ms, p99_ms, p999_ms, max_ms } = measures.latency;
    cells.extend([p50_ms, p90_ms, p99_ms, p999_ms, max_ms].map(number));
    cells.push(format!("{:.6}", measures.errors_share));
    match measures.lag {
        Some(lag) => cells.extend([lag.p50_ms, lag.p99_ms, lag.max_ms].map(number)),
        None => cells.extend(iter::repeat_n(String::new(), 3)),
    }
    cells.push(number(measures.scheduling_delay_p99_ms));
    let verdict = match trial.verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Unknown => "unknown",
    };
    cells.push(verdict.to_owned());
    // A reason is a sentence; a tab or a line break in it would end the cell.
    cells.push(trial.why().replace(char::is_control, " "));
    cells
}
