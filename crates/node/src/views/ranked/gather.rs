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
use super::reactions::Group;
use super::recent::Recent;
use super::topics::{Popular, Topic};

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
    pub(crate) following: Vec<UserId>,
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
    fn add(&mut self, user: UserId) {
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
    /// Followed users who reacted, by post.
    pub(crate) likers: HashMap<PostId, Likers>,
    /// Numbers of the hashtags that the viewer follows or uses.
    pub(crate) tags: HashSet<u32>,
}

/// Interests of a viewer, derived from recent posts, and the new authors.
struct Interests {
    tags: HashSet<u32>,
    languages: SmallVec<[u16; LANGUAGES_READ]>,
    /// Posts to which the viewer reacted.
    reacted: Vec<PostId>,
    /// Number of reactions by author.
    authors: HashMap<UserId, u32>,
    /// Number of reactions, at least 1.
    reactions: u32,
    /// Authors of the newest posts of new authors.
    new_authors: HashSet<UserId>,
}

impl View {
    /// Gathers the candidates of a feed.
    pub(super) fn gather(&self, feed: &Feed, taste: &Taste) -> Gathered {
        let counts = taste.home.iter().filter_map(|it| Some((it.post, it.counts?)));
        let outside: HashMap<_, _> = counts.collect();
        let interests = self.interests(taste);
        let likers = self.likers(taste);
        let wanted = taste.home.iter().filter(|it| !taste.less.posts.contains(&it.post));
        let mut pool = match taste.is_given {
            true => Pool::given(feed, wanted.clone().map(|it| (it.post.0, it.author.0))),
            false => Pool::new(feed),
        };
        for AtHome { post, author, .. } in wanted {
            if !taste.is_given || taste.follows(*author) {
                pool.offer(Source::Following, (post.0, author.0));
            }
        }
        let mut liked: Vec<_> =
            likers.iter().map(|(post, of)| (Reverse(of.count), Reverse(*post))).collect();
        liked.sort_unstable();
        let liked = liked.into_iter().map(|(_, Reverse(post))| post);
        self.offer(&mut pool, Source::LikedByFollowed, liked, (taste, &interests));
        let of_tags = interests.tags.iter().map(|tag| Topic::Tag(*tag));
        self.offer_popular(&mut pool, Source::FollowedHashtags, of_tags, (taste, &interests));
        let of_groups = self.groups(taste, &interests).into_iter().map(Topic::Group);
        self.offer_popular(&mut pool, Source::Groups, of_groups, (taste, &interests));
        let of_languages = interests.languages.iter().map(|number| Topic::Language(*number));
        self.offer_popular(&mut pool, Source::PopularInLanguage, of_languages, (taste, &interests));
        self.offer_popular(&mut pool, Source::Popular, [Topic::All], (taste, &interests));
        let new = self.new_posts.iter().rev().map(|(post, _)| *post);
        self.offer(&mut pool, Source::NewAuthors, new, (taste, &interests));

        let mut candidates = pool.into_candidates();
        for candidate in &mut candidates {
            self.describe(candidate, taste, &interests, &likers, &outside);
        }
        Gathered { candidates, likers, tags: interests.tags }
    }

