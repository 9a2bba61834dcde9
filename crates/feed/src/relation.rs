//! Relations between users. Each relation is one declaration, from which follow its reads, changes, counts, limits,
//! checks, erasure and export lines.
//!
//! **Invariant:** a relation has a row for each of the two users.
//! **Invariant:** counts of users equal the number of these rows. Totals leave out deleted users or count all rows: see
//! [`Total`].

use rows::{PointTable, PutRows, Rows, SetTable, Totals, encode};

use crate::blocks::Mute;
use crate::effect::{Effect, Input, Tie};
use crate::facts::{Facts, Txn, adjust_count};
use crate::ids::UserId;
use crate::index::{self, IndexRow, LIST_ROWS};
use crate::limits;
use crate::refusal::Refusal;
use crate::text::Note;
use crate::users::Counts;

/// Declaration of a relation from one user to another.
#[derive(Debug)]
pub struct Relation {
    /// Rows (user, other) -> number of the relation.
    pub forward: SetTable,
    /// Rows (other, user) -> 0. The same table if the relation is mutual.
    pub backward: SetTable,
    /// Count of the user.
    count: CountOf,
    /// Count of the other user.
    back_count: Option<CountOf>,
    total: Total,
    /// Maximum number of relations of one user.
    pub max: u32,
    /// Refusal of a relation above the limit.
    pub too_many: Refusal,
    /// Refusal of a relation of a user to themselves.
    pub to_self: Refusal,
    /// Makes the row of the relation in an index from its number in `forward`; `None` if that is always 0.
    pub(crate) numbered: Option<RowOf>,
    /// Whether the relation can exist between users when one blocks the other.
    pub is_across_blocks: bool,
    /// Relation that replaces this one when it is accepted. Two users never have both, and the limit covers both
    /// together.
    pub becomes: Option<&'static Self>,
    /// Name of the relation's export lines, if the two users are their whole content.
    pub line: Option<&'static str>,
    /// Table with an additional text for each pair of users: see [`Relation::key`].
    pub text: Option<PointTable>,
    /// Maximum number of rows of other tables that are removed with the relation.
    pub(crate) end_rows: usize,
    /// Removes the rows of other tables, except that of an index, and returns their number. Called while the relation
    /// exists.
    end: fn(&mut Txn<'_>, UserId, UserId) -> usize,
    /// Effects of the relation's end.
    pub(crate) ended: fn(UserId, UserId) -> Vec<Effect>,
}

/// Selects one of the counts of a user.
pub type CountOf = fn(&mut Counts) -> &mut u32;

/// Makes the row in an index of a relation with a number.
type RowOf = fn(UserId, UserId, u64) -> Option<IndexRow>;

/// Server-wide total of a relation.
#[derive(Clone, Copy, Debug)]
pub enum Total {
    /// No total.
    None,
    /// Total without relations of deleted users.
    Shown(fn(&mut Totals) -> &mut u64),
    /// Total of the rows, including those of deleted users that are not removed yet.
    Rows(fn(&mut Totals) -> &mut u64),
}

/// Declares a relation with defaults: its tables, the count of the user, and the limit of one user with its refusal.
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
        numbered: None,
        is_across_blocks: false,
        becomes: None,
        line: None,
        text: None,
        end_rows: 0,
        end: |_, _, _| 0,
        ended: |_, _| Vec::new(),
    }
}

/// Blocks of users.
pub const BLOCKS: Relation = Relation {
    to_self: Refusal::SelfBlock,
    total: Total::Rows(|totals| &mut totals.blocks),
    is_across_blocks: true,
    line: Some("block"),
    ended: |user, other| vec![Effect::tie(user, other, Tie::Block, false)],
    ..plain(
        [SetTable::Blocks, SetTable::BlockedBy],
        |counts| &mut counts.blocks,
        (limits::BLOCKS_MAX, Refusal::TooManyBlocks),
    )
};

/// Mutes of users. The number of the relation is [`Mute::number`](crate::Mute::number).
pub const MUTES: Relation = Relation {
    to_self: Refusal::SelfMute,
    total: Total::Rows(|totals| &mut totals.mutes),
    numbered: Some(|user, other, number| index::of_mute(user, other, Mute::of_number(number))),
    is_across_blocks: true,
    end_rows: 1,
    ended: |user, other| {
        let tie = Effect::tie(user, other, Tie::Mute, false);
        vec![Effect::Input { user, input: Input::Hidden }, tie]
    },
    ..plain(
        [SetTable::Mutes, SetTable::MutedBy],
        |counts| &mut counts.mutes,
        (limits::MUTES_MAX, Refusal::TooManyMutes),
    )
};

