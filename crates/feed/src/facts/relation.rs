//! Relations of users to users. Each is one declaration; reads, changes, counts, limits, checks, erasure and lines of an
//! export follow from it.
//!
//! **Invariant:** a relation has a row for both users.
//! **Invariant:** counts of users are the numbers of these rows. Totals leave out deleted users, or count all rows:
//! see [`Total`].

use rows::{PointTable, PutRows, Rows, SetTable, Totals, encode};

use super::{Facts, Txn, step, step_total};
use crate::ids::UserId;
use crate::index;
use crate::limits;
use crate::mute::Mute;
use crate::records::Counts;
use crate::refusal::Refusal;
use crate::row_counts::LIST_ROWS;
use crate::text::Note;

/// A relation of a user to another one.
#[derive(Debug)]
pub struct Relation {
    /// (user, other) -> number of the relation.
    pub forward: SetTable,
    /// (other, user) -> 0. The same table if the relation is mutual.
    pub backward: SetTable,
    /// The count of the user.
    count: CountOf,
    /// The count of the other.
    back_count: Option<CountOf>,
    total: Total,
    /// Most that a user may have.
    pub max: u32,
    /// The refusal of more.
    pub too_many: Refusal,
    /// The refusal of a relation of a user to themselves.
    pub to_self: Refusal,
    /// Whether a row of the user may have a number other than 0.
    pub(crate) has_numbers: bool,
    /// Whether it can be between users of whom one blocks the other.
    pub is_across_blocks: bool,
    /// The relation that it becomes: no user has both to another one, and both together are limited.
    pub becomes: Option<&'static Self>,
    /// Its name in the lines of an export, if all that they say is which users it is between.
    pub line: Option<&'static str>,
    /// Table with more of it, by both users: see [`Relation::key`].
    pub text: Option<PointTable>,
    /// Most rows of other tables that end with it.
    pub(super) end_rows: usize,
    /// Removes these rows, and returns their number. The relation exists then.
    end: fn(&mut Txn<'_>, UserId, UserId) -> usize,
}

/// Chooses a count.
pub type CountOf = fn(&mut Counts) -> &mut u32;

/// A total that counts a relation.
#[derive(Clone, Copy, Debug)]
pub enum Total {
    /// There is none.
    None,
    /// Without deleted users.
    Shown(fn(&mut Totals) -> &mut u64),
    /// With deleted users whose rows are not removed.
    Rows(fn(&mut Totals) -> &mut u64),
}

/// A relation of which nothing else is declared: its tables, the count of the user, and the most that a user has, with the
/// refusal of more.
const fn plain(
    [forward, backward]: [SetTable; 2],
    count: CountOf,
    (max, too_many): (u32, Refusal),
) -> Relation {
    Relation {
        forward,
        backward,
        count,
        back_count: None,
        total: Total::None,
        max,
        too_many,
        to_self: Refusal::UserNotFound,
        has_numbers: false,
        is_across_blocks: false,
        becomes: None,
        line: None,
        text: None,
        end_rows: 0,
        end: |_, _, _| 0,
    }
}

/// Blocks.
pub const BLOCKS: Relation = Relation {
    to_self: Refusal::SelfBlock,
    total: Total::Rows(|totals| &mut totals.blocks),
    is_across_blocks: true,
    line: Some("block"),
    ..plain(
        [SetTable::Blocks, SetTable::BlockedBy],
        |counts| &mut counts.blocks,
        (limits::BLOCKS_MAX, Refusal::TooManyBlocks),
    )
};

/// Mutes. See [`Mute::number`](crate::Mute::number).
pub const MUTES: Relation = Relation {
    to_self: Refusal::SelfMute,
    total: Total::Rows(|totals| &mut totals.mutes),
    has_numbers: true,
    is_across_blocks: true,
    end_rows: 1,
    end: |txn, user, other| {
        let mute = txn.facts().mute(user, other);
        let rows = mute.and_then(|mute| index::of_mute(user, other, mute));
        rows.iter().map(|row| row.remove(txn.rows)).count()
    },
    ..plain(
        [SetTable::Mutes, SetTable::MutedBy],
        |counts| &mut counts.mutes,
        (limits::MUTES_MAX, Refusal::TooManyMutes),
    )
};

/// Follows. The follower may have options of them, and the followed in lists.
pub const FOLLOWS: Relation = Relation {
    back_count: Some(|counts| &mut counts.followers),
    to_self: Refusal::SelfFollow,
    total: Total::Shown(|totals| &mut totals.follows),
    line: Some("follow"),
    end_rows: 1 + LIST_ROWS * limits::LISTS_MAX,
    end: |txn, user, other| {
        let options = forget_options(txn, user, other);
        match rows::has_bug("stay-in-lists") {
            true => options,
            false => options + LIST_ROWS * txn.leave_lists(user, other),
        }
    },
    ..plain(
        [SetTable::Following, SetTable::Followers],
        |counts| &mut counts.following,
        (limits::FOLLOWING_MAX, Refusal::TooManyFollows),
    )
};

/// Requests to follow. The user may have options of the follow that they ask for.
pub const REQUESTS: Relation = Relation {
    back_count: Some(|counts| &mut counts.requests),
    to_self: Refusal::SelfFollow,
    becomes: Some(&FOLLOWS),
    line: Some("request"),
    end_rows: 1,
    end: forget_options,
    ..plain(
        [SetTable::Requested, SetTable::FollowRequests],
        |counts| &mut counts.requested,
        (limits::FOLLOWING_MAX, Refusal::TooManyFollows),
    )
};

/// Friendships.
pub const FRIENDS: Relation = Relation {
    back_count: Some(|counts| &mut counts.friends),
    to_self: Refusal::SelfFriend,
    total: Total::Shown(|totals| &mut totals.friendships),
    line: Some("friends"),
    ..plain(
        [SetTable::Friends, SetTable::Friends],
        |counts| &mut counts.friends,
        (limits::FRIENDS_MAX, Refusal::TooManyFriends),
    )
};

/// Notes of a user about others.
pub const NOTES: Relation = Relation {
    is_across_blocks: true,
    text: Some(PointTable::Note),
    end_rows: 1,
    end: |txn, user, other| {
        txn.rows.put_point(PointTable::Note, Relation::key(user, other), None);
        1
    },
    ..plain(
        [SetTable::Notes, SetTable::NotedBy],
        |counts| &mut counts.notes,
        (limits::NOTES_MAX, Refusal::TooManyNotes),
    )
};

/// All relations, in the order in which they are checked and erased. Blocks are first, since a check ends others with them.
/// The order is a part of the format: see [`tables`](super::tables).
pub const RELATIONS: [&Relation; 6] = [&BLOCKS, &MUTES, &FOLLOWS, &REQUESTS, &FRIENDS, &NOTES];

/// Removes the options of a follow or of a request. Those of a deleted user are removed at the end, in one row.
fn forget_options(txn: &mut Txn<'_>, user: UserId, other: UserId) -> usize {
    if txn.facts().is_deleted(user) {
        return 0;
    }
    txn.forget_follow_options(user, other);
    1
}

impl Relation {
    /// The relation that has this table.
    #[must_use]
    pub fn of_table(table: SetTable) -> Option<&'static Self> {
        RELATIONS.into_iter().find(|of| of.forward == table || of.backward == table)
    }

