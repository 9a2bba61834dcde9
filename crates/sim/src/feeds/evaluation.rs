//! Figures of feeds over several worlds, with intervals, and where `for-you` is not the best.

use std::fmt;

use serde::Serialize;
use stats::{CONFIDENCE_PERCENT, Interval};

use super::{BEST, Figures};

/// Minimum and maximum number of seeds.
pub const SEEDS: (u32, u32) = (2, 30);
/// Feed with which the others are compared.
const COMPARED: &str = "for-you";

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of users of each world.
    pub users: u32,
    /// Seeds of the worlds.
    pub seeds: Vec<u64>,
    /// Feeds, in the order in which they were read.
    pub feeds: Vec<FeedFigures>,
}

/// Figures of a feed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeedFigures {
    /// Name of the feed.
    pub name: String,
    /// Mean of each measure, in the order of [`Measure::ALL`].
    pub measures: Vec<Measured>,
}

/// A measure of a feed over all worlds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Name of the measure.
    pub measure: Measure,
    /// Mean over the worlds, with its interval.
    #[serde(serialize_with = "crate::capacity::text::mean_and_bounds")]
    pub over_seeds: Interval,
    /// Value in each world, in the order of the seeds.
    pub by_seed: Vec<f64>,
    /// Whether the feed is better than `for-you`: the interval of the differences in the same worlds is beyond 0.
    pub is_better: bool,
}

/// A measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// [`Figures::ndcg`]
    Ndcg,
    /// [`Figures::recall`]
    Recall,
    /// [`Figures::unknown`]
    Unknown,
    /// [`Figures::gini`]
    Gini,
    /// [`Figures::new_authors`]
    NewAuthors,
}

impl Measure {
    /// All measures.
    pub const ALL: [Measure; 5] =
        [Measure::Ndcg, Measure::Recall, Measure::Unknown, Measure::Gini, Measure::NewAuthors];

    /// Heading of a column.
    pub fn heading(self) -> &'static str {
        match self {
            Measure::Ndcg => "NDCG@20",
            Measure::Recall => "recall@20",
            Measure::Unknown => "liked of unknown",
            Measure::Gini => "Gini of exposure",
            Measure::NewAuthors => "new authors shown",
        }
    }

    /// Definition, as a sentence without its end.
    pub fn meaning(self) -> &'static str {
        match self {
            Measure::Ndcg => {
                "position-weighted hits in the first 20 posts, divided by those of the best possible order"
            }
            Measure::Recall => {
                "posts among the first 20 that the reader would like, divided by all such candidates or by 20, if this is less"
            }
            Measure::Unknown => "share of these posts whose author the reader does not follow",
            Measure::Gini => {
                "inequality of authors in all pages: 0 if all are shown equally often; lower is better"
            }
            Measure::NewAuthors => {
                "share of authors who registered on the last day who are shown to a reader"
            }
        }
    }

    fn of(self, figures: &Figures) -> f64 {
        match self {
            Measure::Ndcg => figures.ndcg,
            Measure::Recall => figures.recall,
            Measure::Unknown => figures.unknown,
            Measure::Gini => figures.gini,
            Measure::NewAuthors => figures.new_authors,
        }
    }

    /// Value that is higher for better feeds.
    fn oriented(self, value: f64) -> f64 {
        if self == Measure::Gini { -value } else { value }
    }
}

impl Evaluation {
    /// Combines the figures of several worlds, each with the same feeds in the same order. `None` with fewer than 2
    /// worlds, or if their feeds differ.
    pub fn new(users: u32, worlds: &[(u64, Vec<(String, Figures)>)]) -> Option<Evaluation> {
        let (_, first) = worlds.first()?;
        let place = first.iter().position(|(name, _)| name == COMPARED);
        let by_seed = |at: usize, measure: Measure| -> Option<Vec<f64>> {
            worlds.iter().map(|(_, feeds)| Some(measure.of(&feeds.get(at)?.1))).collect()
        };
        let measured = |at: usize, measure: Measure| {
            let by_seed_here = by_seed(at, measure)?;
            let compared = by_seed(place.unwrap_or(at), measure)?;
            let pairs = by_seed_here.iter().zip(&compared);
            let differences: Vec<f64> =
                pairs.map(|(it, other)| measure.oriented(*it) - measure.oriented(*other)).collect();
            let is_better = Interval::of_mean(&differences)?.low > 0.0;
            let over_seeds = Interval::of_mean(&by_seed_here)?;
            Some(Measured { measure, over_seeds, by_seed: by_seed_here, is_better })
        };
        let feed = |(at, (name, _)): (usize, &(String, Figures))| {
            let is_same = |(_, feeds): &(u64, Vec<(String, Figures)>)| {
                feeds.len() == first.len() && feeds.get(at).is_some_and(|(other, _)| other == name)
            };
            if !worlds.iter().all(is_same) {
                return None;
            }
            let measures = Measure::ALL.iter().map(|measure| measured(at, *measure));
            Some(FeedFigures { name: name.clone(), measures: measures.collect::<Option<_>>()? })
        };
        let feeds = first.iter().enumerate().map(feed).collect::<Option<_>>()?;
        Some(Evaluation { users, seeds: worlds.iter().map(|(seed, _)| *seed).collect(), feeds })
    }