/// Follows. Follow options and the memberships in the follower's lists end with a follow.
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
    ended: |user, other| vec![Effect::Follow { user, other, follows: false }],
    ..plain(
        [SetTable::Following, SetTable::Followers],
        |counts| &mut counts.following,
        (limits::FOLLOWING_MAX, Refusal::TooManyFollows),
    )
};

/// Follow requests. The options of the requested follow end with the request.
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
    ended: |user, other| {
        let [one, two] = [user, other].map(|user| Effect::Input { user, input: Input::Friends });
        vec![one, two, Effect::tie(user, other, Tie::Friend, false)]
    },
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

/// Authors in whom a user is not interested: ranked feeds show their posts only from the home timeline.
pub const NOT_INTERESTED: Relation = Relation {
    to_self: Refusal::SelfNotInterested,
    is_across_blocks: true,
    line: Some("not_interested"),
    ended: |user, other| vec![Effect::tie(user, other, Tie::NotInterested, false)],
    ..plain(
        [SetTable::NotInterested, SetTable::NotInterestedBy],
        |counts| &mut counts.not_interested,
        (limits::NOT_INTERESTED_MAX, Refusal::TooManyNotInterested),
    )
};

/// All relations, in the order of checks and erasure. Blocks come first, because a check ends the other relations of
/// blocked users. The order is part of the format: see `tables.rs`.
pub const RELATIONS: [&Relation; 7] =
    [&BLOCKS, &MUTES, &FOLLOWS, &REQUESTS, &FRIENDS, &NOTES, &NOT_INTERESTED];

/// Removes the options of a follow or follow request. For a deleted user, the one row of all options is removed at the
/// end.
fn forget_options(txn: &mut Txn<'_>, user: UserId, other: UserId) -> usize {
    if txn.facts().is_deleted(user) {
        return 0;
    }
    txn.forget_follow_options(user, other);
    1
}

impl Relation {
    /// Finds the relation of a table.
    #[must_use]
    pub fn of_table(table: SetTable) -> Option<&'static Self> {
        RELATIONS.into_iter().find(|of| of.forward == table || of.backward == table)
    }

    /// Finds the relation that becomes this one.
    #[must_use]
    pub fn before(&self) -> Option<&'static Self> {
        let is_this = |next: &Self| next.forward == self.forward;
        RELATIONS.into_iter().find(|of| of.becomes.is_some_and(is_this))
    }

    /// Tables of the relation: two, or one if it is mutual.
    pub fn tables(&self) -> impl Iterator<Item = SetTable> + Clone {
        let backward = (!self.is_mutual()).then_some(self.backward);
        std::iter::once(self.forward).chain(backward)
    }

    /// Whether the relation is mutual: one table has the rows of both users.
    #[must_use]
    pub fn is_mutual(&self) -> bool {
        self.forward == self.backward
    }

    /// Sorts the two users of a row of `table` into user and other.
    pub(crate) fn users(&self, table: SetTable, owner: UserId, item: UserId) -> (UserId, UserId) {
        if table == self.forward { (owner, item) } else { (item, owner) }
    }

    /// Key of a pair of users in point tables.
    #[must_use]
    pub fn key(user: UserId, other: UserId) -> u64 {
        u64::from(user.0) << 32 | u64::from(other.0)
    }

    /// Counts kept of the relation: the table whose rows are counted, and the count.
    pub fn counts(&self) -> impl Iterator<Item = (SetTable, CountOf)> {
        let back = self.back_count.filter(|_| !self.is_mutual());
        let back = back.map(|count| (self.backward, count));
        std::iter::once((self.forward, self.count)).chain(back)
    }

    /// Whether the users named by the items of `table` have a count of the relation.
    #[must_use]
    pub fn is_counted_by_items(&self, table: SetTable) -> bool {
        table == self.backward || self.back_count.is_some()
    }

    /// Selects the count of the user.
    pub fn count<'a>(&self, counts: &'a mut Counts) -> &'a mut u32 {
        (self.count)(counts)
    }

    /// Server-wide total of the relation.
    #[must_use]
    pub fn total(&self) -> Total {
        self.total
    }

    /// Writes the rows of a relation with this number, or removes them for `None`. Does not count: see [`Txn::relate`].
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
        if let Some(row) = number.and_then(|number| self.index_row(user, other, number)) {
            row.put(rows);
        }
    }

    /// Row in an index, if the relation has one.
    pub(crate) fn index_row(&self, user: UserId, other: UserId, number: u64) -> Option<IndexRow> {
        self.numbered.and_then(|row| row(user, other, number))
    }
}

