//! Popular posts of each topic: of all posts, of a language, of a hashtag, of an interest group.
//!
//! **Invariant:** a list has at most [`POPULAR_MAX`] posts and at most [`PER_AUTHOR_MAX`] of each author. A post enters
//! a full list only if it is more popular than one there; so do topics in the full table. So neither one author nor a
//! flood of new hashtags displaces what is more popular.

use feed::{PostId, UserId};
use hashbrown::HashMap;

use super::reactions::Group;
use super::recent::Recent;

/// Maximum number of posts of a list.
pub(super) const POPULAR_MAX: usize = 64;
/// Maximum number of posts of an author in a list.
const PER_AUTHOR_MAX: usize = 4;
/// Number of topics that are compared to find one to replace.
const COMPARED: usize = 8;
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

/// Lists of all topics.
pub(super) struct Topics {
    places: HashMap<Topic, usize>,
    lists: Vec<(Topic, Vec<Popular>)>,
    hand: usize,
    max: usize,
}

impl Topics {
    pub(super) fn new(max: usize) -> Self {
        Self { places: HashMap::new(), lists: Vec::new(), hand: 0, max }
    }

    /// Enters a post with its present heat in a list.
    pub(super) fn raise(&mut self, topic: Topic, popular: Popular) {
        let place = self.places.get(&topic).copied().or_else(|| self.add(topic, popular.heat));
        if let Some((_, list)) = place.and_then(|place| self.lists.get_mut(place)) {
            enter(list, popular);
        }
    }

    /// Removes a post from a list.
    pub(super) fn remove(&mut self, topic: Topic, post: PostId) {
        let place = self.places.get(&topic).copied();
        if let Some((_, list)) = place.and_then(|place| self.lists.get_mut(place)) {
            list.retain(|other| other.post != post);
        }
    }

    /// Removes the posts of an author from all lists.
    pub(super) fn remove_author(&mut self, author: UserId) {
        for (_, list) in &mut self.lists {
            list.retain(|other| other.author != author);
        }
    }

    /// Popular posts of a topic, in no order.
    pub(super) fn of(&self, topic: Topic) -> &[Popular] {
        let place = self.places.get(&topic).copied();
        place.and_then(|place| self.lists.get(place)).map_or(&[], |(_, list)| list)
    }

    /// Adds a topic. If the table is full, it replaces the coldest of some, unless that is warmer.
    fn add(&mut self, topic: Topic, heat: f32) -> Option<usize> {
        let place = if self.lists.len() < self.max {
            self.lists.push((topic, Vec::new()));
            self.lists.len() - 1
        } else {
            let len = self.lists.len();
            let compared = (0..COMPARED.min(len)).map(|n| (self.hand + n) % len);
            let warmth = |place: &usize| {
                let (topic, list) = self.lists.get(*place)?;
                // The lists of all posts and of languages are few, and stay.
                let may_go = matches!(topic, Topic::Tag(_) | Topic::Group(_));
                may_go.then(|| list.iter().map(|it| it.heat).fold(f32::MIN, f32::max))
            };
            let found = compared.filter_map(|place| Some((place, warmth(&place)?)));
            let coldest = found.min_by(|(_, a), (_, b)| a.total_cmp(b));
            self.hand = (self.hand + COMPARED) % len.max(1);
            let (place, _) = coldest.filter(|(_, warmth)| *warmth < heat)?;
            let old = self.lists.get_mut(place)?;
            self.places.remove(&old.0);
            *old = (topic, Vec::new());
            place
        };
        self.places.insert(topic, place);
        Some(place)
    }
}

fn enter(list: &mut Vec<Popular>, popular: Popular) {
    if let Some(known) = list.iter_mut().find(|known| known.post == popular.post) {
        known.heat = popular.heat;
        return;
    }
    let is_by_author = |other: &&mut Popular| other.author == popular.author;
    let by_author = list.iter().filter(|other| other.author == popular.author).count();
    let is_full_of_author = by_author >= PER_AUTHOR_MAX;
    if !is_full_of_author && list.len() < POPULAR_MAX {
        list.push(popular);
        return;
    }
    let may_go = list.iter_mut().filter(|other| !is_full_of_author || is_by_author(other));
    if let Some(coldest) = may_go.min_by(|a, b| a.heat.total_cmp(&b.heat))
        && coldest.heat < popular.heat
    {
        *coldest = popular;
    }
}
