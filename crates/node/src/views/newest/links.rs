//! Posts in the order of ids, with links between those of each author.
//!
//! **Invariant:** a post is linked to the next newer and the next older post of its author, and `ends` has the author's
//! first and last post. Authors whose ids are equal modulo `ends_max` share links, and the reader separates their
//! posts.

use std::collections::VecDeque;
use std::ops::Range;

use feed::Posted;
use feed::{Listed, PostId, UserId};

/// Divisor of the memory of the list: `ends` may take the quotient. By default, the first 2.6 million users have
/// separate ends.
const PARTS: usize = 2;
/// Number of ends that are allocated together.
const CHUNK: usize = 64;
/// User id from which ends are always shared.
const ENDS_MAX: usize = 1 << 28;

/// Permanent number of a post in links: its index plus the number of posts that left before it, modulo [`NONE`].
type Number = u32;
const NONE: Number = Number::MAX;
/// Id that no user has: the author of a removed post.
const NOBODY: UserId = UserId(u32::MAX);

/// A post with its author.
#[derive(Clone, Copy)]
pub(in crate::views) struct Entry {
    pub(in crate::views) post: PostId,
    pub(in crate::views) author: UserId,
    pub(in crate::views) listed: Listed,
}

#[derive(Clone, Copy)]
struct Linked {
    post: PostId,
    listed: Listed,
    author: UserId,
    newer: Number,
    older: Number,
}

/// First and last post of an author.
#[derive(Clone, Copy)]
struct Ends {
    newest: Number,
    oldest: Number,
}

const NO_POSTS: Ends = Ends { newest: NONE, oldest: NONE };
const POST_BYTES: usize = size_of::<Linked>();
const CHUNK_BYTES: usize = size_of::<[Ends; CHUNK]>() + size_of::<Option<Box<[Ends; CHUNK]>>>();
const _: () = assert!(POST_BYTES == 32 && size_of::<Ends>() == 8);

/// Linked list of posts.
pub(super) struct Links {
    posts: VecDeque<Linked>,
    /// Number of the first post.
    first: Number,
    /// Number of posts that were added as the newest.
    added: u64,
    ends_max: usize,
    ends: Vec<Option<Box<[Ends; CHUNK]>>>,
    chunks: usize,
}

