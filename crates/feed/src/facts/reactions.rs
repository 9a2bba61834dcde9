//! Facts about favourites, bookmarks and pins.
//!
//! A reaction has a row of its user, by its stamp, and one of its post. The rows of a deleted post are removed later, in
//! pieces: until then reads of a user's reactions find no post for them.
//!
//! **Invariant:** a post that is stored counts its favourites.

use rows::{PointTable, Rows, SetTable, Span};

use super::{Facts, Txn, step};
use crate::ids::{PostId, UserId};
use crate::post::Visibility;
use crate::reaction::Reaction;
use crate::write;

/// Replies that are read to count those that everybody may see.
const REPLIES_READ: usize = 1_000;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The stamp of a reaction of `user` to a post, if there is one.
    #[must_use]
    pub fn reaction(&self, user: UserId, post: PostId, reaction: Reaction) -> Option<u64> {
        self.rows.member(SetTable::Reactions, post.0, reaction.item(user))
    }

    /// The posts that `user` reacted to within `span` of the stamps of the reactions, with these stamps. The posts may be
    /// hidden from the user by now, or deleted.
    #[must_use]
    pub fn reactions_of(&self, user: UserId, reaction: Reaction, span: Span) -> Vec<(u64, PostId)> {
        let rows = self.rows.members(reaction.table(), user.0.into(), span);
        rows.into_iter().map(|(stamp, post)| (stamp, PostId(post))).collect()
    }

    /// The users within `span` of ids who favourited a post. Some may be deleted: see [`Facts::is_hidden`].
    #[must_use]
    pub fn favourited_by(&self, post: PostId, span: Span) -> Vec<UserId> {
        let span = Reaction::Favourite.items(span);
        let rows = self.rows.members(SetTable::Reactions, post.0, span);
        rows.into_iter().filter_map(|(item, _)| Some(Reaction::of_item(item)?.1)).collect()
    }

    /// Number of users who favourited a post, without deleted ones.
    #[must_use]
    pub fn favourites(&self, post: PostId) -> u32 {
        let stored = self.stored_favourites(post);
        if stored == 0 {
            return 0;
        }
        let deleted = self.erasing().into_iter();
        let deleted =
            deleted.filter(|user| self.reaction(*user, post, Reaction::Favourite).is_some());
        stored.saturating_sub(deleted.count() as u32)
    }

    pub(crate) fn stored_favourites(&self, post: PostId) -> u32 {
        let row = self.rows.point(PointTable::PostCounts, post.0);
        let favourites = row.and_then(|row| row.first_chunk().copied().map(u32::from_le_bytes));
        favourites.unwrap_or(0)
    }

    /// Number of replies to a post that everybody may see, counted up to `max`, among its oldest 1,000 replies.
    #[must_use]
    pub fn replies_count(&self, post: PostId, max: usize) -> usize {
        let replies = self.replies_to(post, Span { limit: REPLIES_READ, ..Span::ALL }).into_iter();
        let is_counted = |(reply, visibility): &(PostId, Visibility)| {
            visibility.is_open() && (self.totals().users_erasing == 0 || self.has_post(*reply))
        };
        replies.filter(is_counted).take(max).count()
    }

    /// The posts that `user` pins, in the order in which they pinned them.
    #[must_use]
    pub fn pins(&self, user: UserId) -> Vec<PostId> {
        let pins = self.reactions_of(user, Reaction::Pin, Span::ALL);
        pins.into_iter().map(|(_, post)| post).collect()
    }

    /// Whether anybody reacted to a post.
    pub(crate) fn has_reactions(&self, post: PostId) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        !self.rows.members(SetTable::Reactions, post.0, one).is_empty()
    }

    /// The reactions to a post from the item `from` on, each with its item, its user and its stamp. Users may be deleted.
    #[must_use]
    pub fn reactions_to(
        &self,
        post: PostId,
        from: u64,
        limit: usize,
    ) -> Vec<(u64, Reaction, UserId, u64)> {
        let span = Span { low: from, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::Reactions, post.0, span).into_iter();
        rows.filter_map(|(item, stamp)| {
            let (reaction, user) = Reaction::of_item(item)?;
            Some((item, reaction, user, stamp))
        })
        .collect()
    }

    /// The items of reactions to a deleted post that are not removed, from `from` on.
    #[must_use]
    pub fn reactions_left(&self, post: PostId, from: u64, limit: usize) -> Vec<u64> {
        let span = Span { low: from, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::Reactions, post.0, span);
        rows.into_iter().map(|(item, _)| item).collect()
    }

    /// The first deleted post, from `from` on, whose reactions are not all removed.
    #[must_use]
    pub fn swept_post(&self, from: PostId) -> Option<PostId> {
        let span = Span { low: from.0, limit: 1, ..Span::ALL };
        let rows = self.rows.members(SetTable::SweptPosts, 0, span);
        rows.first().map(|(post, _)| PostId(*post))
    }

    pub(crate) fn is_swept(&self, post: PostId) -> bool {
        self.rows.member(SetTable::SweptPosts, 0, post.0).is_some()
    }
}

