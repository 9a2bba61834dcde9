//! The report of a simulation: one self-contained HTML file, and the raw data next to it.
//!
//! The page is made with `charts`: it has no scripts and loads nothing over the network. Its source is a [`Summary`]
//! with a [`Recording`], the [`Capacity`] that a search found, or an [`Evaluation`].
//!
//! **Invariant:** text from outside (a command line, a server's responses) passes `charts::html::escape`.

mod evaluation;
mod files;
mod page;
mod plots;
mod recording;
mod search;
mod sections;
mod trials;

use std::io;
use std::path::Path;

use crate::capacity::Capacity;
use crate::feeds::Evaluation;
use crate::summary::Summary;
pub use recording::Recording;

/// Writes the report to `path`, and the raw data to a folder next to it. For `report.html`, the folder is `report-data`
/// with `summary.json`, `windows.tsv`, and `KIND.hgrm` for each kind. `command` is the command line of the run. Each
/// file is replaced atomically, the report last. May block.
///
/// # Errors
/// If a file cannot be written.
pub fn write(
    path: &Path,
    summary: &Summary,
    recording: &Recording,
    command: &str,
) -> io::Result<()> {
    let data = files::data_folder(path)?;
    let links = files::write_data(&data, files::of_run(summary, recording)?)?;
    let page = page::page(summary, recording, command, &links);
    files::replace(path, page.as_bytes())
}

/// Writes the report of a search for the capacity to `path`, and the raw data to a folder next to it. For
/// `report.html`, the folder is `report-data` with `capacity.json` and `trials.tsv`. `scenario` describes the users and
/// their load, `command` is the command line of the run. Each file is replaced atomically, the report last. May block.
///
/// # Errors
/// If a file cannot be written.
pub fn write_capacity(
    path: &Path,
    capacity: &Capacity,
    scenario: &str,
    command: &str,
) -> io::Result<()> {
    let data = files::data_folder(path)?;
    let links = files::write_data(&data, files::of_search(capacity)?)?;
    let page = search::page(capacity, scenario, command, &links);
    files::replace(path, page.as_bytes())
}

/// Writes the report of an evaluation of feeds to `path`, and the raw data to a folder next to it. For `report.html`, the
/// folder is `report-data` with `evaluation.json`. `command` is the command line of the run. Each file is replaced
/// atomically, the report last. May block.
///
/// # Errors
/// If a file cannot be written.
pub fn write_evaluation(path: &Path, evaluation: &Evaluation, command: &str) -> io::Result<()> {
    let data = files::data_folder(path)?;
    let links = files::write_data(&data, files::of_evaluation(evaluation)?)?;
    let page = evaluation::page(evaluation, command, &links);
    files::replace(path, page.as_bytes())
}
