//! Candidates of a feed for a viewer, with their features.
//!
//! The lock of the view is held for at most [`FOLLOWED_READ`] lookups of users, the lists of some topics and
//! [`rank::CANDIDATES_MAX`] posts.

use std::cmp::Reverse;

use feed::{PostId, UserId};
use hashbrown::{HashMap, HashSet};
use rank::{Candidate, Feature, Feed, Pool, Source};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::View;
use super::reactions::{Group, REACTIONS_MAX};
use super::recent::Recent;
use super::topics::{Topic, merged};

/// Maximum number of followed users whose reactions are read; of more, another part is read each hour.
const FOLLOWED_READ: usize = 1_000;
/// Maximum number of reactions of each that are read.
const REACTIONS_READ: usize = 8;
/// Maximum number of hashtags of the viewer.
const TAGS_READ: usize = 48;
/// Maximum number of interest groups of the viewer, and of followed users that are asked for theirs.
const GROUPS_READ: usize = 3;
const GROUP_NEIGHBORS: usize = 256;
/// Number of neighbors in a group from which it is one of the viewer's.
const GROUP_VOTES: u32 = 2;
/// Maximum number of languages of the viewer.
const LANGUAGES_READ: usize = 3;
/// Maximum number of users whom a reason names.
const NAMED_MAX: usize = 3;
const HOUR_MS: u64 = 3_600_000;

/// Facts about a viewer.
pub(crate) struct Taste {
    pub(crate) viewer: UserId,
    /// Followed users who are not muted, in ascending order of ids.
    pub(crate) following: Box<[UserId]>,
    /// Users who are blocked, muted or block the viewer, whose posts take no place among the candidates.
    pub(crate) hidden: HashSet<UserId>,
    /// Authors in whom the viewer is not interested, in ascending order of ids. Their posts come only from the home
    /// timeline.
    pub(crate) not_interested: Vec<UserId>,
    /// Posts of which the viewer wants to see less.
    pub(crate) less: Less,
    /// Numbers of followed hashtags.
    pub(crate) tags: Vec<u32>,
    /// Newest posts of the viewer.
    pub(crate) own: Vec<PostId>,
    /// Posts of the home timeline, newest first.
    pub(crate) home: Vec<AtHome>,
    /// Whether `home` are given posts in place of the home timeline, and the only candidates.
    pub(crate) is_given: bool,
    pub(crate) now_ms: u64,
}

/// Posts of which a viewer wants to see less, with their subjects.
pub(crate) struct Less {
    pub(crate) posts: HashSet<PostId>,
    /// Posts that the view does not have, whose authors are still to be read.
    pub(crate) older: Vec<PostId>,
    pub(crate) authors: HashSet<UserId>,
    /// Numbers of the hashtags of recent posts.
    pub(crate) tags: HashSet<u32>,
}

/// Candidate of the home timeline.
pub(crate) struct AtHome {
    /// Boosted post for a boost.
    pub(crate) post: PostId,
    pub(crate) author: UserId,
    /// User who boosted the post, for a boost.
    pub(crate) booster: Option<UserId>,
    /// Numbers of favourites, boosts and replies of a post that the view does not have under its id at home: of a
    /// boosted post, or of one that is older or not public.
    pub(crate) counts: Option<[u32; 3]>,
}

/// Followed users who reacted to a post.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Likers {
    pub(crate) count: u32,
    named: [UserId; NAMED_MAX],
}

impl Likers {
    pub(super) fn add(&mut self, user: UserId) {
        if let Some(place) = self.named.get_mut(self.count as usize) {
            *place = user;
        }
        self.count += 1;
    }

    /// Some of the users.
    pub(crate) fn named(&self) -> impl Iterator<Item = UserId> {
        self.named.into_iter().take(self.count as usize)
    }
}

/// Candidates of a feed.
pub(crate) struct Gathered {
    pub(crate) candidates: Vec<Candidate>,
    /// Followed users who reacted, by post in ascending order.
    likers: Vec<(PostId, Likers)>,
    /// Numbers of the hashtags that the viewer follows or uses.
    pub(crate) tags: Box<[u32]>,
}

impl Gathered {
    /// Followed users who reacted to a post.
    pub(crate) fn likers(&self, post: PostId) -> Option<Likers> {
        likers_of(&self.likers, post).copied()
    }
}

fn likers_of(likers: &[(PostId, Likers)], post: PostId) -> Option<&Likers> {
    let place = likers.binary_search_by_key(&post, |(post, _)| *post).ok()?;
    likers.get(place).map(|(_, likers)| likers)
}

/// Interests of a viewer, derived from recent posts.
struct Interests {
    tags: SmallVec<[u32; TAGS_READ]>,
    languages: SmallVec<[u16; LANGUAGES_READ]>,
    /// Posts to which the viewer reacted.
    reacted: SmallVec<[PostId; REACTIONS_MAX]>,
    /// Number of reactions and posts by author.
    authors: HashMap<UserId, u32>,
    /// Sum of these numbers, at least 1.
    reactions: u32,
}

