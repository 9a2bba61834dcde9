//! Checks reactions and their counts.

use rows::{PointTable, RowsMut, Scan, SetTable, Span};

use crate::due::DueWork;
use crate::ids::{PostId, UserId};
use crate::index;
use crate::limits::EARLIER_BOOSTS_MAX;
use crate::mend::{Mend, Rows, at};
use crate::reactions::{PostCounts, Reaction};

impl Mend {
    /// Checks a reaction in the list of its user.
    pub(crate) fn reaction_of_user<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        reaction: Reaction,
        (owner, stamp, post): (u64, u64, u64),
    ) {
        self.counted.last_stamp = self.counted.last_stamp.max(stamp);
        let Some(table) = reaction.table() else { return };
        let Some(user) = step.user(owner).filter(|user| !step.is_erased(*user)) else {
            step.derived(format!("{table:?} {owner}, {}: there is no such user", at(stamp)));
            step.rows.put_member(table, owner, stamp, None);
            return;
        };
        let may_be = step.facts().stored_post(PostId(post)).is_some();
        if let (of_post, Some(of_user)) = index::of_reaction((user, PostId(post)), reaction, stamp)
        {
            step.put_other([of_post, of_user], may_be);
        }
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Checks a reaction in the rows of its post.
    pub(crate) fn reaction_of_post(&mut self, post: u64, item: u64, stamp: u64) {
        let of_user = Reaction::of_item(item).map(|(reaction, user)| {
            let found = match reaction.table() {
                Some(table) => self.rows.member(table, user.0.into(), stamp),
                None => self.boosted_by(user, PostId(stamp)),
            };
            (reaction.table(), user, found)
        });
        match of_user {
            Some((.., Some(found))) if found == post => {}
            Some((Some(table), user, None))
                if self.user(user.0.into()).is_some_and(|user| !self.is_erased(user)) =>
            {
                self.derived(format!("Reactions {post}, {item}: the user has no such reaction"));
                self.rows.put_member(table, user.0.into(), stamp, Some(post));
            }
            _ => {
                self.derived(format!("Reactions {post}, {item}: there is no such user"));
                self.rows.put_member(SetTable::Reactions, post, item, None);
                return;
            }
        }
        if self.facts().stored_post(PostId(post)).is_none() {
            if self.put_pending(DueWork::SweepReactions { post: PostId(post) }) {
                self.derived(format!("Reactions {post}: the post does not exist"));
            }
        } else if self.rows.point(PointTable::PostCounts, post).is_none() {
            self.post_counts(post);
        }
    }

    /// Last boosters of a post as stored, or if these are wrong, computed from the boosts. Fewer are stored after a
    /// boost has ended.
    fn last_boosters(&self, post: PostId) -> Vec<UserId> {
        let facts = self.facts();
        let boost = |user: &UserId| facts.reaction(*user, post, Reaction::Boost);
        let stored = facts.stored_post_counts(post).boosters;
        let stamps: Option<Vec<u64>> = stored.iter().map(boost).collect();
        let is_right = stamps.is_some_and(|stamps| stamps.is_sorted_by(|one, other| one > other));
        if is_right && stored.len() <= EARLIER_BOOSTS_MAX {
            return stored;
        }
        let mut all = facts.reacted_by(post, Reaction::Boost, Span::ALL);
        all.sort_by_key(|user| std::cmp::Reverse(boost(user)));
        all.truncate(EARLIER_BOOSTS_MAX);
        all
    }

    /// Boosted post of a boost by `user`.
    fn boosted_by(&self, user: UserId, boost: PostId) -> Option<u64> {
        let post = self.facts().stored_post(boost).filter(|post| post.author == user)?;
        post.boost.map(|boost| boost.post.0)
    }

    /// Checks the counts of a post.
    pub(crate) fn post_counts(&mut self, post: u64) {
        let mut counts = PostCounts::default();
        let id = PostId(post);
        if self.facts().stored_post(id).is_some() {
            let count = |reaction| self.facts().reacted_by(id, reaction, Span::ALL).len() as u32;
            (counts.favourites, counts.boosts) =
                (count(Reaction::Favourite), count(Reaction::Boost));
            counts.boosters = self.last_boosters(id);
        }
        if self.put(PointTable::PostCounts, post, counts.encode()) {
            let PostCounts { favourites, boosts, .. } = counts;
            self.derived(format!("PostCounts {post}: {favourites} favourites and {boosts} boosts"));
        }
    }
}
