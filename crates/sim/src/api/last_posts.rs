//! Last known post of each user, for replies.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::TimelinePost;
use crate::workload::PostKind;

/// Ids of the last known posts, by user.
#[derive(Default)]
pub(super) struct LastPosts(Mutex<HashMap<u32, u64>>);

impl LastPosts {
    pub(super) fn add(&self, post: &TimelinePost) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert(post.author, post.id);
    }

    /// Returns the kind of a post, and the post that it replies to. A post that begins with a mention is a reply if a
    /// post of the mentioned user is known; otherwise the mention moves into the text.
    pub(super) fn parent(&self, kind: PostKind<u32>) -> (PostKind<u32>, Option<u64>) {
        let PostKind::MentionFirst(other) = kind else { return (kind, None) };
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match last.get(&other).copied() {
            Some(parent) => (kind, Some(parent)),
            None => (PostKind::MentionWithin(other), None),
        }
    }
}
