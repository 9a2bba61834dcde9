//! Facts about notifications: see [`crate::notification`].
//!
//! **Invariant:** a user has at most [`NOTIFICATIONS_MAX`](crate::limits::NOTIFICATIONS_MAX) rows that are shown, and each
//! new row removes up to two that are not: so adding one, or clearing all, is a constant number of rows. Mentions are not
//! among them, nor is what is stored of dismissed ones, so others cannot make a mention disappear.

use std::collections::BTreeMap;

use rows::{Order, PointTable, Rows, SetTable, Span, Stamp, decode, encode};

use super::{Facts, Txn};
use crate::ids::UserId;
use crate::limits;
use crate::notification::{DISMISSED, Inbox, Stored};

/// Rows that are removed with each new one, at most.
const REMOVED_AT_ONCE: usize = 2;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Which notifications of `user` are stored and shown.
    #[must_use]
    pub fn inbox(&self, user: UserId) -> Inbox {
        let row = self.rows.point(PointTable::Inbox, user.0.into());
        row.map_or_else(Inbox::default, |row| decode(&row))
    }

    /// The rows of a user's notifications, mentions included, within `span` of ids, in its order.
    pub(crate) fn notification_rows(&self, user: UserId, span: Span) -> Vec<(u64, Option<Stored>)> {
        let mentions = self.rows.members(SetTable::Mentions, user.0.into(), span);
        let stored = |low, high| {
            let span = Span { low, high, ..span };
            self.rows.members(SetTable::Notifications, user.0.into(), span).into_iter()
        };
        let high = span.high.min(DISMISSED - 1);
        let mut rows: BTreeMap<u64, Option<Stored>> =
            mentions.into_iter().map(|(post, _)| (post, None)).collect();
        if span.low <= high {
            let others = stored(span.low, high);
            rows.extend(others.filter_map(|(id, row)| Some((id, Some(Stored::of_number(row)?)))));
            let dismissed = stored(span.low + DISMISSED, high + DISMISSED);
            rows.extend(dismissed.map(|(id, _)| (id - DISMISSED, Some(Stored::Dismissed))));
        }
        match span.order {
            Order::Ascending => rows.into_iter().take(span.limit).collect(),
            Order::Descending => rows.into_iter().rev().take(span.limit).collect(),
        }
    }

    /// Whether the newest notifications of `user` include one like this.
    pub(crate) fn is_announced(&self, user: UserId, stored: Stored) -> bool {
        let Some(newest) = Span::below(Some(DISMISSED), limits::FOLLOW_NOTICES_SEEN) else {
            return false;
        };
        let rows = self.rows.members(SetTable::Notifications, user.0.into(), newest);
        let number = stored.number();
        let cleared = self.inbox(user).cleared;
        rows.iter().any(|(id, found)| *found == number && *id > cleared)
    }
}

impl Txn<'_> {
    /// Stores a notification, and removes up to two that are not shown any more.
    pub(crate) fn put_notification(&mut self, user: UserId, id: u64, stored: Stored) {
        let mut inbox = self.facts().inbox(user);
        self.rows.put_member(SetTable::Notifications, user.0.into(), id, Some(stored.number()));
        inbox.stored += 1;
        inbox.from = inbox.from.min(id);
        for _ in 0..REMOVED_AT_ONCE {
            let oldest = Span { low: inbox.from, high: DISMISSED - 1, limit: 1, ..Span::ALL };
            let oldest = self.rows.members(SetTable::Notifications, user.0.into(), oldest);
            let Some((oldest, _)) = oldest.first().copied() else { break };
            inbox.from = oldest;
            if oldest > inbox.cleared && inbox.stored <= limits::NOTIFICATIONS_MAX {
                break;
            }
            self.rows.put_member(SetTable::Notifications, user.0.into(), oldest, None);
            inbox.stored -= 1;
            inbox.from = oldest + 1;
        }
        self.put_inbox(user, inbox);
    }

    /// Shows a mention no more.
    pub(crate) fn dismiss_mention(&mut self, user: UserId, id: u64) {
        let row = Some(Stored::Dismissed.number());
        self.rows.put_member(SetTable::Notifications, user.0.into(), id + DISMISSED, row);
    }

    /// Removes a notification if it is stored.
    pub(crate) fn remove_notification(&mut self, user: UserId, id: u64) {
        if self.rows.member(SetTable::Notifications, user.0.into(), id).is_some() {
            let inbox = self.facts().inbox(user);
            self.rows.put_member(SetTable::Notifications, user.0.into(), id, None);
            self.put_inbox(user, Inbox { stored: inbox.stored - 1, ..inbox });
        }
    }

    /// Shows no notification up to a stamp any more.
    pub(crate) fn clear_notifications(&mut self, user: UserId, up_to: Stamp) {
        let inbox = self.facts().inbox(user);
        self.put_inbox(user, Inbox { cleared: up_to.0, ..inbox });
    }

    /// Removes up to `limit` notifications of a deleted user, from `from` on.
    pub(crate) fn erase_notifications(&mut self, user: UserId, from: u64, limit: usize) {
        let span = Span { low: from, limit, ..Span::ALL };
        for (id, _) in self.rows.members(SetTable::Notifications, user.0.into(), span) {
            match id < DISMISSED {
                true => self.remove_notification(user, id),
                false => self.rows.put_member(SetTable::Notifications, user.0.into(), id, None),
            }
        }
    }

    fn put_inbox(&mut self, user: UserId, inbox: Inbox) {
        self.rows.put_point(PointTable::Inbox, user.0.into(), Some(encode(&inbox)));
    }
}
