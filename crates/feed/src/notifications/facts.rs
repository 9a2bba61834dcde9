//! Facts about notifications: see [`crate::notifications`].
//!
//! **Invariant:** a user has at most [`NOTIFICATIONS_MAX`](crate::limits::NOTIFICATIONS_MAX) counted rows that are
//! shown. Each new row removes up to two that are not shown, so adding a notification, or clearing all, changes a
//! constant number of rows. Mentions by posts, new posts, mentions added by edits, and dismissals are not counted, so
//! that other users cannot displace a mention.
//! **Invariant:** only the last edit of a post has due notices, and only while the post is stored.

use std::collections::BTreeMap;

use rows::{Order, PointTable, Rows, SetTable, Span, Stamp, decode, encode};

use crate::due::DueWork;
use crate::facts::{Facts, Txn};
use crate::ids::{PostId, UserId};
use crate::limits::{self, EDIT_NOTICES_MAX, EDIT_NOTICES_QUIET_MS, EDIT_NOTICES_QUOTES};
use crate::notifications::{BESIDE, MENTION_ADDED, NoticeRow, NoticeState, Stored, added_at};
use crate::posts::{Listed, Post, Visibility};
use crate::reactions::Reaction;

/// Maximum number of stored notifications that are removed when one is added.
const REMOVED_AT_ONCE: usize = 2;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// State of a user's stored notifications.
    #[must_use]
    pub fn notice_state(&self, user: UserId) -> NoticeState {
        let row = self.rows.point(PointTable::NoticeState, user.0.into());
        row.map_or_else(NoticeState::default, |row| decode(&row))
    }

    /// Rows of a user's notifications within `span`, in its order. Excludes new posts of users with notifications on,
    /// and includes mentions only if `has_mentions`.
    pub(crate) fn notification_rows(
        &self,
        user: UserId,
        span: Span,
        has_mentions: bool,
    ) -> Vec<(u64, NoticeRow)> {
        let stored = |low, high| {
            let span = Span { low, high, ..span };
            self.rows.members(SetTable::Notifications, user.0.into(), span).into_iter()
        };
        let mentions = has_mentions
            .then(|| self.rows.members(SetTable::Mentions, user.0.into(), span))
            .into_iter()
            .flatten();
        let mut rows: BTreeMap<u64, NoticeRow> =
            mentions.map(|(post, number)| (post, of_mention(number))).collect();
        let high = span.high.min(BESIDE - 1);
        if span.low <= high {
            let as_row = |(id, row)| Some((id, NoticeRow::Stored(Stored::of_number(row)?)));
            rows.extend(stored(span.low, high).filter_map(as_row));
            let beside = stored(span.low + BESIDE, high + BESIDE);
            rows.extend(beside.filter_map(as_row).map(|(id, row)| (id - BESIDE, row)));
        }
        match span.order {
            Order::Ascending => rows.into_iter().take(span.limit).collect(),
            Order::Descending => rows.into_iter().rev().take(span.limit).collect(),
        }
    }

    /// Row of one notification of a user, unless it is of a new post. Takes few lookups.
    pub(crate) fn own_notice_row(&self, user: UserId, id: u64) -> Option<NoticeRow> {
        let stored = |id| {
            let number = self.rows.member(SetTable::Notifications, user.0.into(), id)?;
            Stored::of_number(number).map(NoticeRow::Stored)
        };
        if id >= BESIDE {
            return None;
        }
        let mention = || self.rows.member(SetTable::Mentions, user.0.into(), id).map(of_mention);
        stored(id + BESIDE).or_else(|| stored(id)).or_else(mention)
    }

    /// Row of one notification of a user, including one of a new post by a user whose posts notify this user.
    pub(crate) fn notice_row(&self, user: UserId, id: u64) -> Option<NoticeRow> {
        if let Some(own) = self.own_notice_row(user, id) {
            return Some(own);
        }
        let post = self.post(PostId(id)).filter(|post| notifies(post.author, post.listed()))?;
        let since = self.follow_options(user, post.author).notified_since?;
        (since.0 < id && self.follows(user, post.author)).then_some(NoticeRow::Post)
    }

    /// Whether the edit with this stamp added the user's mention to the post.
    pub(crate) fn is_mentioned_since(&self, user: UserId, post: PostId, edit: u64) -> bool {
        let number = self.rows.member(SetTable::Mentions, user.0.into(), post.0);
        number.and_then(added_at) == Some(edit)
    }

    /// Whether the newest notifications of `user` include one of these.
    pub(crate) fn is_announced(&self, user: UserId, any: &[Stored]) -> bool {
        let cleared = self.notice_state(user).cleared;
        let newest = self.newest_notices(user).into_iter().filter(|(id, _)| *id > cleared);
        newest.filter_map(|(_, number)| Stored::of_number(number)).any(|it| any.contains(&it))
    }

    /// Reads the rows that a new notification of `user` is compared with or replaces, so that the writer finds them in
    /// memory.
    pub fn prefetch_notification(&self, user: UserId) {
        let oldest = self.oldest_notices(user, self.notice_state(user).from, REMOVED_AT_ONCE + 1);
        drop((self.newest_notices(user), oldest));
    }

    fn newest_notices(&self, user: UserId) -> Vec<(u64, u64)> {
        let newest = Span::below(Some(BESIDE), limits::FOLLOW_NOTICES_SEEN);
        let rows = |newest| self.rows.members(SetTable::Notifications, user.0.into(), newest);
        newest.map(rows).unwrap_or_default()
    }

    fn oldest_notices(&self, user: UserId, from: u64, limit: usize) -> Vec<(u64, u64)> {
        let oldest = Span { low: from, high: BESIDE - 1, limit, ..Span::ALL };
        self.rows.members(SetTable::Notifications, user.0.into(), oldest)
    }

    /// Smallest id of a user who may be left to notify of the post's last edit; `None` if all are notified.
    fn edit_notified_up_to(&self, id: PostId, post: &Post) -> Option<u64> {
        self.due_from(DueWork::NotifyOfEdit { post: id }.since(post.edited?))
    }

    /// Users whom one command notifies of an edit of a post, in the order of their ids from `from` on. Each has the
    /// posts that the notification may be about, the preferred one first: the post if they boosted it, then their
    /// quotes among the newest, the newest first.
    #[must_use]
    pub fn notified_of_edit(&self, post: PostId, from: u64) -> Vec<(UserId, Vec<PostId>)> {
        let span = Span { low: from, limit: EDIT_NOTICES_MAX, ..Span::ALL };
        let boosted = self.reacted_by(post, Reaction::Boost, span);
        let mut users: BTreeMap<_, _> =
            boosted.into_iter().map(|user| (user, vec![post])).collect();
        let newest = Span { order: Order::Descending, limit: EDIT_NOTICES_QUOTES, ..Span::ALL };
        for (quote, user) in self.quotes_of(post, newest) {
            if u64::from(user.0) >= from {
                users.entry(user).or_default().push(quote);
            }
        }
        users.into_iter().take(EDIT_NOTICES_MAX).collect()
    }
}

