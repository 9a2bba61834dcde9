//! Checks posts.

use rows::{PointTable, RowsMut, Scan, SetTable, Span, Stamp};

use crate::ids::{PostId, UserId};
use crate::index::{self, IndexRow};
use crate::mend::{Mend, Rows, at};
use crate::notifications::{BESIDE, MENTION_ADDED, Stored, added_at};
use crate::posts::Post;
use crate::reactions::{Boost, Reaction};

impl Mend {
    pub(crate) fn post<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let post = rows::decode::<Post>(value);
        if step.user(post.author.0.into()).is_none() {
            step.lost(format!("post {}: there is no user {}", at(key), post.author.0));
            step.rows.put_point(PointTable::Post, key, None);
            return;
        }
        if step.is_erased(post.author) {
            self.erase_again(step, post.author);
        }
        let last = post.edited.map_or(key, |edited| edited.0.max(key));
        self.counted.last_stamp = self.counted.last_stamp.max(last);
        if step.media_of_post(key, &post) {
            return;
        }
        post.poll.iter().for_each(|poll| self.poll_of_post(key, poll));
        if post.boost.as_ref().is_some_and(|boost| step.is_wrong_boost(key, post.author, boost)) {
            step.rows.put_point(PointTable::Post, key, None);
            index::of_author(PostId(key), &post).remove(step.rows);
            return;
        }
        let now_ms = step.rows.totals().last_stamp.map_or(0, Stamp::unix_ms);
        let in_shared = step.in_shared_lists(post.author) == Some(true);
        let has_none = |user: UserId| step.user(user.0.into()).is_none() || step.is_deleted(user);
        let rows: Vec<_> = index::left_of_post(PostId(key), &post, now_ms, has_none)
            .filter(|row| in_shared || row.shared_by().is_none())
            .map(|row| step.mention_row(row, &post))
            .collect();
        step.put_index(|| format!("post {}", at(key)), rows);
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Whether a boost by `user` must be removed.
    fn is_wrong_boost(&mut self, key: u64, user: UserId, boost: &Boost) -> bool {
        let is_of = |post: Post| post.boost.is_none() && post.author == boost.author;
        let exists = self.user(boost.author.0.into()).is_some();
        if !exists || !self.stored_post(boost.post.0).is_none_or(is_of) {
            self.lost(format!("post {}: its boosted post does not match", at(key)));
            return true;
        }
        let first = self.rows.member(SetTable::Reactions, boost.post.0, Reaction::Boost.item(user));
        // The first of two boosts by one user counts.
        let is_second = first.is_some_and(|first| first < key && self.is_boost(first, boost.post));
        if is_second {
            self.derived(format!("post {}: a second boost of the same post", at(key)));
        }
        is_second
    }

    fn is_boost(&self, id: u64, of: PostId) -> bool {
        self.stored_post(id).and_then(|post| post.boost).is_some_and(|boost| boost.post == of)
    }

    fn stored_post(&self, id: u64) -> Option<Post> {
        self.facts().stored_post(PostId(id))
    }

    /// Returns the mention row with the stamp of the edit that added the mention, if a row proves that edit. Returns
    /// any other row unchanged.
    fn mention_row(&self, row: IndexRow, post: &Post) -> IndexRow {
        let IndexRow::Member(table @ SetTable::Mentions, owner, item, number) = row else {
            return row;
        };
        let stored = self.rows.member(table, owner, item);
        let is_added = stored.and_then(added_at).is_some_and(|added| {
            added > item && post.edited.is_some_and(|edited| added <= edited.0)
        });
        let number = match stored {
            Some(stored) if is_added || stored == number => stored,
            _ => self.mention_added(owner, item).unwrap_or(number),
        };
        IndexRow::Member(table, owner, item, number)
    }

    /// Number of the mention row if the user has a notification of the edit that added the mention.
    fn mention_added(&self, user: u64, post: u64) -> Option<u64> {
        let stored = Stored::Mention(PostId(post)).number();
        let span = Span { low: BESIDE, ..Span::ALL };
        let rows = self.rows.members(SetTable::Notifications, user, span);
        let found = rows.iter().rev().find(|(_, number)| *number == stored);
        found.map(|(id, _)| MENTION_ADDED | id & !BESIDE)
    }
}