    /// The relation that becomes this one.
    #[must_use]
    pub fn before(&self) -> Option<&'static Self> {
        let is_this = |next: &Self| next.forward == self.forward;
        RELATIONS.into_iter().find(|of| of.becomes.is_some_and(is_this))
    }

    /// Its tables: two, or one if it is mutual.
    pub fn tables(&self) -> impl Iterator<Item = SetTable> + Clone {
        let backward = (!self.is_mutual()).then_some(self.backward);
        std::iter::once(self.forward).chain(backward)
    }

    /// Whether it is one in both directions.
    #[must_use]
    pub fn is_mutual(&self) -> bool {
        self.forward == self.backward
    }

    /// User and other of a row of one of its tables.
    pub(crate) fn users(&self, table: SetTable, owner: UserId, item: UserId) -> (UserId, UserId) {
        if table == self.forward { (owner, item) } else { (item, owner) }
    }

    /// Key of both users in a table of points.
    #[must_use]
    pub fn key(user: UserId, other: UserId) -> u64 {
        u64::from(user.0) << 32 | u64::from(other.0)
    }

    /// The counts that it has of a user: the table whose rows are counted, and the count.
    pub fn counts(&self) -> impl Iterator<Item = (SetTable, CountOf)> {
        let back = self.back_count.filter(|_| !self.is_mutual());
        let back = back.map(|count| (self.backward, count));
        std::iter::once((self.forward, self.count)).chain(back)
    }

    /// Whether the users whose ids are the items of a table count it.
    #[must_use]
    pub fn is_counted_by_items(&self, table: SetTable) -> bool {
        table == self.backward || self.back_count.is_some()
    }

    /// The count of the user.
    pub fn count<'a>(&self, counts: &'a mut Counts) -> &'a mut u32 {
        (self.count)(counts)
    }

    /// The total that counts it.
    #[must_use]
    pub fn total(&self) -> Total {
        self.total
    }

    /// Writes that it exists with a number, or that it does not. Users count it: see [`Txn::relate`].
    pub fn put(
        &self,
        rows: &mut (impl PutRows + ?Sized),
        user: UserId,
        other: UserId,
        number: Option<u64>,
    ) {
        rows.put_member(self.forward, user.0.into(), other.0.into(), number);
        let back = number.map(|number| if self.is_mutual() { number } else { 0 });
        rows.put_member(self.backward, other.0.into(), user.0.into(), back);
    }
}

