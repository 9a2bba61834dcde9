//! Numbers of what is in an export: in its last line, and for the operator.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Numbers of what is in an export.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferCounts {
    /// Users, deleted ones included.
    pub users: u64,
    /// Blocks.
    pub blocks: u64,
    /// Mutes.
    pub mutes: u64,
    /// Notes.
    pub notes: u64,
    /// Lists.
    pub lists: u64,
    /// Follows and requests with options.
    pub follow_options: u64,
    /// Follows.
    pub follows: u64,
    /// Requests to follow.
    pub requests: u64,
    /// Friendships; each counts once.
    pub friendships: u64,
    /// Posts.
    pub posts: u64,
    /// Pictures of posts and profiles. Their files are not in an export.
    pub pictures: u64,
    /// Favourites, bookmarks and pins.
    pub reactions: u64,
    /// Votes in polls.
    pub votes: u64,
    /// Scheduled posts.
    pub scheduled: u64,
    /// Stories.
    pub stories: u64,
    /// Views of stories.
    pub views: u64,
    /// Samples that were added.
    pub samples: u64,
    /// Buckets that have a name.
    pub buckets: u64,
    /// Keys.
    pub keys: u64,
}

impl TransferCounts {
    /// The count of relations of a kind: see [`feed::relation::Relation::line`].
    pub(crate) fn of_relations(&mut self, kind: &str) -> Option<&mut u64> {
        match kind {
            "block" => Some(&mut self.blocks),
            "follow" => Some(&mut self.follows),
            "request" => Some(&mut self.requests),
            "friends" => Some(&mut self.friendships),
            _ => None,
        }
    }
}

/// Shows the numbers in one line.
impl fmt::Display for TransferCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { users, blocks, mutes, notes, lists, follows, requests, .. } = self;
        let Self { friendships, posts, pictures, reactions, votes, scheduled, .. } = self;
        let Self { stories, views, samples, buckets, keys, .. } = self;
        write!(
            out,
            "{users} users, {blocks} blocks, {mutes} mutes, {notes} notes, {lists} lists, {follows} follows, {requests} requests, {friendships} friendships, {posts} \
             posts with {reactions} reactions and {votes} votes, {scheduled} scheduled posts, {pictures} pictures, {stories} stories with {views} views, {samples} samples, {buckets} named buckets, {keys} keys"
        )
    }
}
