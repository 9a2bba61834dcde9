//! Popular posts of each topic: of all posts, of a language, of a hashtag, of an interest group.
//!
//! **Invariant:** a list has at most [`POPULAR_MAX`] posts and at most [`PER_AUTHOR_MAX`] of each author, the most
//! popular first. A post enters a full list only in place of a less popular one; a post without reactions takes no
//! place from one with reactions that is less than [`PROTECTED_HALF_LIVES`] older. So neither one author nor a flood of
//! posts displaces what is more popular, and no list stays closed. Posts that the view has forgotten take no places.
//! **Invariant:** each kind of topic has its own table, so made-up hashtags displace only hashtags. The same rules hold
//! for topics in a full table, and the posts of an author bring at most [`TAGS_PER_AUTHOR_MAX`] hashtags into it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use feed::{PostId, UserId};
use hashbrown::{HashMap, HashSet};

use super::languages::LANGUAGES;
use super::reactions::Group;
use super::recent::{Recent, cold};

/// Maximum number of posts of a list.
pub(super) const POPULAR_MAX: usize = 64;
/// Maximum number of posts of an author in a list.
const PER_AUTHOR_MAX: usize = 4;
/// Age relative to another post, in half-lives, up to which reactions protect a post from the other: a day.
const PROTECTED_HALF_LIVES: f32 = 4.0;
/// Maximum number of hashtags in the table that posts of one author have brought.
const TAGS_PER_AUTHOR_MAX: usize = 16;
/// Number of topics that are compared to find one to replace.
const COMPARED: usize = 8;
/// Number of removed posts after which the lists of groups are swept at once.
pub(super) const REMOVED_MAX: usize = 1_024;
/// Maximum size of a topic in bytes.
pub(super) const TOPIC_BYTES_MAX: usize = POPULAR_MAX * size_of::<Popular>() + 80;

/// Subject of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    All,
    Language(u16),
    Tag(u32),
    Group(Group),
}

impl Topic {
    /// Topics of a post.
    pub(super) fn of(post: &Recent) -> impl Iterator<Item = Self> + use<> {
        let language = Some(post.language).filter(|language| *language != 0).map(Self::Language);
        let tags = post.tags.into_iter().filter(|tag| *tag != 0).map(Self::Tag);
        [Self::All].into_iter().chain(language).chain(tags)
    }
}

/// A post in a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Popular {
    pub(super) post: PostId,
    pub(super) author: UserId,
    pub(super) heat: f32,
}

impl Popular {
    /// Whether the post has reactions or replies that count.
    fn is_noticed(&self) -> bool {
        self.heat > cold(self.post) + 0.5
    }

    /// Whether reactions protect the post from a more popular one: from one without reactions for a while.
    fn is_protected_from(&self, other: &Self) -> bool {
        let is_younger = || cold(self.post) + PROTECTED_HALF_LIVES > cold(other.post);
        self.is_noticed() && (other.is_noticed() || is_younger())
    }

    /// Whether the post may take the place of another one.
    fn displaces(&self, other: &Self) -> bool {
        match (self.is_noticed(), other.is_protected_from(self)) {
            (true, false) => true,
            (false, true) => false,
            _ => self.heat > other.heat,
        }
    }

    /// Order of a list: the most popular first, newer ones first among equals.
    fn order(&self, other: &Self) -> Ordering {
        other.heat.total_cmp(&self.heat).then(other.post.cmp(&self.post))
    }
}

/// Lists of all topics, in a table for each kind.
pub(super) struct Topics {
    all: Vec<Popular>,
    languages: Table,
    tags: Table,
    groups: Table,
    /// Removed posts that lists of groups may still have.
    removed: HashSet<PostId>,
    /// Oldest post that the view has.
    oldest: PostId,
}

/// Lists of the topics of a kind.
struct Table {
    places: HashMap<Topic, usize>,
    lists: Vec<List>,
    hand: usize,
    max: usize,
}

/// Popular posts of a topic.
struct List {
    topic: Topic,
    /// Author of the post that brought the topic.
    author: UserId,
    posts: Vec<Popular>,
}

impl Topics {
    /// Creates tables with at most `max` topics: of all known languages, if these are not more than a quarter, and of
    /// the rest half hashtags, half groups.
    pub(super) fn new(max: usize) -> Self {
        let languages = LANGUAGES.len().min(max / 4);
        let (tags, groups) = ((max - languages) / 2, (max - languages).div_ceil(2));
        let [languages, tags, groups] = [languages, tags, groups].map(Table::new);
        let (all, removed) = (Vec::new(), HashSet::new());
        Self { all, languages, tags, groups, removed, oldest: PostId(0) }
    }

