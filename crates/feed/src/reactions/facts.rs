//! Facts about favourites, bookmarks, pins and boosts.
//!
//! A reaction has a row of its user, by its stamp, and a row of its post. The rows of a deleted post are removed later,
//! in steps; until then, reads of a user's reactions find no post for them. The user's row of a boost is the row of the
//! boost as a post.
//!
//! **Invariant:** the stored counts of a post equal the number of its favourites and boosts.

use rows::{PointTable, Rows, SetTable, Span, Stamp};

use crate::due::DueWork;
use crate::facts::{Facts, Txn, adjust_count};
use crate::ids::{PostId, UserId};
use crate::index;
use crate::limits::{BOOST_RECENT_MS, EARLIER_BOOSTS_MAX};
use crate::posts::{Post, Posted};
use crate::reactions::{PostCounts, Reaction};
use crate::write;

/// Number of rows of a reaction: one of its user, one of its post.
const REACTION_ROWS: usize = 2;
/// Number of rows of a boost: its own, one of its author, two of the boosted post, and the counts of its author.
const BOOST_ROWS: usize = 5;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Stamp of the reaction of `user` to a post, if it exists.
    #[must_use]
    pub fn reaction(&self, user: UserId, post: PostId, reaction: Reaction) -> Option<u64> {
        self.rows.member(SetTable::Reactions, post.0, reaction.item(user))
    }

    /// Posts that `user` reacted to, each with the stamp of the reaction, within `span` of the stamps. Posts may be
    /// hidden or deleted. Empty for boosts: see [`Facts::posts_by`].
    #[must_use]
    pub fn reactions_of(&self, user: UserId, reaction: Reaction, span: Span) -> Vec<(u64, PostId)> {
        let Some(table) = reaction.table() else { return Vec::new() };
        let rows = self.rows.members(table, user.0.into(), span);
        rows.into_iter().map(|(stamp, post)| (stamp, PostId(post))).collect()
    }

    /// Users who reacted to a post, within `span` of user ids. Some may be deleted: see [`Facts::is_being_erased`].
    #[must_use]
    pub fn reacted_by(&self, post: PostId, reaction: Reaction, span: Span) -> Vec<UserId> {
        let span = reaction.items(span);
        let rows = self.rows.members(SetTable::Reactions, post.0, span);
        rows.into_iter().filter_map(|(item, _)| Some(Reaction::of_item(item)?.1)).collect()
    }

    /// Numbers of users who favourited and boosted a post, without deleted users.
    #[must_use]
    pub fn post_counts(&self, post: PostId) -> PostCounts {
        loop {
            // Most posts have no counts, and need no lookup of reactions by deleted users.
            if self.stored_post_counts(post) == PostCounts::default() {
                return PostCounts::default();
            }
            let before = self.still_counted_of(post);
            let counts = self.stored_post_counts(post);
            // If rows were removed meanwhile, the two reads disagree, and the count is read again.
            if self.still_counted_of(post) == before {
                let [favourites, boosts] = before;
                return PostCounts {
                    favourites: counts.favourites.saturating_sub(favourites),
                    boosts: counts.boosts.saturating_sub(boosts),
                    ..counts
                };
            }
        }
    }

    /// Numbers of favourites and boosts of a post by deleted users that are not removed yet.
    fn still_counted_of(&self, post: PostId) -> [u32; 2] {
        let users = self.erasing();
        [Reaction::Favourite, Reaction::Boost].map(|reaction| {
            let has = |user: &&UserId| self.reaction(**user, post, reaction).is_some();
            users.iter().filter(has).count() as u32
        })
    }

    /// Whether the stored counts of a post include reactions by deleted users.
    #[must_use]
    pub fn counts_erasing(&self, post: PostId) -> bool {
        self.stored_post_counts(post) != PostCounts::default()
            && self.still_counted_of(post) != [0, 0]
    }

    pub(crate) fn stored_post_counts(&self, post: PostId) -> PostCounts {
        let row = self.rows.point(PointTable::PostCounts, post.0);
        row.and_then(|row| PostCounts::try_decode(&row)).unwrap_or_default()
    }

    /// Posts that `user` has pinned, in the order of pinning.
    #[must_use]
    pub fn pins(&self, user: UserId) -> Vec<PostId> {
        let pins = self.reactions_of(user, Reaction::Pin, Span::ALL);
        pins.into_iter().map(|(_, post)| post).collect()
    }

    /// Whether a post has reactions.
    pub(crate) fn has_reactions(&self, post: PostId) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        !self.rows.members(SetTable::Reactions, post.0, one).is_empty()
    }

    /// Last boosters of a post other than `user`, most recent first, without deleted users.
    fn last_boosters(&self, post: PostId, user: UserId) -> Vec<UserId> {
        let boosters = self.stored_post_counts(post).boosters.into_iter();
        boosters.filter(|other| *other != user && !self.is_deleted(*other)).collect()
    }

    /// Earlier boosters for a new boost of a post by `user` at `stamp`: see [`Boost::earlier`](crate::Boost::earlier).
    pub(crate) fn earlier_boosts(&self, post: PostId, user: UserId, stamp: Stamp) -> Vec<UserId> {
        let is_earlier = |other: &UserId| {
            let boost = self.reaction(*other, post, Reaction::Boost);
            boost.is_some_and(|boost| Stamp(boost).unix_ms() + BOOST_RECENT_MS > stamp.unix_ms())
        };
        self.last_boosters(post, user).into_iter().filter(is_earlier).collect()
    }

    /// First boosts of a post after the boost `ended`. Includes every boost that may record `ended` as an earlier
    /// boost, because each boost records only the last ones before it.
    pub(crate) fn boosts_after(&self, post: PostId, ended: PostId) -> Vec<PostId> {
        // The limit is higher by the boosts of deleted users that may still be stored.
        let limit = EARLIER_BOOSTS_MAX + self.erasing().len();
        let span = Span { low: ended.0 + 1, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::Boosts, post.0, span).into_iter();
        rows.map(|(boost, _)| PostId(boost)).collect()
    }

    /// Reactions to a post from the item `from` on, each with its item, kind, user and stamp. Users may be deleted.
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

    /// Items of the reactions to a deleted post that are not removed yet, from `from` on.
    #[must_use]
    pub fn reactions_left(&self, post: PostId, from: u64, limit: usize) -> Vec<u64> {
        let span = Span { low: from, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::Reactions, post.0, span);
        rows.into_iter().map(|(item, _)| item).collect()
    }
}