/// Writes that `user` mutes `other`, and when the mute ends. The user counts it.
pub fn put_mute(rows: &mut (impl PutRows + ?Sized), user: UserId, other: UserId, mute: Mute) {
    MUTES.put(rows, user, other, Some(mute.number()));
    index::of_mute(user, other, mute).iter().for_each(|row| row.put(rows));
}

/// Writes a note of a user about another one, which is not empty. The author counts it.
pub fn put_note(rows: &mut (impl PutRows + ?Sized), user: UserId, other: UserId, note: &Note) {
    rows.put_point(PointTable::Note, Relation::key(user, other), Some(encode(note)));
    NOTES.put(rows, user, other, Some(0));
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The number of a relation, if it exists.
    #[must_use]
    pub fn related(&self, relation: &Relation, user: UserId, other: UserId) -> Option<u64> {
        self.rows.member(relation.forward, user.0.into(), other.0.into())
    }
}

impl Txn<'_> {
    /// Refuses one more relation of a user who has the most.
    pub(crate) fn refuse_full(&self, relation: &Relation, user: UserId) -> Result<(), Refusal> {
        let is_full = *relation.count(&mut self.facts().stored_counts(user)) >= relation.max;
        if is_full { Err(relation.too_many) } else { Ok(()) }
    }

    /// Stores and counts a relation that does not exist, of users who do.
    pub fn relate(&mut self, relation: &Relation, user: UserId, other: UserId, number: u64) {
        relation.put(self.rows, user, other, Some(number));
        self.count(user, |counts| step((relation.count)(counts), true));
        if let Some(count) = relation.back_count {
            self.count(other, |counts| step(count(counts), true));
        }
        if let Total::Shown(total) | Total::Rows(total) = relation.total {
            self.total(|totals| step_total(total(totals), true));
        }
    }

    /// Removes a relation that exists, and counts it no longer. What else ends with it stays.
    pub(crate) fn unrelate(&mut self, relation: &Relation, user: UserId, other: UserId) {
        // The counts of a deleted user are not shown, and may be removed already.
        let is_left = [user, other].map(|user| !self.facts().is_deleted(user));
        let [user_is_left, other_is_left] = is_left;
        // The counts first: a reader of counts subtracts what has a row.
        if user_is_left {
            self.count(user, |counts| step((relation.count)(counts), false));
        }
        if let Some(count) = relation.back_count.filter(|_| other_is_left) {
            self.count(other, |counts| step(count(counts), false));
        }
        match relation.total {
            Total::Shown(total) if is_left == [true, true] => {
                self.total(|totals| step_total(total(totals), false));
            }
            Total::Rows(total) => self.total(|totals| step_total(total(totals), false)),
            Total::Shown(_) | Total::None => {}
        }
        relation.put(self.rows, user, other, None);
    }

    /// Ends a relation, with all that ends with it. Returns whether it existed.
    pub(crate) fn end(&mut self, relation: &Relation, user: UserId, other: UserId) -> bool {
        let existed = self.facts().related(relation, user, other).is_some();
        if existed {
            self.end_counting(relation, user, other);
        }
        existed
    }

    /// Ends a relation that exists. Returns the number of rows of other tables that end with it.
    pub(crate) fn end_counting(
        &mut self,
        relation: &Relation,
        user: UserId,
        other: UserId,
    ) -> usize {
        let rows = (relation.end)(self, user, other);
        debug_assert!(rows <= relation.end_rows, "the most rows that end with it");
        self.unrelate(relation, user, other);
        rows
    }
}
