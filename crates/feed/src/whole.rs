//! Records that one row per owner holds together. Each kind is one declaration, from which follow its reads, changes,
//! checks, erasure and cost.
//!
//! **Invariant:** a reader sees all records of an owner as one command left them, and an owner without records costs
//! one lookup. Limits on the records bound the length of a row.

use std::collections::BTreeSet;

use rows::{Cost, NameTable, PutRows, Rows, Value, decode, encode, try_decode};
use serde::{Serialize, de::DeserializeOwned};

use crate::conversations::ConversationMark;
use crate::facts::{Facts, Txn};
use crate::filters::Filter;
use crate::follows::follow_options::{FollowOptions, OptionsOf};
use crate::ids::{PostId, UserId};
use crate::limits;
use crate::posts::version::PostVersion;

/// All records of one kind that an owner has, in one row; no row if there are none.
pub struct WholeRow<O, T> {
    table: NameTable,
    /// Maximum size of a row, in bytes.
    bytes_max: usize,
    /// Whether a command can have stored these records, of which there is at least one.
    is_valid: fn(&[T]) -> bool,
    /// Whether this existing owner can have this record.
    fits: fn(Facts<'_>, O, &T) -> bool,
}

/// Filters of a user, oldest first.
pub const FILTERS: WholeRow<UserId, Filter> = WholeRow {
    table: NameTable::Filters,
    bytes_max: limits::FILTERS_BYTES_MAX,
    is_valid: |_| true,
    fits: |_, _, _| true,
};

/// Marks of a user's conversations: one for each conversation, latest read position first.
pub const CONVERSATION_MARKS: WholeRow<UserId, ConversationMark> = WholeRow {
    table: NameTable::Conversations,
    bytes_max: limits::CONVERSATIONS_BYTES_MAX,
    is_valid: |marks| {
        let firsts: BTreeSet<_> = marks.iter().map(|mark| mark.first).collect();
        let is_bounded = marks.len() <= limits::CONVERSATION_MARKS_MAX;
        let is_sorted = marks.is_sorted_by(|one, other| one.read >= other.read);
        is_bounded && is_sorted && firsts.len() == marks.len()
    },
    fits: |_, _, _| true,
};

/// Non-default options of a user's follows and follow requests, in ascending order of the followed user.
pub const FOLLOW_OPTIONS: WholeRow<UserId, OptionsOf> = WholeRow {
    table: NameTable::FollowOptions,
    bytes_max: limits::FOLLOW_OPTIONS_BYTES_MAX,
    is_valid: |all| {
        let notifying = all.iter().filter(|it| it.options.notified_since.is_some()).count();
        all.is_sorted_by(|one, other| one.other < other.other)
            && all.len() <= limits::FOLLOW_OPTIONS_MAX
            && notifying <= limits::NOTIFYING_MAX
            && all.iter().all(|found| found.options != FollowOptions::default())
    },
    fits: |facts, user, it| {
        // A deleted user's options are removed last, after the follows.
        facts.is_deleted(user) || facts.follows(user, it.other) || facts.requests(user, it.other)
    },
};

/// First posts of the threads that a user has muted, in the order of muting.
pub const MUTED_THREADS: WholeRow<UserId, PostId> = WholeRow {
    table: NameTable::MutedThreads,
    bytes_max: limits::MUTED_THREADS_BYTES_MAX,
    is_valid: |threads| {
        let different: BTreeSet<_> = threads.iter().collect();
        threads.len() <= limits::MUTED_THREADS_MAX && different.len() == threads.len()
    },
    fits: |_, _, _| true,
};

/// Earlier versions of an edited post, oldest first: the first version, and the newest of the others.
pub const POST_VERSIONS: WholeRow<PostId, PostVersion> = WholeRow {
    table: NameTable::PostVersions,
    bytes_max: limits::VERSIONS_BYTES_MAX,
    is_valid: |versions| versions.is_sorted_by(|one, other| one.since < other.since),
    fits: |facts, post, _| facts.stored_post(post).is_some_and(|post| post.edited.is_some()),
};

macro_rules! all {
    ($($kind:ident),*) => {
        /// All kinds of whole rows.
        pub(crate) const WHOLE_ROWS: [&dyn AnyWholeRow; WHOLE_TABLES.len()] = [$(&$kind),*];

        /// Tables of whole rows.
        pub const WHOLE_TABLES: [NameTable; [$(stringify!($kind)),*].len()] = [$($kind.table),*];
    };
}

all!(FILTERS, CONVERSATION_MARKS, FOLLOW_OPTIONS, MUTED_THREADS, POST_VERSIONS);

/// Tables of whole rows whose owners are users.
pub fn tables_of_users() -> impl Iterator<Item = NameTable> {
    WHOLE_ROWS.into_iter().filter(|whole| whole.is_of_users()).map(AnyWholeRow::table)
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Filters of `user`, oldest first. They may name posts that are deleted or hidden from the user.
    #[must_use]
    pub fn filters(&self, user: UserId) -> Vec<Filter> {
        self.whole(&FILTERS, user)
    }

    /// Marks of a user's conversations, latest read position first.
    #[must_use]
    pub fn conversation_marks(&self, user: UserId) -> Vec<ConversationMark> {
        self.whole(&CONVERSATION_MARKS, user)
    }

    /// Non-default options of a user's follows, in ascending order of the followed user.
    #[must_use]
    pub fn all_follow_options(&self, user: UserId) -> Vec<OptionsOf> {
        self.whole(&FOLLOW_OPTIONS, user)
    }

    /// First posts of the threads that a user has muted, in the order of muting. Some may be deleted.
    #[must_use]
    pub fn muted_threads(&self, user: UserId) -> Vec<PostId> {
        self.whole(&MUTED_THREADS, user)
    }

    /// Earlier versions of an edited post, oldest first: the first version, and the newest of the others. Does not
    /// check the visibility of the post.
    #[must_use]
    pub fn post_versions(&self, post: PostId) -> Vec<PostVersion> {
        self.whole(&POST_VERSIONS, post)
    }

    fn whole<O: RowOwner, T: DeserializeOwned>(&self, kind: &WholeRow<O, T>, owner: O) -> Vec<T> {
        let row = self.rows.name(kind.table, owner.key().as_ref());
        row.map_or_else(Vec::new, |row| decode(&row))
    }
}

impl Txn<'_> {
    /// Stores all records of a kind that an owner has.
    pub(crate) fn put_whole<O: RowOwner, T: Serialize>(
        &mut self,
        kind: &WholeRow<O, T>,
        owner: O,
        all: &[T],
    ) {
        kind.put(self.rows, owner, all);
    }
}

