//! Candidates of a ranking, collected within the quotas of their sources.

use hashbrown::HashMap;

use crate::expression::Features;
use crate::feeds::{Feed, SOURCES, Source};

/// Set of sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources(u8);

const _: () = assert!(SOURCES <= 8);

impl Sources {
    /// Adds a source.
    pub fn insert(&mut self, source: Source) {
        self.0 |= 1 << source as u8;
    }

    /// Whether the set has a source.
    #[must_use]
    pub fn contains(self, source: Source) -> bool {
        self.0 & 1 << source as u8 != 0
    }
}

/// A post that may be in the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Id of the post; greater ids are newer.
    pub post: u64,
    /// Author of the post.
    pub author: u32,
    /// All sources that offered the post.
    pub sources: Sources,
    /// Features of the post.
    pub features: Features,
}

/// Candidates so far.
///
/// **Invariant:** each post is in it once, and each source has added at most its quota. A post that another source
/// offers again takes no place of the quota.
pub struct Pool {
    left: [usize; SOURCES],
    /// Whether sources only mark the candidates that they offer.
    is_closed: bool,
    candidates: Vec<Candidate>,
    places: HashMap<u64, usize>,
}

impl Pool {
    /// Creates an empty pool with the quotas of a feed.
    #[must_use]
    pub fn new(feed: &Feed) -> Self {
        let left = Source::ALL.map(|source| feed.quota(source));
        let max = left.iter().sum();
        let (candidates, places) = (Vec::with_capacity(max), HashMap::with_capacity(max));
        Self { left, is_closed: false, candidates, places }
    }

    /// Creates a pool of given posts with their authors. The sources of the feed add no others.
    #[must_use]
    pub fn given(feed: &Feed, posts: impl IntoIterator<Item = (u64, u32)>) -> Self {
        let mut pool = Self { is_closed: true, ..Self::new(feed) };
        for (post, author) in posts {
            if !pool.places.contains_key(&post) {
                pool.add((post, author), Sources::default());
            }
        }
        pool
    }

    fn add(&mut self, (post, author): (u64, u32), sources: Sources) {
        self.places.insert(post, self.candidates.len());
        self.candidates.push(Candidate { post, author, sources, features: Features::default() });
    }

    /// Whether a source has places left.
    #[must_use]
    pub fn has_room(&self, source: Source) -> bool {
        self.left.get(source as usize).is_some_and(|left| *left > 0)
    }

    /// Adds a post of a source, unless the quota is used up. Returns the candidate, for its features.
    pub fn offer(&mut self, source: Source, (post, author): (u64, u32)) -> Option<&mut Candidate> {
        if let Some(place) = self.places.get(&post) {
            let known = self.candidates.get_mut(*place)?;
            known.sources.insert(source);
            return Some(known);
        }
        let left = self.left.get_mut(source as usize).filter(|left| **left > 0)?;
        if self.is_closed {
            return None;
        }
        *left -= 1;
        let mut sources = Sources::default();
        sources.insert(source);
        self.add((post, author), sources);
        self.candidates.last_mut()
    }

    /// Adds a source to a candidate; returns false if the post is not one.
    pub fn offer_again(&mut self, source: Source, post: u64) -> bool {
        let known = self.places.get(&post).and_then(|place| self.candidates.get_mut(*place));
        known.is_some_and(|known| {
            known.sources.insert(source);
            true
        })
    }

    /// Candidates in the order in which they were added.
    #[must_use]
    pub fn into_candidates(self) -> Vec<Candidate> {
        self.candidates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::Feeds;

    #[test]
    fn a_source_adds_its_quota_and_a_repeated_post_takes_no_place() {
        let file = "[feeds.x]\nsources = { following = 2, popular = 1 }\nscore = \"1\"";
        let mut pool = Pool::new(Feeds::parse(file).unwrap().named("x").unwrap());
        assert!(pool.offer(Source::Following, (1, 7)).is_some());
        assert!(pool.offer(Source::Popular, (1, 7)).is_some(), "again");
        assert!(pool.offer_again(Source::Groups, 1) && !pool.offer_again(Source::Groups, 9));
        assert!(pool.offer(Source::Following, (2, 7)).is_some());
        assert!(pool.offer(Source::Following, (3, 7)).is_none(), "the quota is used up");
        assert!(pool.has_room(Source::Popular) && !pool.has_room(Source::Following));
        assert!(pool.offer(Source::Popular, (3, 7)).is_some());
        assert!(pool.offer(Source::NewAuthors, (4, 7)).is_none(), "not a source of the feed");
        let candidates = pool.into_candidates();
        assert_eq!(candidates.iter().map(|it| it.post).collect::<Vec<_>>(), [1, 2, 3]);
        let has = |at: usize, source| candidates[at].sources.contains(source);
        assert!(has(0, Source::Following) && has(0, Source::Popular) && !has(1, Source::Popular));
        assert!(has(0, Source::Groups) && !has(1, Source::Groups));
    }

    #[test]
    fn sources_mark_given_posts_and_add_no_others() {
        let file = "[feeds.x]\nsources = { popular = 1 }\nscore = \"1\"";
        let feeds = Feeds::parse(file).unwrap();
        let mut pool = Pool::given(feeds.named("x").unwrap(), [(1, 7), (2, 7), (1, 8)]);
        assert!(pool.offer(Source::Popular, (3, 7)).is_none());
        assert!(pool.offer(Source::Popular, (2, 7)).is_some());
        assert!(pool.has_room(Source::Popular) && !pool.has_room(Source::Groups));
        let found: Vec<_> = pool
            .into_candidates()
            .into_iter()
            .map(|it| (it.post, it.author, it.sources.contains(Source::Popular)))
            .collect();
        assert_eq!(found, [(1, 7, false), (2, 7, true)]);
    }
}
