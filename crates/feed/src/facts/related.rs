//! Reads of relations by name, and changes of users who must be asked and of notes.
//!
//! **Invariant:** no follow, request or friendship exists between two users of whom one blocks the other.
//! **Invariant:** a note has a text, a row in the list of its author, and one in that of the user whom it is about.

use rows::{PointTable, Rows, SetTable, Span, decode, encode};

use super::relation::{BLOCKS, FOLLOWS, FRIENDS, MUTES, NOTES, REQUESTS, Relation};
use super::{Facts, Txn, user_id};
use crate::ids::UserId;
use crate::mute::Mute;
use crate::text::Note;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether `user` follows `other` now.
    #[must_use]
    pub fn follows(&self, user: UserId, other: UserId) -> bool {
        self.related(&FOLLOWS, user, other).is_some()
    }

    /// All users that `user` follows, in ascending order of ids.
    #[must_use]
    pub fn following_all(&self, user: UserId) -> Vec<UserId> {
        self.users_in(SetTable::Following, user, Span::ALL)
    }

    /// Users related to `user` in `table` (following, followers or friends) within `span` of ids.
    #[must_use]
    pub fn users_in(&self, table: SetTable, user: UserId, span: Span) -> Vec<UserId> {
        // Read before the rows: if a user has been erased meanwhile, the rows do not contain them either.
        let erasing = self.erasing();
        let wider = Span { limit: span.limit.saturating_add(erasing.len()), ..span };
        let rows = self.rows.members(table, user.0.into(), wider);
        let users = rows.into_iter().filter_map(|(item, _)| user_id(item));
        users.filter(|other| !erasing.contains(other)).take(span.limit).collect()
    }

    /// Whether the two are friends now.
    #[must_use]
    pub fn are_friends(&self, user: UserId, other: UserId) -> bool {
        self.related(&FRIENDS, user, other).is_some()
    }

    /// All friends of `user`, in ascending order of ids.
    #[must_use]
    pub fn friends_all(&self, user: UserId) -> Vec<UserId> {
        self.users_in(SetTable::Friends, user, Span::ALL)
    }

    /// Whether `user` blocks `other`.
    #[must_use]
    pub fn blocks(&self, user: UserId, other: UserId) -> bool {
        self.rows.totals().blocks > 0 && self.related(&BLOCKS, user, other).is_some()
    }

    /// Whether one of the two blocks the other.
    #[must_use]
    pub fn is_blocked_between(&self, user: UserId, other: UserId) -> bool {
        self.blocks(user, other) || self.blocks(other, user)
    }

    /// The mute of `other` by `user`.
    #[must_use]
    pub fn mute(&self, user: UserId, other: UserId) -> Option<Mute> {
        self.related(&MUTES, user, other).map(Mute::of_number)
    }

    /// Whether `table` has any user for `user`.
    pub(crate) fn has_users_in(&self, table: SetTable, user: UserId) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        !self.rows.members(table, user.0.into(), one).is_empty()
    }

    /// Whether others must ask this user before they follow.
    #[must_use]
    pub fn is_locked(&self, user: UserId) -> bool {
        self.rows.member(SetTable::LockedUsers, user.0.into(), 0).is_some()
    }

    /// Whether `user` asks to follow `other`.
    #[must_use]
    pub fn requests(&self, user: UserId, other: UserId) -> bool {
        self.related(&REQUESTS, user, other).is_some()
    }

    /// The note of `user` about `other`.
    #[must_use]
    pub fn note(&self, user: UserId, other: UserId) -> Option<Note> {
        let row = self.rows.point(PointTable::Note, Relation::key(user, other));
        row.map(|row| decode(&row))
    }

    /// Whether `user` has a note about `other`.
    pub fn has_note(&self, user: UserId, other: UserId) -> bool {
        self.related(&NOTES, user, other).is_some()
    }
}

impl Txn<'_> {
    /// Locks or unlocks a user. Requests stay as they are.
    pub(crate) fn lock(&mut self, user: UserId, locked: bool) {
        write::locked(self.rows, user, locked);
    }

    /// Stores, replaces or removes a note; without text it is removed.
    pub(crate) fn put_note(&mut self, user: UserId, other: UserId, note: &Note) {
        if note.as_str().is_empty() {
            self.end(&NOTES, user, other);
            return;
        }
        let key = Relation::key(user, other);
        self.rows.put_point(PointTable::Note, key, Some(encode(note)));
        if !self.facts().has_note(user, other) {
            self.relate(&NOTES, user, other, 0);
        }
    }
}
