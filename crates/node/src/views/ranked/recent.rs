//! Recent posts of the public timeline with their counts, oldest first, in a ring.

use std::collections::VecDeque;

use feed::{PostId, Tag, UserId};
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of hashtags of a post that count.
pub(super) const TAGS_MAX: usize = 4;
/// Time in which the heat of a post falls as if it had half as many reactions.
const HALF_LIFE_MS: f64 = 6.0 * 3_600_000.0;
/// Time from which heat is counted, in milliseconds since 1970, so that it has few digits: 2026-01-01.
const ORIGIN_MS: f64 = 1_767_225_600_000.0;
/// Number of reactions by young accounts that count in addition to as many as there are by others.
pub(super) const YOUNG_EXTRA: u32 = 3;

/// A recent post.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recent {
    pub(super) id: PostId,
    pub(super) author: UserId,
    pub(super) favourites: u32,
    pub(super) boosts: u32,
    /// Number of users who replied, among the first replies.
    pub(super) replies: u16,
    /// Number of reactions by young accounts.
    pub(super) young: u32,
    /// Numbers of hashtags: see [`tag_number`]. 0 for none.
    pub(super) tags: [u32; TAGS_MAX],
    /// Number of the language: see [`language_number`](super::language_number). 0 for none.
    pub(super) language: u16,
    /// Whether the post is neither sensitive nor has a warning, so that it may be suggested.
    pub(super) is_plain: bool,
    pub(super) is_removed: bool,
}

/// Number of a hashtag. Two hashtags may share a number, so reasons name a hashtag of the text.
pub(crate) fn tag_number(tag: &Tag) -> u32 {
    (xxh3_64(tag.as_str().as_bytes()) as u32).max(1)
}

impl Recent {
    /// Numbers of favourites and boosts that count: reactions by young accounts are limited, so that new accounts
    /// alone make no post popular.
    pub(super) fn counted(&self) -> (u32, u32) {
        let old = (self.favourites + self.boosts).saturating_sub(self.young);
        let excess = self.young.saturating_sub(old + YOUNG_EXTRA);
        let boosts = self.boosts.saturating_sub(excess.saturating_sub(self.favourites));
        (self.favourites.saturating_sub(excess), boosts)
    }

    /// Number that orders posts by popularity. It depends only on the counts and on the age relative to other posts, so
    /// time does not change the order: a post that is older by a half-life needs twice as many reactions.
    pub(super) fn heat(&self) -> f32 {
        let (favourites, boosts) = self.counted();
        let count = f64::from(favourites) + 2.0 * f64::from(boosts) + f64::from(self.replies);
        ((1.0 + count).log2() + half_lives(self.id)) as f32
    }

    /// Hashtags of the post.
    pub(super) fn tags(&self) -> impl Iterator<Item = u32> {
        self.tags.into_iter().filter(|tag| *tag != 0)
    }
}

/// Heat of a post without reactions.
pub(super) fn cold(post: PostId) -> f32 {
    half_lives(post) as f32
}

/// Time from the origin to a post, in half-lives.
fn half_lives(post: PostId) -> f64 {
    (post.unix_ms() as f64 - ORIGIN_MS) / HALF_LIFE_MS
}

/// Maximum number of entries of the hash table for each post: room for twice as many posts as there are, so that the
/// table never grows, in a power of two of entries, of which seven eighths are used.
const ENTRIES_MAX: usize = 5;
/// Maximum size of a recent post in bytes, with its entries of the hash table.
pub(super) const POST_BYTES_MAX: usize = size_of::<Recent>() + ENTRIES_MAX * (size_of::<u32>() + 1);
const _: () = assert!(POST_BYTES_MAX < 100);

fn hash(post: PostId) -> u64 {
    xxh3_64(&post.0.to_le_bytes())
}

/// Ring of recent posts, ordered by id.
pub(super) struct Recents {
    ring: VecDeque<Recent>,
    /// Number of each post: how many posts had been added before, modulo 2^32. Found by the id of the post.
    numbers: HashTable<u32>,
    /// Number of the oldest post.
    first: u32,
    max: usize,
}

impl Recents {
    pub(super) fn new(max: usize) -> Self {
        Self { ring: VecDeque::new(), numbers: HashTable::new(), first: 0, max }
    }

    /// Appends a post; returns false if it is not newer than all others.
    pub(super) fn push(&mut self, post: Recent) -> bool {
        if self.max == 0 || self.ring.back().is_some_and(|last| last.id >= post.id) {
            return false;
        }
        if self.ring.capacity() == 0 {
            // Never grows, so it never has twice the size. The system provides memory when it is used.
            self.ring.reserve_exact(self.max);
            self.numbers.reserve(2 * self.max, |_| unreachable!("it is empty"));
        }
        if self.ring.len() >= self.max {
            self.drop_oldest();
        }
        let number = self.first.wrapping_add(self.ring.len() as u32);
        self.ring.push_back(post);
        let Self { ring, numbers, first, .. } = self;
        let id = |number: u32| {
            ring.get(number.wrapping_sub(*first) as usize).map_or(PostId(0), |found| found.id)
        };
        numbers.insert_unique(hash(id(number)), number, |number| hash(id(*number)));
        true
    }

    /// Size of the allocations, for tests.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        // The table has control bytes for 16 more entries.
        self.ring.capacity() * size_of::<Recent>() + self.numbers.allocation_size() - 64
    }

    /// Oldest post of the ring, which may be removed.
    pub(super) fn oldest(&self) -> PostId {
        self.ring.front().map_or(PostId(0), |found| found.id)
    }

    /// Newest post of the ring, which may be removed.
    pub(super) fn newest(&self) -> PostId {
        self.ring.back().map_or(PostId(0), |found| found.id)
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.ring.pop_front() else { return };
        let number = self.first;
        if let Ok(found) = self.numbers.find_entry(hash(oldest.id), |it| *it == number) {
            found.remove();
        }
        self.first = self.first.wrapping_add(1);
    }

    fn place(&self, post: PostId) -> Option<usize> {
        let place = |number: &u32| number.wrapping_sub(self.first) as usize;
        let is_of = |number: &u32| self.ring.get(place(number)).is_some_and(|it| it.id == post);
        self.numbers.find(hash(post), is_of).map(place)
    }

    pub(super) fn get(&self, post: PostId) -> Option<&Recent> {
        self.ring.get(self.place(post)?).filter(|found| !found.is_removed)
    }

    /// Posts that are not removed, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Recent> {
        self.ring.iter().filter(|found| !found.is_removed)
    }

    pub(super) fn get_mut(&mut self, post: PostId) -> Option<&mut Recent> {
        let place = self.place(post)?;
        self.ring.get_mut(place).filter(|found| !found.is_removed)
    }

    pub(super) fn remove(&mut self, post: PostId) {
        if let Some(found) = self.get_mut(post) {
            found.is_removed = true;
        }
    }
}