    /// Notes that the view has no posts before `oldest`.
    pub(super) fn forget_before(&mut self, oldest: PostId) {
        self.oldest = oldest;
    }

    /// Enters a post with its present heat in a list.
    pub(super) fn raise(&mut self, topic: Topic, popular: Popular) {
        let oldest = self.oldest;
        match self.table_mut(topic) {
            None => enter(&mut self.all, popular, oldest),
            Some(table) => {
                let place = table.places.get(&topic).copied();
                let place = place.or_else(|| table.add(topic, popular, oldest));
                if let Some(list) = place.and_then(|place| table.lists.get_mut(place)) {
                    enter(&mut list.posts, popular, oldest);
                }
            }
        }
    }

    /// Removes a post from a list.
    pub(super) fn remove(&mut self, topic: Topic, post: PostId) {
        match self.table_mut(topic) {
            None => self.all.retain(|other| other.post != post),
            Some(table) => {
                let place = table.places.get(&topic).copied();
                if let Some(list) = place.and_then(|place| table.lists.get_mut(place)) {
                    list.posts.retain(|other| other.post != post);
                }
            }
        }
    }

    /// Notes that a post must leave the lists of the groups whose users published it or reacted, which are unknown. As
    /// this takes a pass over all groups, many posts leave together: see [`Topics::sweep_groups`].
    pub(super) fn remove_from_groups(&mut self, post: PostId) {
        self.removed.insert(post);
        if self.removed.len() >= REMOVED_MAX {
            self.sweep_groups();
        }
    }

    /// Whether lists of groups may have removed posts.
    pub(super) fn has_removed(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Removes the removed posts from the lists of all groups.
    pub(super) fn sweep_groups(&mut self) {
        let removed = std::mem::take(&mut self.removed);
        for list in &mut self.groups.lists {
            list.posts.retain(|other| !removed.contains(&other.post));
        }
    }

    /// Removes the posts of an author from all lists.
    pub(super) fn remove_author(&mut self, author: UserId) {
        let Self { all, languages, tags, groups, .. } = self;
        let lists = [languages, tags, groups].into_iter().flat_map(|table| &mut table.lists);
        for posts in lists.map(|list| &mut list.posts).chain([all]) {
            posts.retain(|other| other.author != author);
        }
    }

    /// Popular posts of a topic, the most popular first.
    pub(super) fn of(&self, topic: Topic) -> &[Popular] {
        let table = match topic {
            Topic::All => return &self.all,
            Topic::Language(_) => &self.languages,
            Topic::Tag(_) => &self.tags,
            Topic::Group(_) => &self.groups,
        };
        let place = table.places.get(&topic).copied();
        place.and_then(|place| table.lists.get(place)).map_or(&[], |list| &list.posts)
    }

    /// Popular hashtags with their posts from `since` on, which are by several authors: their numbers, the most popular
    /// together first, at most `max`.
    pub(super) fn popular_tags(&self, since: PostId, max: usize) -> Vec<(u32, Vec<PostId>)> {
        let since = since.max(self.oldest);
        let heat = |list: &List| {
            let posts = || list.posts.iter().filter(|found| found.post >= since);
            let first = posts().next()?;
            posts().find(|found| found.author != first.author)?;
            // The heat of a post with as many reactions as all together. A post without reactions adds nothing; their
            // number decides among hashtags without any.
            let of = |heat: f32| (heat - first.heat).exp2();
            let reactions: f32 = posts().map(|it| of(it.heat) - of(cold(it.post))).sum();
            let all: f32 = posts().map(|it| of(it.heat)).sum();
            let heat = |sum: f32| first.heat + sum.max(0.0).log2();
            Some(([heat(reactions), heat(all)], first.post))
        };
        let lists = self.tags.lists.iter();
        let mut found: Vec<_> = lists.filter_map(|list| Some((heat(list)?, list))).collect();
        found.sort_unstable_by(|(([a, all_a], of_a), _), (([b, all_b], of_b), _)| {
            b.total_cmp(a).then(all_b.total_cmp(all_a)).then(of_b.cmp(of_a))
        });
        found.truncate(max);
        let posts = |list: &List| {
            let posts = list.posts.iter().map(|found| found.post);
            posts.filter(|post| *post >= since).collect()
        };
        let tag = |list: &List| match list.topic {
            Topic::Tag(number) => Some((number, posts(list))),
            _ => None,
        };
        found.into_iter().filter_map(|(_, list)| tag(list)).collect()
    }

    fn table_mut(&mut self, topic: Topic) -> Option<&mut Table> {
        match topic {
            Topic::All => None,
            Topic::Language(_) => Some(&mut self.languages),
            Topic::Tag(_) => Some(&mut self.tags),
            Topic::Group(_) => Some(&mut self.groups),
        }
    }
}

impl Table {
    fn new(max: usize) -> Self {
        Self { places: HashMap::new(), lists: Vec::new(), hand: 0, max }
    }

