//! Order of the candidates: by score, with at most some posts of each author, and with places for exploration.

use hashbrown::HashMap;

use crate::feeds::{Feed, Source};
use crate::pool::Candidate;

/// Maximum number of posts of a ranking.
pub const RANKED_MAX: usize = 200;

/// A place in a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Index of the candidate.
    pub candidate: usize,
    /// Score of the candidate.
    pub score: f64,
    /// Whether the place was given for exploration.
    pub explores: bool,
}

/// Orders the candidates: the highest score first, newer posts first among equal scores. With an exploration share `s`,
/// each place at which the number `s * places` reaches the next integer goes to the best remaining candidate of
/// [`Source::NewAuthors`], if there is one.
#[must_use]
pub fn rank(feed: &Feed, candidates: &[Candidate]) -> Vec<Ranked> {
    let scores = feed.score.values(candidates.iter().map(|candidate| &candidate.features));
    let mut best: Vec<_> = scores.into_iter().enumerate().collect();
    let id = |at: usize| candidates.get(at).map_or(0, |candidate| candidate.post);
    best.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then(id(*b).cmp(&id(*a))));
    let is_new = |at: usize| {
        candidates.get(at).is_some_and(|candidate| candidate.sources.contains(Source::NewAuthors))
    };
    let new: Vec<_> = best.iter().copied().filter(|(at, _)| is_new(*at)).collect();

    let per_author_max = if feed.per_author_max == 0 { usize::MAX } else { feed.per_author_max };
    let mut of_author = HashMap::<u32, usize>::with_capacity(candidates.len());
    let mut taken = vec![false; candidates.len()];
    // Whether a candidate gets the next place. A refused candidate is never accepted later.
    let mut accepts = |at: usize| {
        let Some((candidate, taken)) =
            candidates.get(at).zip(taken.get_mut(at)).filter(|(_, taken)| !**taken)
        else {
            return false;
        };
        let count = of_author.entry(candidate.author).or_default();
        let accepted = *count < per_author_max;
        if accepted {
            *count += 1;
            *taken = true;
        }
        accepted
    };
    let (mut best, mut new) = (best.into_iter(), new.into_iter());
    let mut ranked = Vec::new();
    while ranked.len() < RANKED_MAX {
        let place = ranked.len() as f64;
        let is_for_new = ((place + 1.0) * feed.explore).floor() > (place * feed.explore).floor();
        let found = if is_for_new { new.find(|(at, _)| accepts(*at)) } else { None };
        let explores = found.is_some();
        let Some((candidate, score)) = found.or_else(|| best.find(|(at, _)| accepts(*at))) else {
            break;
        };
        ranked.push(Ranked { candidate, score, explores });
    }
    ranked
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expression::{Feature, Features};
    use crate::feeds::Feeds;
    use crate::pool::Sources;

    fn candidate((post, author, likes, is_new): (u64, u32, u8, bool)) -> Candidate {
        let (mut sources, mut features) = (Sources::default(), Features::default());
        sources.insert(if is_new { Source::NewAuthors } else { Source::Popular });
        features.set(Feature::Likes, f64::from(likes));
        Candidate { post, author, sources, features }
    }

    /// Definition, read word by word: for each place, search all candidates again.
    fn naive(feed: &Feed, candidates: &[Candidate]) -> Vec<(u64, bool)> {
        let mut ranked: Vec<(&Candidate, bool)> = Vec::new();
        for place in 1..=RANKED_MAX {
            let by_author = |author| ranked.iter().filter(|(it, _)| it.author == author).count();
            let allowed = |it: &&Candidate| {
                ranked.iter().all(|(other, _)| other.post != it.post)
                    && (feed.per_author_max == 0 || by_author(it.author) < feed.per_author_max)
            };
            let better = |a: &&Candidate, b: &&Candidate| {
                let of = |it: &Candidate| feed.score.values([&it.features])[0];
                of(a).total_cmp(&of(b)).then(a.post.cmp(&b.post))
            };
            let is_new = |it: &&Candidate| it.sources.contains(Source::NewAuthors);
            let share = |places: usize| (places as f64 * feed.explore) as usize;
            let explores = share(place) > share(place - 1);
            let new = candidates.iter().filter(allowed).filter(is_new).max_by(better);
            let new = new.filter(|_| explores);
            let Some(found) = new.or_else(|| candidates.iter().filter(allowed).max_by(better))
            else {
                break;
            };
            ranked.push((found, new.is_some()));
        }
        ranked.into_iter().map(|(it, explores)| (it.post, explores)).collect()
    }

    proptest! {
        #[test]
        fn the_ranking_is_that_of_the_definition(
            posts in prop::collection::hash_map(0u64..400, (0u32..12, 0u8..6, any::<bool>()), 0..260),
            per_author_max in 0usize..4,
            explore in prop_oneof![Just(0.0), Just(0.05), Just(0.3), Just(0.5)],
        ) {
            let file = format!(
                "[feeds.x]\nsources = {{ popular = 400 }}\nscore = \"likes\"\n\
                 per_author_max = {per_author_max}\nexplore = {explore:?}"
            );
            let feeds = Feeds::parse(&file).unwrap();
            let feed = feeds.named("x").unwrap();
            let candidates: Vec<_> =
                posts.into_iter().map(|(post, (author, likes, new))| candidate((post, author, likes, new))).collect();
            let ranked = rank(feed, &candidates);
            let found: Vec<_> = ranked.iter().map(|it| (candidates[it.candidate].post, it.explores)).collect();
            prop_assert_eq!(found, naive(feed, &candidates));
        }
    }
}