impl<O: RowOwner, T: Serialize> WholeRow<O, T> {
    /// Writes all records of an owner.
    pub fn put(&self, rows: &mut (impl PutRows + ?Sized), owner: O, all: &[T]) {
        let value = (!all.is_empty()).then(|| encode(&all));
        rows.put_name(self.table, owner.key().as_ref(), value);
    }
}

impl<O, T> WholeRow<O, T> {
    /// Cost of reading and writing the row.
    pub(crate) const fn cost(&self) -> Cost {
        let cost = Cost::of_rows(1, self.bytes_max + 16);
        Cost { work: cost.work + self.bytes_max, ..cost }
    }
}

/// Owner of a whole row.
pub trait RowOwner: Copy {
    /// Bytes of the key.
    type Key: AsRef<[u8]>;
    /// Whether owners are users.
    const IS_USER: bool;

    /// Key of the row.
    fn key(self) -> Self::Key;

    /// Reverses [`RowOwner::key`].
    fn of_key(key: &[u8]) -> Option<Self>;

    /// Whether this owner may have stored rows.
    fn may_own(self, facts: Facts<'_>) -> bool;
}

impl RowOwner for UserId {
    type Key = [u8; 4];
    const IS_USER: bool = true;

    fn key(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    fn of_key(key: &[u8]) -> Option<Self> {
        key.try_into().ok().map(|key| Self(u32::from_be_bytes(key)))
    }

    fn may_own(self, facts: Facts<'_>) -> bool {
        facts.exists(self) || facts.has_rows_left(self)
    }
}

impl RowOwner for PostId {
    type Key = [u8; 8];
    const IS_USER: bool = false;

    fn key(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    fn of_key(key: &[u8]) -> Option<Self> {
        key.try_into().ok().map(|key| Self(u64::from_be_bytes(key)))
    }

    fn may_own(self, facts: Facts<'_>) -> bool {
        facts.stored_post(self).is_some()
    }
}

/// A [`WholeRow`] of any owner and record type.
pub(crate) trait AnyWholeRow {
    /// Table of the rows.
    fn table(&self) -> NameTable;

    /// Whether the owners are users.
    fn is_of_users(&self) -> bool;

    /// Whether key and value form a valid row.
    fn is_record(&self, key: &[u8], value: &[u8]) -> bool;

    /// Value that a valid row should have; `None` to remove the row.
    fn mended(&self, facts: Facts<'_>, key: &[u8], value: &[u8]) -> Option<Value>;
}

impl<O: RowOwner, T: Serialize + DeserializeOwned> AnyWholeRow for WholeRow<O, T> {
    fn table(&self) -> NameTable {
        self.table
    }

    fn is_of_users(&self) -> bool {
        O::IS_USER
    }

    fn is_record(&self, key: &[u8], value: &[u8]) -> bool {
        let all = try_decode::<Vec<T>>(value).filter(|all| !all.is_empty());
        O::of_key(key).is_some() && all.is_some_and(|all| (self.is_valid)(&all))
    }

    fn mended(&self, facts: Facts<'_>, key: &[u8], value: &[u8]) -> Option<Value> {
        let owner = O::of_key(key).filter(|owner| owner.may_own(facts))?;
        let mut all: Vec<T> = try_decode(value)?;
        all.retain(|one| (self.fits)(facts, owner, one));
        (!all.is_empty()).then(|| encode(&all))
    }
}