    fn interests(&self, taste: &Taste) -> Interests {
        let reacted: Vec<_> = self.reactions.of(taste.viewer).collect();
        let mut interests = Interests {
            tags: taste.tags.iter().copied().collect(),
            languages: SmallVec::new(),
            reacted,
            authors: HashMap::new(),
            reactions: 1,
            new_authors: self.new_posts.iter().map(|(_, author)| *author).collect(),
        };
        let own = taste.own.iter().filter_map(|post| self.posts.get(*post));
        let reacted = interests.reacted.iter().filter_map(|post| self.posts.get(*post));
        for post in own.chain(reacted) {
            for tag in post.tags() {
                if interests.tags.len() < TAGS_READ {
                    interests.tags.insert(tag);
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

    /// Interest groups of most followed users and of the authors of posts to which the viewer reacted. A user who has
    /// just followed a few users has groups at once.
    fn groups(&self, taste: &Taste, interests: &Interests) -> Vec<Group> {
        let followed = taste.following.iter().take(GROUP_NEIGHBORS).copied();
        let neighbors = followed.chain(interests.authors.keys().copied());
        let groups = self.reactions.groups(neighbors).into_iter();
        let groups = groups.filter(|(_, votes)| *votes >= GROUP_VOTES).take(GROUPS_READ);
        groups.map(|(group, _)| group).collect()
    }

    /// Recent posts to which followed users reacted.
    fn likers(&self, taste: &Taste) -> HashMap<PostId, Likers> {
        let following = &taste.following;
        let turn = (taste.now_ms / HOUR_MS) as usize;
        let from = if following.len() > FOLLOWED_READ { turn * FOLLOWED_READ } else { 0 };
        let read = following.iter().cycle().skip(from % following.len().max(1));
        let mut likers = HashMap::<PostId, Likers>::new();
        for user in read.take(following.len().min(FOLLOWED_READ)) {
            for post in self.reactions.of(*user).take(REACTIONS_READ) {
                likers.entry(post).or_default().add(*user);
            }
        }
        likers
    }

    /// Offers recent posts by others to which the viewer has not reacted, and of users who are not followed only those
    /// that may be suggested.
    fn offer(
        &self,
        pool: &mut Pool,
        source: Source,
        posts: impl Iterator<Item = PostId>,
        (taste, interests): (&Taste, &Interests),
    ) {
        for post in posts {
            if !pool.has_room(source) {
                return;
            }
            let is_known = interests.reacted.contains(&post);
            let is_offered = |found: &&Recent| {
                found.author != taste.viewer
                    && !is_known
                    && !taste.less.posts.contains(&post)
                    && !taste.hidden.contains(&found.author)
                    && taste.not_interested.binary_search(&found.author).is_err()
                    && (found.is_plain || taste.follows(found.author))
            };
            if let Some(found) = self.posts.get(post).filter(is_offered) {
                pool.offer(source, (post.0, found.author.0));
            }
        }
    }

    /// Offers the popular posts of topics, the most popular first.
    fn offer_popular(
        &self,
        pool: &mut Pool,
        source: Source,
        topics: impl IntoIterator<Item = Topic>,
        of: (&Taste, &Interests),
    ) {
        if !pool.has_room(source) {
            return;
        }
        let mut posts: Vec<Popular> = Vec::new();
        for topic in topics {
            posts.extend_from_slice(self.topics.of(topic));
        }
        posts.sort_unstable_by(|a, b| b.heat.total_cmp(&a.heat).then(b.post.cmp(&a.post)));
        posts.dedup_by_key(|popular| popular.post);
        self.offer(pool, source, posts.into_iter().map(|popular| popular.post), of);
    }

    /// Sets the features of a candidate.
    fn describe(
        &self,
        candidate: &mut Candidate,
        taste: &Taste,
        interests: &Interests,
        likers: &HashMap<PostId, Likers>,
        outside: &HashMap<PostId, [u32; 3]>,
    ) {
        let (post, author) = (PostId(candidate.post), UserId(candidate.author));
        let found = self.posts.get(post);
        let counts = match found {
            Some(found) => {
                let (favourites, boosts) = found.counted();
                [favourites, boosts, found.replies.into()]
            }
            None => outside.get(&post).copied().unwrap_or_default(),
        };
        let tags =
            |found: &Recent| found.tags().filter(|tag| interests.tags.contains(tag)).count() as f64;
        let less = |found: &Recent| {
            found.tags().filter(|tag| taste.less.tags.contains(tag)).count() as f64
        };
        let less =
            found.map_or(0.0, less) + f64::from(u8::from(taste.less.authors.contains(&author)));
        let is_new = interests.new_authors.contains(&author);
        let speaks = found.is_some_and(|found| interests.languages.contains(&found.language));
        let reactions = interests.authors.get(&author).copied().unwrap_or_default();
        let age_ms = taste.now_ms.saturating_sub(post.unix_ms());
        let seed = (u64::from(taste.viewer.0) << 32) ^ (taste.now_ms / HOUR_MS);
        let random = xxh3_64_with_seed(&post.0.to_le_bytes(), seed) as f64 / u64::MAX as f64;
        for (feature, value) in [
            (Feature::Age, age_ms as f64 / 1_000.0),
            (Feature::Likes, counts[0].into()),
            (Feature::Boosts, counts[1].into()),
            (Feature::Replies, counts[2].into()),
            (Feature::Followed, f64::from(u8::from(taste.follows(author)))),
            (Feature::Affinity, f64::from(reactions) / f64::from(interests.reactions)),
            (Feature::LikedByFollowed, likers.get(&post).map_or(0.0, |of| of.count.into())),
            (Feature::Tags, found.map_or(0.0, tags)),
            (Feature::Group, f64::from(u8::from(candidate.sources.contains(Source::Groups)))),
            (Feature::Language, f64::from(u8::from(speaks))),
            (Feature::NewAuthor, f64::from(u8::from(is_new))),
            (Feature::Less, less),
            (Feature::Random, random),
        ] {
            candidate.features.set(feature, value);
        }
    }
}

impl Taste {
    /// Whether the viewer follows a user.
    pub(crate) fn follows(&self, user: UserId) -> bool {
        self.following.binary_search(&user).is_ok()
    }
}
