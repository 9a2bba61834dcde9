//! Numbers of the items in an export, for its last line and for the operator.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Numbers of the items in an export.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferCounts {
    /// Number of users, including deleted ones.
    pub users: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of mutes.
    pub mutes: u64,
    /// Number of authors in whom users are not interested.
    pub not_interested: u64,
    /// Number of notes.
    pub notes: u64,
    /// Number of lists.
    pub lists: u64,
    /// Number of follows and requests with options.
    pub follow_options: u64,
    /// Number of follows.
    pub follows: u64,
    /// Number of follow requests.
    pub requests: u64,
    /// Number of friendships; each counts once.
    pub friendships: u64,
    /// Number of posts.
    pub posts: u64,
    /// Number of pictures of posts and profiles. Their files are not in an export.
    pub pictures: u64,
    /// Number of reactions, including boosts.
    pub reactions: u64,
    /// Number of votes in polls.
    pub votes: u64,
    /// Number of scheduled posts.
    pub scheduled: u64,
    /// Number of stories.
    pub stories: u64,
    /// Number of views of stories.
    pub views: u64,
    /// Number of added samples.
    pub samples: u64,
    /// Number of stored ranked feeds.
    pub feeds: u64,
    /// Number of named buckets.
    pub buckets: u64,
    /// Number of keys.
    pub keys: u64,
}

impl TransferCounts {
    /// Returns the count of relations of a kind: see [`feed::relation::Relation::line`].
    pub(crate) fn of_relations(&mut self, kind: &str) -> Option<&mut u64> {
        match kind {
            "block" => Some(&mut self.blocks),
            "not_interested" => Some(&mut self.not_interested),
            "follow" => Some(&mut self.follows),
            "request" => Some(&mut self.requests),
            "friends" => Some(&mut self.friendships),
            _ => None,
        }
    }
}

/// Displays the numbers in one line.
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