impl Txn<'_> {
    /// Stores a new reaction other than a boost.
    pub fn put_reaction(&mut self, user: UserId, post: PostId, reaction: Reaction, stamp: u64) {
        write::reaction(self.rows, (user, post), reaction, stamp);
        if reaction == Reaction::Favourite {
            self.count_reactions(post, |counts| adjust_count(&mut counts.favourites, true));
        }
    }

    /// Removes a reaction other than a boost, and uncounts it if the post exists.
    pub fn remove_reaction(&mut self, user: UserId, post: PostId, reaction: Reaction, stamp: u64) {
        self.remove_reaction_rows(user, post, reaction, stamp);
        let favourites = self.facts().stored_post_counts(post).favourites;
        if reaction == Reaction::Favourite && favourites > 0 {
            self.count_reactions(post, |counts| adjust_count(&mut counts.favourites, false));
        }
    }

    fn remove_reaction_rows(&mut self, user: UserId, post: PostId, reaction: Reaction, stamp: u64) {
        let (of_post, of_user) = index::of_reaction((user, post), reaction, stamp);
        index::set(self.rows, of_user.into_iter().chain([of_post]), false);
    }

    fn count_reactions(&mut self, post: PostId, change: impl FnOnce(&mut PostCounts)) {
        let mut counts = self.facts().stored_post_counts(post);
        change(&mut counts);
        write::post_counts(self.rows, post, &counts);
    }

    /// Stores a boost as a post, and counts it as the most recent of the boosted post.
    pub(crate) fn put_boost(&mut self, id: PostId, post: &Post, boosted: PostId) {
        self.put_post(id, post);
        let mut boosters = self.facts().last_boosters(boosted, post.author);
        boosters.insert(0, post.author);
        boosters.truncate(EARLIER_BOOSTS_MAX);
        self.count_reactions(boosted, |counts| {
            adjust_count(&mut counts.boosts, true);
            counts.boosters = boosters;
        });
    }

    /// Uncounts a boost of a post, if the post exists.
    pub(crate) fn uncount_boost(&mut self, user: UserId, post: PostId) {
        if self.facts().stored_post_counts(post).boosts > 0 {
            self.count_reactions(post, |counts| {
                adjust_count(&mut counts.boosts, false);
                counts.boosters.retain(|other| *other != user);
            });
        }
    }

    /// Schedules the removal of the reactions to a deleted post: see [`Txn::sweep_reactions`].
    pub(crate) fn forget_reactions(&mut self, post: PostId, author: UserId) {
        if !self.facts().has_reactions(post) {
            return;
        }
        // Pins are limited, so the author's pin is removed at once.
        if let Some(stamp) = self.facts().reaction(author, post, Reaction::Pin) {
            self.remove_reaction_rows(author, post, Reaction::Pin, stamp);
        }
        self.rows.put_point(PointTable::PostCounts, post.0, None);
        self.put_due_now(DueWork::SweepReactions { post });
    }

    /// Removes reactions to a deleted post from the item `from` on, with at most `rows` rows. Returns the removed
    /// boosts, each with its user and list entry, and the first item that may be left, if any.
    pub(crate) fn sweep_reactions(
        &mut self,
        post: PostId,
        from: u64,
        rows: usize,
    ) -> (Vec<(UserId, Posted)>, Option<u64>) {
        let span = Span { low: from, limit: rows / REACTION_ROWS, ..Span::ALL };
        let found = self.facts().reactions_to(post, span.low, span.limit);
        let (mut rows_left, mut boosts) = (rows, Vec::new());
        for (item, reaction, user, stamp) in &found {
            let boosted = match reaction {
                Reaction::Boost => self.facts().stored_post(PostId(*stamp)),
                _ => None,
            };
            // In a damaged store, the row may name any post.
            let is_boost = |found: &Post| {
                found.author == *user
                    && found.boost.as_ref().is_some_and(|boost| boost.post == post)
            };
            let boosted = boosted.filter(is_boost);
            let rows = if boosted.is_some() { BOOST_ROWS } else { REACTION_ROWS };
            if rows_left < rows {
                return (boosts, Some(*item));
            }
            rows_left -= rows;
            match boosted {
                None => self.remove_reaction_rows(*user, post, *reaction, *stamp),
                Some(boost) => {
                    self.replace_post(PostId(*stamp), Some(&boost), None);
                    boosts.push((*user, (PostId(*stamp), boost.listed())));
                }
            }
        }
        let last = found.last().filter(|_| found.len() >= span.limit);
        (boosts, last.map(|(item, ..)| item + 1))
    }

    /// Removes up to `limit` reactions of a deleted user, starting at the stamp `from`.
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
