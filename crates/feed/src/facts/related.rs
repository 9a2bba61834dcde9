//! Reads of relations by name, and changes of locks and notes.
//!
//! **Invariant:** two users of whom one blocks the other have no follow, follow request or friendship.
//! **Invariant:** a note has a text, a row in the list of its author, and a row in the list of the user it describes.

use rows::{PointTable, Rows, SetTable, Span, decode, encode};

use super::relation::{BLOCKS, FOLLOWS, FRIENDS, MUTES, NOTES, REQUESTS, Relation};
use super::{Facts, Txn, user_id};
use crate::ids::UserId;
use crate::mute::Mute;
use crate::text::Note;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether `user` follows `other`.
    #[must_use]
    pub fn follows(&self, user: UserId, other: UserId) -> bool {
        self.related(&FOLLOWS, user, other).is_some()
    }

    /// All users followed by `user`, in ascending order of ids.
    #[must_use]
    pub fn following_all(&self, user: UserId) -> Vec<UserId> {
        self.users_in(SetTable::Following, user, Span::ALL)
    }

    /// Users related to `user` in `table` (following, followers or friends) within `span` of ids.
    #[must_use]
    pub fn users_in(&self, table: SetTable, user: UserId, span: Span) -> Vec<UserId> {
        // Read before the rows: if a user is erased meanwhile, the rows do not contain them either.
        let erasing = self.erasing();
        let wider = Span { limit: span.limit.saturating_add(erasing.len()), ..span };
        let rows = self.rows.members(table, user.0.into(), wider);
        let users = rows.into_iter().filter_map(|(item, _)| user_id(item));
        users.filter(|other| !erasing.contains(other)).take(span.limit).collect()
    }

    /// Whether the two users are friends.
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

    /// Whether either user blocks the other.
    #[must_use]
    pub fn is_blocked_between(&self, user: UserId, other: UserId) -> bool {
        self.blocks(user, other) || self.blocks(other, user)
    }

    /// The mute of `other` by `user`, if it exists.
    #[must_use]
    pub fn mute(&self, user: UserId, other: UserId) -> Option<Mute> {
        self.related(&MUTES, user, other).map(Mute::of_number)
    }

    /// Whether `user` has any row in `table`.
    pub(crate) fn has_users_in(&self, table: SetTable, user: UserId) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        !self.rows.members(table, user.0.into(), one).is_empty()
    }

    /// Whether others must ask the user before they follow.
    #[must_use]
    pub fn is_locked(&self, user: UserId) -> bool {
        self.rows.member(SetTable::LockedUsers, user.0.into(), 0).is_some()
    }

    /// Whether `user` has asked to follow `other`.
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
    /// Locks or unlocks a user. Follow requests are left unchanged.
    pub(crate) fn lock(&mut self, user: UserId, locked: bool) {
        write::locked(self.rows, user, locked);
    }

    /// Stores or replaces a note, or removes it if its text is empty.
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
