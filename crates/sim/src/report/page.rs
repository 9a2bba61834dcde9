//! The whole page: its sections, most important first.

use charts::Figure;
use charts::page::section;

use super::files::DataLink;
use super::{Recording, plots, sections};
use crate::summary::Summary;

/// Description of the raw data of a run.
const OF_RUN: &str = "<p>The <code>.hgrm</code> files are percentile distributions in milliseconds for \
                      HdrHistogram's plotter. Each row of <code>windows.tsv</code> is a window.</p>\n";

/// The report as HTML.
pub(super) fn page(
    summary: &Summary,
    recording: &Recording,
    command: &str,
    links: &[DataLink],
) -> String {
    let title = recording.plan().map_or_else(|| summary.scenario(), |plan| plan.title.clone());
    let body = [
        sections::verdict(summary),
        sections::figures_of_note(summary),
        sections::what_was_run(summary, recording, command),
        sections::kinds(summary),
        sections::errors(summary),
        sections::correctness(summary),
        drawn(summary, recording),
        sections::population(summary),
        sections::how_to_read(summary),
        sections::raw_data(links, OF_RUN),
    ]
    .concat();
    document(&title, &body)
}

/// A whole document; `body` is markup.
pub(super) fn document(title: &str, body: &str) -> String {
    charts::page::document("roost simulate", title, body)
}

/// The sections with plots.
fn drawn(summary: &Summary, recording: &Recording) -> String {
    if recording.windows().is_empty() {
        return section("Over time", "<p>Nothing was measured.</p>");
    }
    let from = if summary.closed { "when it was sent" } else { "when it was due" };
    let latency = format!(
        "<p class=\"lead\">How long a request took from {from}, in each window of the run: half of \
         them at most p50, 99 of 100 at most p99. All kinds share one logarithmic scale.</p>"
    );
    let curve = "<p class=\"lead\">Over the whole run. Each mark to the right is ten times as rare: \
                 at 99.9 %, one request of a thousand took longer.</p>";
    let around: Vec<_> = [
        plots::delivery(recording),
        plots::errors(recording),
        plots::memory(recording),
        plots::processor(recording),
        plots::scheduling_delay(recording),
    ]
    .into_iter()
    .flatten()
    .collect();
    let curves: Vec<_> = plots::percentiles(recording).into_iter().collect();
    [
        rows("Rates", left_out(recording), &plots::rates(recording)),
        rows("Latency over time", latency, &plots::latencies(recording)),
        rows("Percentiles", curve.to_owned(), &curves),
        rows("Delivery, server and generator", String::new(), &around),
    ]
    .concat()
}

fn rows(title: &str, lead: String, figures: &[Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    section(title, &(lead + &charts::rows(figures)))
}

fn left_out(recording: &Recording) -> String {
    match recording.windows_left_out() {
        0 => "<p class=\"lead\">Successful requests, each kind with a separate scale.\
              </p>"
            .to_owned(),
        count => {
            format!("<p class=\"lead\">The last {count} windows of the run are not drawn.</p>")
        }
    }
}