impl Links {
    /// Creates an empty list with room for as many posts as fit into `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        let posts = (bytes / POST_BYTES).min(NONE as usize / 2);
        let ends_max = (bytes / PARTS / size_of::<Ends>()).clamp(CHUNK, ENDS_MAX);
        // The capacity reserves address space without using memory, so that growing copies nothing.
        let posts = VecDeque::with_capacity(posts + 1);
        Self { posts, first: 0, added: 0, ends_max, ends: Vec::new(), chunks: 0 }
    }

    /// Returns the used memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.posts.len() * POST_BYTES + self.chunks * CHUNK_BYTES
    }

    /// Returns the number of posts.
    pub(super) fn len(&self) -> usize {
        self.posts.len()
    }

    /// Returns the number of posts that were added as the newest so far.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Whether another post fits into `bytes_max`.
    pub(super) fn has_room(&self, bytes_max: usize) -> bool {
        self.bytes() + POST_BYTES <= bytes_max && self.posts.len() < NONE as usize / 2
    }

    /// Returns the post at an index; the oldest has index 0.
    pub(super) fn entry(&self, place: usize) -> Entry {
        let Linked { post, author, listed, .. } = *self.linked(place);
        Entry { post, author, listed }
    }

    /// Returns the posts at these indices, which must be within the list.
    pub(super) fn entries(&self, places: Range<usize>) -> impl Iterator<Item = Entry> {
        let posts = self.posts.range(places);
        posts.map(|Linked { post, author, listed, .. }| Entry {
            post: *post,
            author: *author,
            listed: *listed,
        })
    }

    /// Returns the index of the newest post by `author`.
    #[inline]
    pub(super) fn newest(&self, author: UserId) -> Option<usize> {
        self.place(self.ends(author).newest)
    }

    /// Appends the indices of the newest posts by these authors that are at `place` or later.
    pub(super) fn newest_from(&self, place: usize, authors: &[UserId], found: &mut Vec<usize>) {
        let newest = authors.iter().filter_map(|author| self.newest(*author));
        found.extend(newest.filter(|newest| *newest >= place));
    }

    /// Returns the index of the next older post by the author of the post at `place`.
    pub(super) fn older(&self, place: usize) -> Option<usize> {
        self.place(self.linked(place).older)
    }

    /// Adds a post that is newer than all others; ignores any other post.
    pub(super) fn push_newest(&mut self, author: UserId, (post, listed): Posted) {
        if self.posts.back().is_some_and(|newest| newest.post >= post) {
            return;
        }
        self.added += 1;
        let number = self.number(self.posts.len());
        let ends = self.ends(author);
        let older = ends.newest;
        self.posts.push_back(Linked { post, listed, author, newer: NONE, older });
        if let Some(older) = self.place(older) {
            self.linked_mut(older).newer = number;
        }
        let oldest = if ends.oldest == NONE { number } else { ends.oldest };
        *self.ends_mut(author) = Ends { newest: number, oldest };
    }

    /// Adds a post that is older than all others; ignores any other post.
    pub(super) fn push_oldest(&mut self, author: UserId, (post, listed): Posted) {
        if self.posts.front().is_some_and(|oldest| oldest.post <= post) {
            return;
        }
        self.first = self.first.checked_sub(1).unwrap_or(NONE - 1);
        let number = self.first;
        let ends = self.ends(author);
        let newer = ends.oldest;
        self.posts.push_front(Linked { post, listed, author, newer, older: NONE });
        if let Some(newer) = self.place(newer) {
            self.linked_mut(newer).older = number;
        }
        let newest = if ends.newest == NONE { number } else { ends.newest };
        *self.ends_mut(author) = Ends { newest, oldest: number };
    }

    /// Removes the oldest post and returns it.
    pub(super) fn pop_oldest(&mut self) -> Option<PostId> {
        let post = self.posts.front()?.post;
        self.unlink(0);
        self.posts.pop_front();
        self.first = if self.first == NONE - 1 { 0 } else { self.first + 1 };
        Some(post)
    }

    /// Replaces the list entry of a post; returns false if the post is not in the list.
    pub(super) fn relist(&mut self, (post, listed): Posted) -> bool {
        let Ok(place) = self.posts.binary_search_by_key(&post, |linked| linked.post) else {
            return false;
        };
        self.linked_mut(place).listed = listed;
        true
    }

    /// Removes a post; returns false if the post is not in the list.
    pub(super) fn remove(&mut self, post: PostId) -> bool {
        let Ok(place) = self.posts.binary_search_by_key(&post, |linked| linked.post) else {
            return false;
        };
        self.unlink(place);
        self.linked_mut(place).author = NOBODY;
        true
    }

    /// Removes a post from the links of its author, unless that was done before.
    fn unlink(&mut self, place: usize) {
        let Linked { author, newer, older, .. } = *self.linked(place);
        if author == NOBODY {
            return;
        }
        let mut ends = self.ends(author);
        match self.place(newer) {
            Some(newer) => self.linked_mut(newer).older = older,
            None => ends.newest = older,
        }
        match self.place(older) {
            Some(older) => self.linked_mut(older).newer = newer,
            None => ends.oldest = newer,
        }
        *self.ends_mut(author) = ends;
    }

    /// Returns the number of the post at an index.
    fn number(&self, place: usize) -> Number {
        let number = (u64::from(self.first) + place as u64) % u64::from(NONE);
        number as Number
    }

    /// Returns the index of the post with this number.
    #[inline]
    fn place(&self, number: Number) -> Option<usize> {
        let place = || match number.checked_sub(self.first) {
            Some(place) => place as usize,
            None => (NONE - self.first + number) as usize,
        };
        (number != NONE).then(place)
    }

    fn linked(&self, place: usize) -> &Linked {
        self.posts.get(place).unwrap_or_else(|| unreachable!("links are between posts of the list"))
    }

    fn linked_mut(&mut self, place: usize) -> &mut Linked {
        self.posts.get_mut(place).unwrap_or_else(|| unreachable!("as above"))
    }

    /// Returns the index of the ends of an author, without a division, which would take longer than the rest of a
    /// look-up.
    #[inline]
    fn index(&self, author: UserId) -> usize {
        let index = author.0 as usize;
        if index < self.ends_max { index } else { index % self.ends_max }
    }

    #[inline]
    fn ends(&self, author: UserId) -> Ends {
        let index = self.index(author);
        let chunk = self.ends.get(index / CHUNK).and_then(Option::as_ref);
        chunk.and_then(|chunk| chunk.get(index % CHUNK)).copied().unwrap_or(NO_POSTS)
    }

    fn ends_mut(&mut self, author: UserId) -> &mut Ends {
        let index = self.index(author);
        if self.ends.len() <= index / CHUNK {
            self.ends.resize_with(index / CHUNK + 1, || None);
        }
        let chunk = self.ends.get_mut(index / CHUNK);
        let chunk = chunk.unwrap_or_else(|| unreachable!("there are as many now"));
        if chunk.is_none() {
            self.chunks += 1;
        }
        let chunk = chunk.get_or_insert_with(|| Box::new([NO_POSTS; CHUNK]));
        chunk.get_mut(index % CHUNK).unwrap_or_else(|| unreachable!("a remainder is within"))
    }
}
