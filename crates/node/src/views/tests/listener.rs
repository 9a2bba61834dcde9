//! A minimal client of a live stream.

use std::collections::BTreeSet;

use feed::PostId;
use tokio::sync::watch;

use crate::views::{Change, News};

/// A client that shows a user's whole home timeline and changes it only by the news it gets.
pub(super) struct Listener {
    pub(super) news: watch::Receiver<News>,
    pub(super) read: u64,
    pub(super) position: u64,
    /// Shown posts, each with the time at which its text was read.
    pub(super) shown: BTreeSet<(PostId, u64)>,
}

impl Listener {
    /// Creates a client that has read the whole home timeline at `position`, after the watch began.
    pub(super) fn new(
        news: watch::Receiver<News>,
        position: u64,
        shown: BTreeSet<(PostId, u64)>,
    ) -> Self {
        Self { news, read: 0, position, shown }
    }

    /// Whether a post is shown.
    pub(super) fn shows(&self, post: PostId) -> bool {
        self.shown.iter().any(|(id, _)| *id == post)
    }

    /// Shows those of `posts` that are new, then applies the changes. `texts` is the present home timeline.
    pub(super) fn apply(
        &mut self,
        posts: &[PostId],
        changes: &[(u64, Change)],
        texts: &BTreeSet<(PostId, u64)>,
        now: u64,
    ) {
        let read = |post: PostId| texts.iter().filter(move |(id, _)| *id == post).copied();
        let new = posts.iter().filter(|post| post.0 > self.position);
        self.shown.extend(new.flat_map(|post| read(*post)));
        self.position = now;
        for (number, change) in changes {
            self.read = *number;
            match change {
                Change::Deleted(post) | Change::MentionDeleted(post, _) => {
                    self.shown.retain(|(id, _)| id != post);
                }
                Change::Edited(post) => {
                    let shown = self.shows(*post);
                    self.shown.retain(|(id, _)| id != post);
                    self.shown.extend(read(*post).filter(|_| shown));
                }
                Change::Missed => self.shown.clone_from(texts),
                Change::Followed(_) | Change::Unfollowed(_) | Change::Filters => {}
            }
        }
    }
}