/// Writes the rows of a non-empty note of a user about another. Does not count.
pub fn put_note(rows: &mut (impl PutRows + ?Sized), user: UserId, other: UserId, note: &Note) {
    rows.put_point(PointTable::Note, Relation::key(user, other), Some(encode(note)));
    NOTES.put(rows, user, other, Some(0));
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Number of the relation, if it exists.
    #[must_use]
    pub fn related(&self, relation: &Relation, user: UserId, other: UserId) -> Option<u64> {
        self.rows.member(relation.forward, user.0.into(), other.0.into())
    }
}

impl Txn<'_> {
    /// Refuses another relation if the user has reached the limit.
    pub(crate) fn refuse_full(&self, relation: &Relation, user: UserId) -> Result<(), Refusal> {
        let is_full = *relation.count(&mut self.facts().stored_counts(user)) >= relation.max;
        if is_full { Err(relation.too_many) } else { Ok(()) }
    }

    /// Stores and counts a new relation between two existing users.
    pub fn relate(&mut self, relation: &Relation, user: UserId, other: UserId, number: u64) {
        relation.put(self.rows, user, other, Some(number));
        self.count(user, |counts| adjust_count((relation.count)(counts), true));
        if let Some(count) = relation.back_count {
            self.count(other, |counts| adjust_count(count(counts), true));
        }
        if let Total::Shown(total) | Total::Rows(total) = relation.total {
            self.total(|totals| adjust_count(total(totals), true));
        }
    }

    /// Removes and uncounts an existing relation. Rows of other tables stay.
    pub(crate) fn unrelate(&mut self, relation: &Relation, user: UserId, other: UserId) {
        // The counts of a deleted user are not shown, and may be removed already.
        let is_left = [user, other].map(|user| !self.facts().is_deleted(user));
        let [user_is_left, other_is_left] = is_left;
        // Counts change first, because a reader of counts subtracts the relations that have rows.
        if user_is_left {
            self.count(user, |counts| adjust_count((relation.count)(counts), false));
        }
        if let Some(count) = relation.back_count.filter(|_| other_is_left) {
            self.count(other, |counts| adjust_count(count(counts), false));
        }
        match relation.total {
            Total::Shown(total) if is_left == [true, true] => {
                self.total(|totals| adjust_count(total(totals), false));
            }
            Total::Rows(total) => self.total(|totals| adjust_count(total(totals), false)),
            Total::Shown(_) | Total::None => {}
        }
        relation.put(self.rows, user, other, None);
    }

    /// Ends a relation and removes its rows of other tables. Returns whether the relation existed.
    pub(crate) fn end(&mut self, relation: &Relation, user: UserId, other: UserId) -> bool {
        let existed = self.facts().related(relation, user, other).is_some();
        if existed {
            self.end_counting(relation, user, other);
        }
        existed
    }

    /// Ends a relation, with the effects of its end.
    pub(crate) fn end_with_effects(
        &mut self,
        relation: &Relation,
        (user, other): (UserId, UserId),
        effects: &mut Vec<Effect>,
    ) {
        if self.end(relation, user, other) {
            effects.extend((relation.ended)(user, other));
        }
    }

    /// Ends an existing relation. Returns the number of removed rows of other tables.
    pub(crate) fn end_counting(
        &mut self,
        relation: &Relation,
        user: UserId,
        other: UserId,
    ) -> usize {
        let number = relation.numbered.and_then(|_| self.facts().related(relation, user, other));
        let row = number.and_then(|number| relation.index_row(user, other, number));
        let row = row.iter().map(|row| row.remove(self.rows)).count();
        let rows = row + (relation.end)(self, user, other);
        debug_assert!(rows <= relation.end_rows, "the most rows that end with it");
        self.unrelate(relation, user, other);
        rows
    }
}
