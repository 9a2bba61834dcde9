//! Facts about conversations: see [`crate::conversation`].

use rows::{NameTable, Rows, SetTable, Span};

use super::Facts;
use crate::ids::{PostId, UserId};

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// First post of the conversation of a direct post by or to a user.
    #[must_use]
    pub fn conversation_of(&self, user: UserId, post: u64) -> Option<PostId> {
        self.rows.member(SetTable::DirectPosts, user.0.into(), post).map(PostId)
    }

    /// Direct posts by or to a user within `span` of post ids, each with the first post of its conversation.
    pub(crate) fn direct_posts(&self, user: UserId, span: Span) -> Vec<(PostId, PostId)> {
        let rows = self.rows.members(SetTable::DirectPosts, user.0.into(), span);
        rows.into_iter().map(|(post, first)| (PostId(post), PostId(first))).collect()
    }

    /// Newest direct posts by or to a user in a conversation that are older than `before`: at most `limit`.
    pub(crate) fn conversation_posts(
        &self,
        user: UserId,
        first: PostId,
        before: PostId,
        limit: usize,
    ) -> Vec<PostId> {
        let Some(last) = before.0.checked_sub(1) else { return Vec::new() };
        let start = [&user.0.to_be_bytes()[..], &first.0.to_be_bytes()].concat();
        let from = (!last).to_be_bytes();
        let posts = self.rows.names_under(NameTable::ConversationPost, &start, &from, limit);
        let ids = posts.iter().filter_map(|id| Some(!u64::from_be_bytes(*id.first_chunk()?)));
        ids.map(PostId).collect()
    }

    /// Author of a direct post that mentions `user`.
    pub(crate) fn direct_author(&self, user: UserId, post: PostId) -> Option<UserId> {
        let number = self.rows.member(SetTable::Mentions, user.0.into(), post.0)?;
        number.checked_sub(1).map(|author| UserId(author as u32))
    }
}
