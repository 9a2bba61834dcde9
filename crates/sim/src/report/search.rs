//! The page of a search for the capacity: the result, the trials and an explanation.

use charts::html::escape;
use charts::page::{Tone, section, table, tiles};
use stats::{CONFIDENCE_PERCENT, Interval};

use super::files::DataLink;
use super::{page, sections, trials};
use crate::capacity::text::rate;
use crate::capacity::{Capacity, Finding, Trial, Verdict};
use crate::units::{count, ms, plain, several};

/// Description of the raw data of a search.
const OF_SEARCH: &str = "<p>Each row of <code>trials.tsv</code> is a trial; \
                         <code>capacity.json</code> has the same data and the result.</p>\n";

/// The report as HTML.
pub(super) fn page(
    capacity: &Capacity,
    scenario: &str,
    command: &str,
    links: &[DataLink],
) -> String {
    let body = [
        verdict(capacity),
        figures_of_note(capacity),
        what_was_run(capacity, scenario, command),
        drawn(capacity),
        all_trials(capacity),
        what_it_means(capacity),
        sections::raw_data(links, OF_SEARCH),
    ]
    .concat();
    page::document(&format!("Capacity with {}", capacity.slo), &body)
}

/// The result of the search, in a sentence.
fn verdict(capacity: &Capacity) -> String {
    let (tone, word) = match capacity.finding {
        Finding::Holds { .. } => (Tone::Good, "Found"),
        Finding::AtLeast { rate_per_s, .. } if rate_per_s > 0.0 => (Tone::Warn, "Lower bound only"),
        Finding::AtLeast { .. } | Finding::Nothing { .. } | Finding::Unsteady { .. } => {
            (Tone::Bad, "Not found")
        }
    };
    charts::page::verdict(tone, word, &format!(": {}.", capacity.sentence()))
}

/// The most important figures, in large type.
fn figures_of_note(capacity: &Capacity) -> String {
    let mut shown = Vec::new();
    match capacity.finding {
        Finding::Holds { per_s: Interval { estimate, low, high }, least_per_s, most_per_s } => {
            let interval = format!("{} to {}, {CONFIDENCE_PERCENT} %", rate(low), rate(high));
            shown.push(("Holds", format!("{}/s", rate(estimate)), interval));
            let range = format!("found {} to {}", rate(least_per_s), rate(most_per_s));
            shown.push(("Repeats", count(capacity.repeats_per_s.len() as u64), range));
        }
        Finding::AtLeast { rate_per_s, .. } if rate_per_s > 0.0 => {
            let more = "the upper limit is unknown".to_owned();
            shown.push(("Holds at least", format!("{}/s", rate(rate_per_s)), more));
        }
        Finding::AtLeast { .. } | Finding::Nothing { .. } | Finding::Unsteady { .. } => {}
    }
    let of = |verdict| capacity.trials.iter().filter(|trial| trial.verdict == verdict).count();
    let [hold, fail, unknown] = [Verdict::Holds, Verdict::Fails, Verdict::Unknown].map(of);
    let mut more = format!("{hold} hold, {fail} fail");
    if unknown > 0 {
        more += &format!(", {unknown} inconclusive");
    }
    shown.push(("Trials", count(capacity.trials.len() as u64), more));
    tiles(shown)
}

/// Parameters needed to repeat the search.
fn what_was_run(capacity: &Capacity, scenario: &str, command: &str) -> String {
    let climb = capacity.trials.iter().filter(|trial| trial.repeat.is_none()).count();
    let repeats = capacity.trials.iter().filter_map(|trial| trial.repeat).max().unwrap_or(0);
    let trials = format!(
        "{} to find a bracket, {} in {}; the server is driven for a fifth of a trial before each, \
         which does not count",
        count(climb as u64),
        count((capacity.trials.len() - climb) as u64),
        several(repeats as u64, "repeat", "repeats")
    );
    sections::facts(&[
        ("Command", format!("<code>{}</code>", escape(command))),
        ("Objective", format!("<code>{}</code>", escape(&capacity.slo.to_string()))),
        ("Scenario", escape(scenario)),
        ("Trials", trials),
        ("Loop", sections::OPEN.to_owned()),
    ])
}

/// The sections with plots.
fn drawn(capacity: &Capacity) -> String {
    if capacity.trials.is_empty() {
        return section("Trials", "<p>No trial was run.</p>\n");
    }
    let without =
        capacity.trials.iter().filter(|trial| trial.measures.latency.p99_ms <= 0.0).count();
    let left_out = match without {
        0 => String::new(),
        _ => {
            format!(" Not drawn: {} without an answer.", several(without as u64, "trial", "trials"))
        }
    };
    let by_rate = format!("<p class=\"lead\">Each mark is a trial.{left_out}</p>\n");
    let in_order = "<p class=\"lead\">The search climbs until a rate fails twice. Then each repeat \
                    bisects a separate bracket; the short bars are the results of the repeats.</p>\n";
    [
        ("Latency", by_rate, trials::latencies(capacity)),
        ("Search", in_order.to_owned(), trials::rates(capacity)),
    ]
    .into_iter()
    .filter_map(|(title, lead, figure)| Some(section(title, &(lead + &charts::rows(&[figure?])))))
    .collect()
}

/// Table of all trials.
fn all_trials(capacity: &Capacity) -> String {
    let head = ["trial", "repeat", "asked/s", "done/s", "p99", "errors %", "lag p99", "verdict"];
    let row = |trial: &Trial| {
        let Trial { number, repeat, rate_per_s, measures, .. } = trial;
        let (shape, class) = trials::sign(trial.verdict);
        let (sign, why) = (charts::sign(shape, class), escape(&trial.why()));
        vec![
            number.to_string(),
            repeat.map_or_else(|| "climb".to_owned(), |repeat| repeat.to_string()),
            rate(*rate_per_s),
            rate(measures.done_per_s),
            ms(measures.latency.p99_ms),
            plain((measures.errors_share * 1e5).round() / 1e3),
            measures.lag.map_or_else(|| "–".to_owned(), |lag| ms(lag.p99_ms)),
            format!("{sign}{why}"),
        ]
    };
    let rows: Vec<_> = capacity.trials.iter().map(row).collect();
    let html = table("Trials in their order", &head, &rows);
    section("All trials", &format!("<div class=\"trials\">{html}</div>\n"))
}

/// The meaning of the finding, and its limits.
fn what_it_means(capacity: &Capacity) -> String {
    let html = match capacity.finding {
        Finding::Holds { .. } => {
            "<p>The interval is Student's t on the logarithms of the repeats. The mean of many \
             repeats would lie within it, for this server, machine and load at the time of the \
             search. It does not cover another time, another machine or a server with more data. \
             At the rate itself about half of the trials meet the objective; to meet it always, \
             stay below.</p>\n"
        }
        Finding::AtLeast { .. } => {
            "<p>Rates above the highest one that could be measured are not known: where the \
             generator was too slow, a trial is inconclusive and the search ends. Therefore there \
             is no interval. If the generator was the limit, run it on another machine, or use \
             <code>--threads</code>.</p>\n"
        }
        Finding::Nothing { .. } => {
            "<p>The objective was not met at the lowest rate of the search, so there is no rate to \
             show and no interval. The table shows which part of the objective was not met.</p>\n"
        }
        Finding::Unsteady { .. } => {
            "<p>A repeat found a limit far from that of the repeat before, and a mean of such \
             repeats would be meaningless, so there is no interval. A usual reason is other \
             work on the machine; use longer trials and an idle machine.</p>\n"
        }
    };
    section("What this means", html)
}