/// A view with what a viewer likes, for one ranking.
struct Gatherer<'a> {
    view: &'a View,
    taste: &'a Taste,
    interests: Interests,
    /// Followed users who reacted, by post in ascending order.
    likers: Vec<(PostId, Likers)>,
}

impl View {
    /// Gathers the candidates of a feed.
    pub(super) fn gather(&self, feed: &Feed, taste: &Taste) -> Gathered {
        let of = self.gatherer(taste);
        let wanted = taste.home.iter().filter(|it| !taste.less.posts.contains(&it.post));
        let mut pool = match taste.is_given {
            true => Pool::given(feed, wanted.clone().map(|it| (it.post.0, it.author.0))),
            false => Pool::new(feed),
        };
        for AtHome { post, author, counts, .. } in wanted {
            if taste.is_given && !taste.follows(*author) {
                continue;
            }
            if let Some(candidate) = pool.offer(Source::Following, (post.0, author.0))
                && !taste.is_given
            {
                of.describe(candidate, self.posts.get(*post), *counts);
            }
        }
        of.offer(&mut pool, Source::LikedByFollowed, of.liked());
        let topics = |source| of.topics(source).into_iter().map(|topic| self.topics.of(topic));
        for source in
            [Source::FollowedHashtags, Source::Groups, Source::PopularInLanguage, Source::Popular]
        {
            if pool.has_room(source) {
                of.offer(&mut pool, source, merged(topics(source)));
            }
        }
        let new = self.new_posts.iter().rev().map(|(post, _)| *post);
        of.offer(&mut pool, Source::NewAuthors, new);

        let mut candidates = pool.into_candidates();
        if taste.is_given {
            self.describe_each(&of, &mut candidates);
        }
        candidates.iter_mut().for_each(set_group);
        let Gatherer { likers, interests, .. } = of;
        Gathered { candidates, likers, tags: interests.tags.to_vec().into() }
    }

    /// Sets the features of candidates.
    pub(super) fn describe_all(&self, candidates: &mut [Candidate], taste: &Taste) {
        self.describe_each(&self.gatherer(taste), candidates);
        candidates.iter_mut().for_each(set_group);
    }

    fn describe_each(&self, of: &Gatherer<'_>, candidates: &mut [Candidate]) {
        let counts = of.taste.home.iter().filter_map(|it| Some((it.post, it.counts?)));
        let counts: HashMap<_, _> = counts.collect();
        for candidate in candidates {
            let post = PostId(candidate.post);
            of.describe(candidate, self.posts.get(post), counts.get(&post).copied());
        }
    }

    fn gatherer<'a>(&'a self, taste: &'a Taste) -> Gatherer<'a> {
        Gatherer { view: self, taste, interests: self.interests(taste), likers: self.likers(taste) }
    }

    fn interests(&self, taste: &Taste) -> Interests {
        let mut interests = Interests {
            tags: taste.tags.iter().copied().take(TAGS_READ).collect(),
            languages: SmallVec::new(),
            reacted: self.reactions.of(taste.viewer).collect(),
            authors: HashMap::new(),
            reactions: 1,
        };
        let own = taste.own.iter().filter_map(|post| self.posts.get(*post));
        let reacted = interests.reacted.iter().filter_map(|post| self.posts.get(*post));
        for post in own.chain(reacted) {
            for tag in post.tags() {
                if interests.tags.len() < TAGS_READ && !interests.tags.contains(&tag) {
                    interests.tags.push(tag);
                }
            }
            let languages = &mut interests.languages;
            let is_new = post.language != 0 && !languages.contains(&post.language);
            if is_new && languages.len() < LANGUAGES_READ {
                languages.push(post.language);
            }
            if post.author != taste.viewer {
                *interests.authors.entry(post.author).or_default() += 1;
            }
        }
        interests.reactions = interests.authors.values().sum::<u32>().max(1);
        interests
    }

    /// Recent posts to which followed users reacted.
    fn likers(&self, taste: &Taste) -> Vec<(PostId, Likers)> {
        let following = &taste.following;
        let turn = (taste.now_ms / HOUR_MS) as usize;
        let from = if following.len() > FOLLOWED_READ { turn * FOLLOWED_READ } else { 0 };
        let read = following.iter().cycle().skip(from % following.len().max(1));
        let mut reactions = Vec::with_capacity(REACTIONS_READ * following.len().min(FOLLOWED_READ));
        for user in read.take(following.len().min(FOLLOWED_READ)) {
            let posts = self.reactions.of(*user).take(REACTIONS_READ);
            reactions.extend(posts.map(|post| (post, *user)));
        }
        reactions.sort_unstable();
        let mut likers = Vec::<(PostId, Likers)>::with_capacity(reactions.len());
        for (post, user) in reactions {
            if likers.last().is_none_or(|(last, _)| *last != post) {
                likers.push((post, Likers::default()));
            }
            if let Some((_, of)) = likers.last_mut() {
                of.add(user);
            }
        }
        likers
    }
}