/// Row of a mention. A mention that an edit added has its notification at the stamp of the edit, so at the id of the
/// post it counts as dismissed.
fn of_mention(number: u64) -> NoticeRow {
    match added_at(number) {
        None => NoticeRow::Mention,
        Some(_) => NoticeRow::Stored(Stored::Dismissed),
    }
}

/// Whether a post by `author` notifies the users who asked for notifications of their posts: it is neither a boost, nor
/// a reply to another user, nor direct. A direct post notifies by its mentions.
pub(crate) fn notifies(author: UserId, listed: Listed) -> bool {
    !listed.is_boost()
        && !listed.is_reply_to_other(author)
        && listed.visibility() != Visibility::Direct
}

impl Txn<'_> {
    /// Stores a notification, and removes up to two that are not shown any more.
    pub(crate) fn put_notification(&mut self, user: UserId, id: u64, stored: Stored) {
        if !stored.has_number() {
            return;
        }
        let mut state = self.facts().notice_state(user);
        self.rows.put_member(SetTable::Notifications, user.0.into(), id, Some(stored.number()));
        state.stored += 1;
        state.from = state.from.min(id);
        for _ in 0..REMOVED_AT_ONCE {
            let oldest = self.facts().oldest_notices(user, state.from, 1);
            let Some((oldest, _)) = oldest.first().copied() else { break };
            state.from = oldest;
            if oldest > state.cleared && state.stored <= limits::NOTIFICATIONS_MAX {
                break;
            }
            self.rows.put_member(SetTable::Notifications, user.0.into(), oldest, None);
            state.stored -= 1;
            state.from = oldest + 1;
        }
        self.put_notice_state(user, state);
    }

    /// Stores the notification of a mention that an edit added.
    pub(crate) fn put_mention_notice(&mut self, user: UserId, post: PostId, edit: Stamp) {
        let stored = Stored::Mention(post);
        if stored.has_number() {
            let (owner, added) = (user.0.into(), Some(MENTION_ADDED | edit.0));
            self.rows.put_member(SetTable::Mentions, owner, post.0, added);
            let (id, number) = (edit.0 + BESIDE, Some(stored.number()));
            self.rows.put_member(SetTable::Notifications, owner, id, number);
        }
    }

    /// Removes the notification of a mention, if an edit added the mention.
    pub(crate) fn remove_mention_notice(&mut self, user: UserId, post: PostId) {
        let number = self.rows.member(SetTable::Mentions, user.0.into(), post.0);
        if let Some(edit) = number.and_then(added_at) {
            let owner = user.0.into();
            self.rows.put_member(SetTable::Notifications, owner, edit + BESIDE, None);
        }
    }

    /// Dismisses the notification of a mention or a new post.
    pub(crate) fn dismiss_beside(&mut self, user: UserId, id: u64) {
        let row = Some(Stored::Dismissed.number());
        self.rows.put_member(SetTable::Notifications, user.0.into(), id + BESIDE, row);
    }

    /// Removes a notification, if stored.
    pub(crate) fn remove_notification(&mut self, user: UserId, id: u64) {
        if self.rows.member(SetTable::Notifications, user.0.into(), id).is_some() {
            let state = self.facts().notice_state(user);
            self.rows.put_member(SetTable::Notifications, user.0.into(), id, None);
            self.put_notice_state(user, NoticeState { stored: state.stored - 1, ..state });
        }
    }

    /// Hides all notifications up to a stamp.
    pub(crate) fn clear_notifications(&mut self, user: UserId, up_to: Stamp) {
        let state = self.facts().notice_state(user);
        self.put_notice_state(user, NoticeState { cleared: up_to.0, ..state });
    }

    /// Removes up to `limit` notifications of a deleted user, from `from` on.
    pub(crate) fn erase_notifications(&mut self, user: UserId, from: u64, limit: usize) {
        let span = Span { low: from, limit, ..Span::ALL };
        for (id, _) in self.rows.members(SetTable::Notifications, user.0.into(), span) {
            match id < BESIDE {
                true => self.remove_notification(user, id),
                false => self.rows.put_member(SetTable::Notifications, user.0.into(), id, None),
            }
        }
    }

    fn put_notice_state(&mut self, user: UserId, state: NoticeState) {
        self.rows.put_point(PointTable::NoticeState, user.0.into(), Some(encode(&state)));
    }

    /// Schedules the notification of boosters and quoters of an edited post, unless the previous edit was less than an
    /// hour ago. Users not yet notified of the previous edit are notified of this one instead.
    pub(crate) fn announce_edit(&mut self, id: PostId, old: &Post, edit: Stamp) {
        let pending = self.facts().edit_notified_up_to(id, old);
        if let (Some(before), Some(_)) = (old.edited, pending) {
            self.put_due(DueWork::NotifyOfEdit { post: id }.since(before), None);
        }
        let is_quiet = |before: Stamp| before.unix_ms() + EDIT_NOTICES_QUIET_MS <= edit.unix_ms();
        let next = pending.or_else(|| old.edited.is_none_or(is_quiet).then_some(0));
        let facts = self.facts();
        let is_shown = || facts.stored_post_counts(id).boosts > 0 || facts.is_quoted(id);
        if next.is_some() && is_shown() {
            self.put_due(DueWork::NotifyOfEdit { post: id }.since(edit), next);
        }
    }

    /// Cancels the remaining notifications of the post's last edit.
    pub(crate) fn forget_edit_notices(&mut self, id: PostId, post: &Post) {
        if let Some(edit) = post.edited
            && self.facts().edit_notified_up_to(id, post).is_some()
        {
            self.put_due(DueWork::NotifyOfEdit { post: id }.since(edit), None);
        }
    }
}