    /// Adds a topic with its first post. If the table is full, the topic replaces that of some others whose best post
    /// is the least popular, if the new post may displace that. If the author has brought as many hashtags as allowed,
    /// it replaces one of these in the same way.
    fn add(&mut self, topic: Topic, popular: Popular, oldest: PostId) -> Option<usize> {
        let (author, len) = (popular.author, self.lists.len());
        let new = List { topic, author, posts: Vec::new() };
        let mut compared: Vec<_> = match topic {
            Topic::Tag(_) => (0..len).filter(|place| self.is_by(*place, author)).collect(),
            _ => Vec::new(),
        };
        if compared.len() < TAGS_PER_AUTHOR_MAX {
            if len < self.max {
                self.lists.push(new);
                self.places.insert(topic, len);
                return Some(len);
            }
            compared = (0..COMPARED.min(len)).map(|n| (self.hand + n) % len).collect();
            self.hand = (self.hand + COMPARED) % len.max(1);
        }
        let best = |place: usize| {
            let mut posts = self.lists.get(place)?.posts.iter();
            // A list has no post if all were deleted or forgotten.
            Some((place, posts.find(|it| it.post >= oldest)))
        };
        let order = |(_, best): &(usize, Option<&Popular>)| {
            best.map_or((false, f32::MIN), |best| (best.is_protected_from(&popular), best.heat))
        };
        let found = compared.into_iter().filter_map(best);
        let found = found.min_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let (place, _) = found.filter(|(_, best)| best.is_none_or(|it| popular.displaces(it)))?;
        let old = self.lists.get_mut(place)?;
        self.places.remove(&old.topic);
        *old = new;
        self.places.insert(topic, place);
        Some(place)
    }

    fn is_by(&self, place: usize, author: UserId) -> bool {
        self.lists.get(place).is_some_and(|list| list.author == author)
    }
}

/// Enters a post in a list, or gives it another place if it is in the list. Posts before `oldest` leave the list.
fn enter(list: &mut Vec<Popular>, popular: Popular, oldest: PostId) {
    let is_by_author = |other: &Popular| other.author == popular.author;
    list.retain(|other| other.post >= oldest);
    if let Some(place) = list.iter().position(|other| other.post == popular.post) {
        list.remove(place);
    } else {
        let is_full_of_author =
            list.iter().filter(|other| is_by_author(other)).count() >= PER_AUTHOR_MAX;
        if is_full_of_author || list.len() >= POPULAR_MAX {
            let may_go = |other: &Popular| !is_full_of_author || is_by_author(other);
            // The least popular post, or, if there are any, the least popular that is not protected.
            let is_open = |other: &Popular| may_go(other) && !other.is_protected_from(&popular);
            let place = list.iter().rposition(is_open);
            let place = place.or_else(|| list.iter().rposition(may_go));
            let Some(place) = place
                .filter(|place| list.get(*place).is_some_and(|other| popular.displaces(other)))
            else {
                return;
            };
            list.remove(place);
        }
    }
    let place = list.partition_point(|other| other.order(&popular) == Ordering::Less);
    list.insert(place, popular);
}

/// Posts of several lists, the most popular first. A post of several lists occurs several times.
pub(super) fn merged<'a>(
    lists: impl Iterator<Item = &'a [Popular]>,
) -> impl Iterator<Item = PostId> {
    let mut heads: BinaryHeap<Head<'a>> = lists.filter_map(Head::of).collect();
    std::iter::from_fn(move || {
        let Head { first, rest } = heads.pop()?;
        heads.extend(Head::of(rest));
        Some(first.post)
    })
}

/// A list that is not empty, ordered by its first post: the most popular is the greatest.
struct Head<'a> {
    first: &'a Popular,
    rest: &'a [Popular],
}

impl<'a> Head<'a> {
    fn of(list: &'a [Popular]) -> Option<Self> {
        list.split_first().map(|(first, rest)| Self { first, rest })
    }
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.first.order(self.first)
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head<'_> {}