impl Gatherer<'_> {
    /// Topics of a source.
    fn topics(&self, source: Source) -> SmallVec<[Topic; TAGS_READ]> {
        match source {
            Source::FollowedHashtags => {
                self.interests.tags.iter().copied().map(Topic::Tag).collect()
            }
            Source::Groups => self.groups().map(Topic::Group).collect(),
            Source::PopularInLanguage => {
                self.interests.languages.iter().copied().map(Topic::Language).collect()
            }
            _ => [Topic::All].into_iter().collect(),
        }
    }

    /// Interest groups of most followed users and of the authors of posts to which the viewer reacted. A user who has
    /// just followed a few users has groups at once.
    fn groups(&self) -> impl Iterator<Item = Group> {
        let followed = self.taste.following.iter().take(GROUP_NEIGHBORS).copied();
        let neighbors = followed.chain(self.interests.authors.keys().copied());
        let groups = self.view.reactions.groups(neighbors).into_iter();
        let groups = groups.filter(|(_, votes)| *votes >= GROUP_VOTES).take(GROUPS_READ);
        groups.map(|(group, _)| group)
    }

    /// Posts to which followed users reacted: those of the most users first, newer ones first among equals.
    fn liked(&self) -> impl Iterator<Item = PostId> + use<> {
        let newest_first = self.likers.iter().rev();
        let mut liked: Vec<_> = newest_first.map(|(post, of)| (of.count, *post)).collect();
        liked.sort_by_key(|(count, _)| Reverse(*count));
        liked.into_iter().map(|(_, post)| post)
    }

    /// Offers recent posts by others to which the viewer has not reacted, and of users who are not followed only those
    /// that may be suggested.
    fn offer(&self, pool: &mut Pool, source: Source, posts: impl Iterator<Item = PostId>) {
        let taste = self.taste;
        for post in posts {
            if !pool.has_room(source) {
                return;
            }
            let is_unwanted =
                self.interests.reacted.contains(&post) || taste.less.posts.contains(&post);
            if is_unwanted || pool.offer_again(source, post.0) {
                continue;
            }
            let is_offered = |found: &&Recent| {
                found.author != taste.viewer
                    && !taste.hidden.contains(&found.author)
                    && taste.not_interested.binary_search(&found.author).is_err()
                    && (found.is_plain || taste.follows(found.author))
            };
            if let Some(found) = self.view.posts.get(post).filter(is_offered)
                && let Some(candidate) = pool.offer(source, (post.0, found.author.0))
            {
                self.describe(candidate, Some(found), None);
            }
        }
    }

    /// Sets the features of a candidate, except that of its sources. `counts` are those of a post that is not recent.
    fn describe(
        &self,
        candidate: &mut Candidate,
        found: Option<&Recent>,
        counts: Option<[u32; 3]>,
    ) {
        let Self { view, taste, interests, likers } = self;
        let (post, author) = (PostId(candidate.post), UserId(candidate.author));
        let counts = match found {
            Some(found) => {
                let (favourites, boosts) = found.counted();
                [favourites, boosts, found.replies.into()]
            }
            None => counts.unwrap_or_default(),
        };
        let tags =
            |found: &Recent| found.tags().filter(|tag| interests.tags.contains(tag)).count() as f64;
        let less = |found: &Recent| {
            found.tags().filter(|tag| taste.less.tags.contains(tag)).count() as f64
        };
        let less =
            found.map_or(0.0, less) + f64::from(u8::from(taste.less.authors.contains(&author)));
        let speaks = found.is_some_and(|found| interests.languages.contains(&found.language));
        let reactions = interests.authors.get(&author).copied().unwrap_or_default();
        let age_ms = taste.now_ms.saturating_sub(post.unix_ms());
        let seed = (u64::from(taste.viewer.0) << 32) ^ (taste.now_ms / HOUR_MS);
        let random = xxh3_64_with_seed(&post.0.to_le_bytes(), seed) as f64 / u64::MAX as f64;
        let is = |is: bool| f64::from(u8::from(is));
        for (feature, value) in [
            (Feature::Age, age_ms as f64 / 1_000.0),
            (Feature::Likes, counts[0].into()),
            (Feature::Boosts, counts[1].into()),
            (Feature::Replies, counts[2].into()),
            (Feature::Followed, is(taste.follows(author))),
            (Feature::Affinity, f64::from(reactions) / f64::from(interests.reactions)),
            (Feature::LikedByFollowed, likers_of(likers, post).map_or(0.0, |of| of.count.into())),
            (Feature::Tags, found.map_or(0.0, tags)),
            (Feature::Language, is(speaks)),
            (Feature::NewAuthor, is(view.new_authors.contains(&author))),
            (Feature::Less, less),
            (Feature::Random, random),
        ] {
            candidate.features.set(feature, value);
        }
    }
}

/// Sets the feature that depends on all sources of a candidate.
fn set_group(candidate: &mut Candidate) {
    let is_from_groups = candidate.sources.contains(Source::Groups);
    candidate.features.set(Feature::Group, f64::from(u8::from(is_from_groups)));
}

impl Taste {
    /// Whether the viewer follows a user.
    pub(crate) fn follows(&self, user: UserId) -> bool {
        self.following.binary_search(&user).is_ok()
    }
}