    /// Sentences about the measures in which another ranking is better than `for-you`. The best possible ranking counts
    /// only for what is not by taste.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        for (at, measure) in Measure::ALL.into_iter().enumerate() {
            let better = self.feeds.iter().filter(|feed| {
                feed.name != BEST && feed.measures.get(at).is_some_and(|found| found.is_better)
            });
            let better: Vec<&str> = better.map(|feed| feed.name.as_str()).collect();
            if !better.is_empty() {
                losses.push(format!("{}: {}", measure.heading(), better.join(", ")));
            }
        }
        losses
    }

    /// The losses as a sentence.
    pub fn sentence(&self) -> String {
        match self.losses() {
            _ if !self.feeds.iter().any(|feed| feed.name == COMPARED) => {
                format!("{COMPARED} was not read")
            }
            losses if losses.is_empty() => format!("no other feed is better than {COMPARED}"),
            losses => format!("better than {COMPARED} in {}", losses.join("; ")),
        }
    }
}

/// Formats the mean and the bounds, and marks what is better than `for-you`.
pub(crate) fn cell(measured: &Measured) -> String {
    let Interval { estimate, low, high } = measured.over_seeds;
    let sign = if measured.is_better { "*" } else { "" };
    format!("{estimate:.3} [{low:.3}, {high:.3}]{sign}")
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.feeds.iter().map(|feed| feed.name.len()).max().unwrap_or(0);
        write!(f, "{:width$}", "feed")?;
        for measure in Measure::ALL {
            write!(f, "  {:<23}", measure.heading())?;
        }
        for feed in &self.feeds {
            write!(f, "\n{:width$}", feed.name)?;
            for measured in &feed.measures {
                write!(f, "  {:<23}", cell(measured))?;
            }
        }
        writeln!(f, "\n\nMeans over {} seeds [{CONFIDENCE_PERCENT} %].", self.seeds.len())?;
        for measure in Measure::ALL {
            writeln!(f, "{}: {}.", measure.heading(), measure.meaning())?;
        }
        writeln!(f, "* {}.", self.sentence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ndcg: f64, gini: f64) -> Figures {
        Figures { ndcg, recall: 0.5, unknown: 0.0, gini, new_authors: 0.0 }
    }

    fn world(seed: u64, feeds: &[(&str, Figures)]) -> (u64, Vec<(String, Figures)>) {
        (seed, feeds.iter().map(|(name, found)| ((*name).to_owned(), *found)).collect())
    }

    #[test]
    fn a_feed_is_better_if_it_is_in_all_worlds_and_lower_inequality_is_better() {
        // All vary more between worlds than from each other: only pairs show the differences.
        let worlds: Vec<_> = [0.1, 0.3, 0.5]
            .into_iter()
            .zip(1..)
            .map(|(base, seed)| {
                let uneven = if seed == 1 { 0.2 } else { -0.1 };
                world(
                    seed,
                    &[
                        ("for-you", figures(base, 0.5 + base)),
                        ("better", figures(base + 0.01 + base / 100.0, 0.6 + base)),
                        ("fairer", figures(base - 0.01, 0.4 + base - base / 100.0)),
                        ("unclear", figures(base + uneven, 0.5 + base)),
                    ],
                )
            })
            .collect();
        let evaluation = Evaluation::new(9, &worlds).unwrap();
        assert_eq!(evaluation.losses(), ["NDCG@20: better", "Gini of exposure: fairer"]);
        let ndcg = &evaluation.feeds[0].measures[0];
        assert!((ndcg.over_seeds.estimate - 0.3).abs() < 1e-9 && ndcg.by_seed == [0.1, 0.3, 0.5]);
        let text = evaluation.to_string();
        let row = text.lines().find(|line| line.starts_with("better ")).unwrap();
        assert_eq!(row.matches('*').count(), 1, "{text}");
        assert!(text.contains("* better than for-you in NDCG@20: better; Gini"), "{text}");
        let json = serde_json::to_value(&evaluation).unwrap();
        assert_eq!(json["feeds"][1]["measures"][0]["is_better"], true);
        assert_eq!(json["feeds"][1]["measures"][3]["measure"], "gini");
    }

    #[test]
    fn worlds_must_be_several_and_have_the_same_feeds() {
        let one = world(1, &[("a", figures(0.1, 0.1))]);
        let other = world(2, &[("b", figures(0.1, 0.1))]);
        assert_eq!(Evaluation::new(9, &[]), None);
        assert_eq!(Evaluation::new(9, std::slice::from_ref(&one)), None);
        assert_eq!(Evaluation::new(9, &[one.clone(), other]), None);
        let two = Evaluation::new(9, &[one.clone(), one]).unwrap();
        assert_eq!(two.sentence(), "for-you was not read");
    }
}
