//! Figures of a feed: how well it ranks what readers would like, and how it distributes attention.

use std::collections::BTreeMap;

use super::PLACES;

/// Figures of a feed, over all readers of a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Mean over readers of the NDCG of the first [`PLACES`] posts. The gain of a post is 1 if the reader would like it,
    /// else 0, and is divided by `log2(1 + place)`; the sum is divided by that of the best possible order.
    pub ndcg: f64,
    /// Mean over readers of the number of posts in the first [`PLACES`] that the reader would like, divided by the
    /// number of such candidates or by [`PLACES`], if this is less.
    pub recall: f64,
    /// Share of these posts whose author the reader does not follow.
    pub unknown: f64,
    /// Gini coefficient of the number of times that authors are shown: 0 if all are shown equally often, almost 1 if one
    /// is shown always. Authors are the users who have posts.
    pub gini: f64,
    /// Share of new authors, who registered during the second day and have a post, who are shown to a reader.
    pub new_authors: f64,
}

/// Figures so far.
#[derive(Debug, Default)]
pub(super) struct Builder {
    /// Number of times that each author is shown, and whether the author is new.
    authors: BTreeMap<u32, (u32, bool)>,
    ndcg: Vec<f64>,
    recall: Vec<f64>,
    liked: u32,
    liked_unknown: u32,
}

impl Figures {
    pub(super) fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Adds a user who has posts.
    pub(super) fn add_author(&mut self, author: u32, is_new: bool) {
        self.authors.entry(author).or_insert((0, is_new));
    }

    /// Adds a reader. `liked` is the number of candidates that they would like; `places` are the posts that they are
    /// shown: author, whether the reader would like the post, and whether they follow the author. A reader who would
    /// like nothing changes only what is shown.
    pub(super) fn add_reader(&mut self, liked: usize, places: &[(u32, bool, bool)]) {
        let places = places.get(..PLACES).unwrap_or(places);
        let mut gain = 0.0;
        let mut hits = 0;
        for (place, (author, is_liked, is_followed)) in places.iter().enumerate() {
            if let Some((shown, _)) = self.authors.get_mut(author) {
                *shown += 1;
            }
            if *is_liked {
                hits += 1;
                gain += discount(place);
                self.liked_unknown += u32::from(!is_followed);
            }
        }
        self.liked += hits;
        let best = liked.min(PLACES);
        if best > 0 {
            self.ndcg.push(gain / (0..best).map(discount).sum::<f64>());
            self.recall.push(f64::from(hits) / best as f64);
        }
    }

    pub(super) fn finish(self) -> Figures {
        let shown: Vec<u32> = self.authors.values().map(|(shown, _)| *shown).collect();
        let new = || self.authors.values().filter(|(_, is_new)| *is_new);
        let new_shown = new().filter(|(shown, _)| *shown > 0).count();
        Figures {
            ndcg: stats::mean(&self.ndcg).unwrap_or(0.0),
            recall: stats::mean(&self.recall).unwrap_or(0.0),
            unknown: share(self.liked_unknown as usize, self.liked as usize),
            gini: gini(shown),
            new_authors: share(new_shown, new().count()),
        }
    }
}

/// Factor of the gain of a place, from 0.
fn discount(place: usize) -> f64 {
    1.0 / (place as f64 + 2.0).log2()
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Gini coefficient of some counts; 0 if all are 0.
fn gini(mut counts: Vec<u32>) -> f64 {
    counts.sort_unstable();
    let sum: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let ranked = (1..).zip(&counts).map(|(rank, count)| f64::from(rank) * f64::from(*count));
    let (ranked, count) = (ranked.sum::<f64>(), counts.len() as f64);
    if sum > 0.0 { 2.0 * ranked / (count * sum) - (count + 1.0) / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_about(found: f64, expect: f64) {
        assert!((found - expect).abs() < 1e-4, "{found} for {expect}");
    }

    #[test]
    fn the_gini_coefficient_is_that_of_examples_computed_by_hand() {
        for (counts, expect) in [
            (&[][..], 0.0),
            (&[0, 0], 0.0),
            (&[5], 0.0),
            (&[3, 3, 3], 0.0),
            (&[0, 1], 0.5),
            (&[4, 0, 0, 0], 0.75),
            // Half the mean difference of all pairs, 10 / 16, divided by the mean 2.5.
            (&[1, 2, 3, 4], 0.25),
        ] {
            is_about(gini(counts.to_vec()), expect);
        }
    }

    #[test]
    fn ndcg_and_recall_are_those_of_examples_computed_by_hand() {
        // Discounts of the first places: 1, 0.6309, 0.5, 0.4307, 0.3869.
        for (places, liked, ndcg, recall) in [
            ("", 2, 0.0, 0.0),
            ("+", 1, 1.0, 1.0),
            ("-+", 1, 0.6309, 1.0),
            ("+-", 2, 1.0 / 1.6309, 0.5),
            ("+-+", 2, 1.5 / 1.6309, 1.0),
            ("--+-+", 3, 0.8869 / 2.1309, 2.0 / 3.0),
            // Only the first 20 count, on both sides.
            ("++++++++++++++++++++", 50, 1.0, 1.0),
            ("--------------------+", 1, 0.0, 0.0),
        ] {
            let mut builder = Figures::builder();
            let places: Vec<_> = places.chars().map(|sign| (1, sign == '+', true)).collect();
            builder.add_reader(liked, &places);
            let figures = builder.finish();
            is_about(figures.ndcg, ndcg);
            is_about(figures.recall, recall);
        }
    }

    #[test]
    fn figures_are_over_all_readers() {
        let mut builder = Figures::builder();
        for (author, is_new) in [(1, false), (2, true), (3, true), (1, false)] {
            builder.add_author(author, is_new);
        }
        // The first reader likes a post of an unknown author and one of a followed author; the second would like a post
        // that is not shown; the third would like nothing, but is shown something.
        builder.add_reader(2, &[(1, true, false), (1, true, true)]);
        builder.add_reader(1, &[(2, false, false)]);
        builder.add_reader(0, &[(1, false, false)]);
        let figures = builder.finish();
        is_about(figures.ndcg, 0.5);
        is_about(figures.recall, 0.5);
        is_about(figures.unknown, 0.5);
        is_about(figures.new_authors, 0.5);
        // Shown 0, 1 and 3 times: 2 (1 * 0 + 2 * 1 + 3 * 3) / (3 * 4) - 4 / 3.
        is_about(figures.gini, 0.5);
    }
}
