//! Numbers of what is in an export: in its last line, and for the operator.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Numbers of what is in an export.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TransferCounts {
    /// Users, deleted ones included.
    pub users: u64,
    /// Blocks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocks: u64,
    /// Mutes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mutes: u64,
    /// Notes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub notes: u64,
    /// Lists.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lists: u64,
    /// Follows and requests with options.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub follow_options: u64,
    /// Follows.
    pub follows: u64,
    /// Requests to follow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Friendships; each counts once.
    pub friendships: u64,
    /// Posts.
    pub posts: u64,
    /// Pictures of posts and profiles. Their files are not in an export.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pictures: u64,
    /// Favourites, bookmarks and pins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reactions: u64,
    /// Votes in polls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub votes: u64,
    /// Scheduled posts.
    #[serde(default, skip_serializing_if = "is_zero")]
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

/// As in earlier formats, which do not have the field.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde needs")]
fn is_zero(number: &u64) -> bool {
    *number == 0
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
