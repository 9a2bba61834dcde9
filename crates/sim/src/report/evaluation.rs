//! The page of an evaluation of feeds: the table, and how to read it.

use charts::html::escape;
use charts::page::{Tone, section, table};
use stats::CONFIDENCE_PERCENT;

use super::files::DataLink;
use super::{page, sections};
use crate::feeds::{Evaluation, Measure, cell};
use crate::units::{count, several};

const OF_EVALUATION: &str = "<p><code>evaluation.json</code> has the figures of each seed.</p>\n";

/// The report as HTML.
pub(super) fn page(evaluation: &Evaluation, command: &str, links: &[DataLink]) -> String {
    let tone = if evaluation.losses().is_empty() { Tone::Good } else { Tone::Warn };
    let seeds = several(evaluation.seeds.len() as u64, "seed", "seeds");
    let body = [
        charts::page::verdict(tone, "Done", &format!(": {}.", evaluation.sentence())),
        sections::facts(&[
            ("Command", format!("<code>{}</code>", escape(command))),
            ("Users", count(evaluation.users.into())),
            ("Seeds", seeds),
        ]),
        figures(evaluation),
        meaning(),
        sections::raw_data(links, OF_EVALUATION),
    ]
    .concat();
    page::document("Evaluation of feeds", &body)
}

fn figures(evaluation: &Evaluation) -> String {
    let mut head = vec!["feed"];
    head.extend(Measure::ALL.map(Measure::heading));
    let rows = evaluation.feeds.iter().map(|feed| {
        let name = std::iter::once(escape(&feed.name));
        name.chain(feed.measures.iter().map(cell)).collect()
    });
    let lead = format!(
        "<p class=\"lead\">Mean over the seeds, with its {CONFIDENCE_PERCENT} % interval. A star marks \
         what is better than for-you.</p>\n"
    );
    section("Figures", &(lead + &table("Figures of each feed", &head, &rows.collect::<Vec<_>>())))
}

fn meaning() -> String {
    let rows = Measure::ALL.map(|measure| (measure.heading(), escape(measure.meaning())));
    section("How to read the figures", &charts::page::facts(&rows))
}