impl Txn<'_> {
    /// Stores a reaction that does not exist yet.
    pub fn put_reaction(&mut self, user: UserId, post: PostId, reaction: Reaction, stamp: u64) {
        write::reaction(self.rows, (user, post), reaction, stamp);
        if reaction == Reaction::Favourite {
            self.count_favourite(post, true);
        }
    }

    /// Removes a reaction, and counts it if the post exists.
    pub fn remove_reaction(&mut self, user: UserId, post: PostId, reaction: Reaction, stamp: u64) {
        self.remove_reaction_rows(user, post, reaction, stamp);
        if reaction == Reaction::Favourite && self.facts().stored_favourites(post) > 0 {
            self.count_favourite(post, false);
        }
    }

    fn remove_reaction_rows(&mut self, user: UserId, post: PostId, reaction: Reaction, stamp: u64) {
        self.rows.put_member(reaction.table(), user.0.into(), stamp, None);
        self.rows.put_member(SetTable::Reactions, post.0, reaction.item(user), None);
    }

    fn count_favourite(&mut self, post: PostId, up: bool) {
        let mut favourites = self.facts().stored_favourites(post);
        step(&mut favourites, up);
        write::post_counts(self.rows, post, favourites);
    }

    /// Leaves the reactions to a post that is deleted to [`Txn::sweep_reactions`].
    pub(super) fn forget_reactions(&mut self, post: PostId, author: UserId) {
        if !self.facts().has_reactions(post) {
            return;
        }
        // Pins are counted, so that of the author does not wait.
        if let Some(stamp) = self.facts().reaction(author, post, Reaction::Pin) {
            self.remove_reaction_rows(author, post, Reaction::Pin, stamp);
        }
        self.rows.put_point(PointTable::PostCounts, post.0, None);
        self.rows.put_member(SetTable::SweptPosts, 0, post.0, Some(0));
    }

    /// Removes up to `limit` reactions to a deleted post, from the item `from` on.
    pub(crate) fn sweep_reactions(&mut self, post: PostId, from: u64, limit: usize) {
        let span = Span { low: from, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::Reactions, post.0, span);
        for (item, stamp) in &rows {
            if let Some((reaction, user)) = Reaction::of_item(*item) {
                self.remove_reaction_rows(user, post, reaction, *stamp);
            }
        }
        if rows.len() < limit {
            self.rows.put_member(SetTable::SweptPosts, 0, post.0, None);
        }
    }

    /// Removes up to `limit` reactions of a deleted user, from the stamp `from` on.
    pub(crate) fn erase_reactions(
        &mut self,
        user: UserId,
        reaction: Reaction,
        from: u64,
        limit: usize,
    ) {
        let span = Span { low: from, limit, ..Span::ALL };
        for (stamp, post) in self.facts().reactions_of(user, reaction, span) {
            self.remove_reaction(user, post, reaction, stamp);
        }
    }
}
