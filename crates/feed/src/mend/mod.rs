//! Checks all rows of the feed and repairs contradictions: indexes, counts and totals are recomputed from the users,
//! posts, stories and samples, and each direction of a relation from the other.
//!
//! A check also changes rows; a caller that wants only the findings discards the changes. It works in steps, so that
//! the changes can be written in between.
//!
//! **Invariant:** a check finds nothing in rows that only commands have written.
//! **Invariant:** a second check finds nothing.

mod counts;
mod index;
mod passes;
mod records;
mod relations;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rows::{Finding, NameTable, PointTable, RowsMut, Scan, SetTable, Stamp, Value};

use crate::due::DueWork;
use crate::facts::Facts;
use crate::ids::{SampleSetId, UserId};
use crate::media::MediaSpace;
use crate::mend::passes::{Pass, passes};
use crate::reactions::Reaction;
use crate::relation::RELATIONS;
use crate::text::{Label, SetName};

/// Maximum number of rows of one step.
pub(crate) const STEP_ROWS: usize = 1_024;

/// A running check.
#[derive(Debug, Default)]
pub struct Mend {
    /// Passes left.
    pub(crate) passes: VecDeque<Pass>,
    pub(crate) from: From,
    /// Whether ephemeral rows are newer than the other rows, so that the two cannot be compared.
    pub(crate) ephemeral_ahead: bool,
    pub(crate) counted: Counted,
    /// Next user id that must have a row.
    pub(crate) next_user: u64,
    pub(crate) accounts: CountedAccounts,
    pub(crate) media: Spaces,
    /// Polls added by edits. Other polls have the ids of their posts.
    pub(crate) polls: BTreeSet<u64>,
    pub(crate) sets: BTreeMap<SetName, CountedSamples>,
    pub(crate) relations: relations::Relations,
    /// Due work that no record justifies: for deleted posts, polls and stories, and for changed accounts.
    pub(crate) pending: BTreeSet<DueWork>,
}

/// Place in a table where a step continues.
#[derive(Clone, Debug, Default)]
pub(crate) struct From {
    /// Key of a point, or owner and item.
    pub(crate) place: (u64, u64),
    pub(crate) name: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) posts: u64,
    pub(crate) closed: u64,
    /// Rows of each relation that its total counts; mutual relations count twice.
    pub(crate) related: [u64; RELATIONS.len()],
    pub(crate) stories: u64,
    pub(crate) deleted: u32,
    pub(crate) erasing: u32,
    pub(crate) last_stamp: u64,
}

/// Rows during one step.
pub(crate) struct Rows<'a, R> {
    pub(crate) rows: &'a mut R,
    pub(crate) report: &'a mut dyn FnMut(Finding),
    /// Taken from [`Mend::pending`] during a step.
    pub(crate) pending: BTreeSet<DueWork>,
}

impl Mend {
    /// Creates a check of all rows. `ephemeral_ahead` is whether ephemeral rows are newer than the others.
    #[must_use]
    pub fn new(ephemeral_ahead: bool) -> Self {
        Self { ephemeral_ahead, passes: passes().into(), ..Self::default() }
    }

    /// Checks and repairs some more rows. Returns false at the end.
    pub fn step<R: Scan + RowsMut>(
        &mut self,
        rows: &mut R,
        report: &mut dyn FnMut(Finding),
    ) -> bool {
        let Some(pass) = self.passes.front().copied() else { return false };
        let mut step = Rows { rows, report, pending: std::mem::take(&mut self.pending) };
        let from = self.from.clone();
        let next = match pass {
            Pass::Points(table) => self.points(table, &mut step, from.place.0),
            Pass::Members(table) => self.members(table, &mut step, from.place),
            Pass::Relations(relation, table) => {
                self.add_relations((relation, table), &mut step, from.place)
            }
            Pass::Complete(relation) => self.complete_relations(relation, &mut step, from.place.0),
            Pass::Texts(relation, table) => step.texts((relation, table), from.place.0),
            Pass::WithText(relation, table) => step.with_text((relation, table), from.place),
            Pass::Records(table) => step.records(table, &from),
            Pass::Whole(table) => step.whole(table, &from.name),
            Pass::Index(table) => step.index(table, &from),
            Pass::Names(table) => step.each_name(table, &from.name, |step, name, value| {
                step.named(table, name, value);
            }),
            Pass::Users => self.missing_users(&mut step),
            Pass::Counts => self.count_users(&mut step, from.place.0),
            Pass::Samples => self.finish_samples(&mut step),
            Pass::AppUses => self.add_app_uses(&mut step),
            Pass::Media => self.media(&mut step, &from.name),
            Pass::MediaSpaces => self.media_spaces(&mut step, &from.name),
            Pass::Scheduled => self.scheduled(&mut step, &from.name),
            Pass::Pending => step.each_name(NameTable::Due, &from.name, |step, name, _| {
                step.note_pending(name);
            }),
            Pass::Due => self.due(&mut step, &from.name),
            Pass::Totals => self.totals(&mut step),
        };
        self.pending = step.pending;
        if next.is_none() {
            self.passes.pop_front();
        }
        self.from = next.unwrap_or_default();
        true
    }

    fn points<R: Scan + RowsMut>(
        &mut self,
        table: PointTable,
        step: &mut Rows<'_, R>,
        from: u64,
    ) -> Option<From> {
        let (found, next) = step.rows.points_from(table, from, STEP_ROWS);
        for (key, value) in found {
            match table {
                PointTable::User => self.user(step, key, &value),
                PointTable::Post => self.post(step, key, &value),
                PointTable::Story => self.story(step, key, &value),
                PointTable::StoryText => self.story_text(step, key),
                PointTable::Sample => self.sample(step, key, &value),
                PointTable::Account => self.account(step, key, &value),
                PointTable::Grant => self.grant(step, key, &value),
                PointTable::AppUses => self.app_uses(step, key, &value),
                PointTable::App => self.app(step, key),
                PointTable::PostCounts => step.post_counts(key),
                PointTable::PollCounts => self.poll_counts(step, key),
                PointTable::NoticeState => step.notice_state(key, &value),
                PointTable::Markers => self.markers(step, key, &value),
                // No pass reads the points of other tables.
                _ => {}
            }
        }
        next.map(|next| From { place: (next, 0), ..From::default() })
    }

    fn members<R: Scan + RowsMut>(
        &mut self,
        table: SetTable,
        step: &mut Rows<'_, R>,
        from: (u64, u64),
    ) -> Option<From> {
        let (found, next) = step.rows.members_from(table, from, STEP_ROWS);
        for (owner, item, number) in found {
            match table {
                SetTable::DeletedUsers => self.deleted_user(step, owner, item),
                SetTable::LockedUsers => step.locked_user(owner, item),
                SetTable::ErasingUsers => self.erasing_user(step, (owner, item)),
                SetTable::StoryViews => self.view(step, (table, SetTable::Seen), owner, item),
                SetTable::Seen => self.view(step, (table, SetTable::StoryViews), owner, item),
                SetTable::Blocks => step.block(owner, item),
                SetTable::Favourites => {
                    self.reaction_of_user(step, Reaction::Favourite, (owner, item, number));
                }
                SetTable::Bookmarks => {
                    self.reaction_of_user(step, Reaction::Bookmark, (owner, item, number));
                }
                SetTable::Pins => {
                    self.reaction_of_user(step, Reaction::Pin, (owner, item, number));
                }
                SetTable::Less => {
                    self.reaction_of_user(step, Reaction::Less, (owner, item, number));
                }
                SetTable::Reactions => step.reaction_of_post(owner, item, number),
                SetTable::Votes => self.vote_of_user(step, (owner, item, number)),
                SetTable::PollVotes => self.vote_of_poll(step, (owner, item, number)),
                SetTable::Notifications => self.notification(step, (owner, item, number)),
                _ => {}
            }
        }
        next.map(|place| From { place, ..From::default() })
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    pub(crate) fn facts(&self) -> Facts<'_, R> {
        Facts::new(&*self.rows)
    }

    pub(crate) fn derived(&mut self, what: String) {
        (self.report)(Finding::derived(what));
    }

    pub(crate) fn lost(&mut self, what: String) {
        (self.report)(Finding::lost(what));
    }

    /// User with this number, if it is valid.
    pub(crate) fn user(&self, number: u64) -> Option<UserId> {
        u32::try_from(number).ok().filter(|id| *id < self.rows.totals().users).map(UserId)
    }

    /// Whether the user was deleted and should have no rows left.
    pub(crate) fn is_erased(&self, user: UserId) -> bool {
        self.is_deleted(user) && !self.facts().has_rows_left(user)
    }

    /// Sets a member to its expected state. Returns whether it was wrong.
    pub(crate) fn set(
        &mut self,
        table: SetTable,
        owner: u64,
        item: u64,
        number: Option<u64>,
    ) -> bool {
        let differs = self.rows.member(table, owner, item) != number;
        if differs {
            self.rows.put_member(table, owner, item, number);
        }
        differs
    }

    /// Sets a point to its expected state. Returns whether it was wrong.
    pub(crate) fn put(&mut self, table: PointTable, key: u64, value: Option<Value>) -> bool {
        let differs = self.rows.point(table, key) != value;
        if differs {
            self.rows.put_point(table, key, value);
        }
        differs
    }

    fn named(&mut self, table: NameTable, name: &[u8], value: &[u8]) {
        match table {
            NameTable::Handle => self.handle(name, value),
            NameTable::FeaturedTag | NameTable::FollowedTag => self.user_tag(table, name),
            NameTable::List => self.list(name),
            NameTable::ListMember | NameTable::ListedUser => self.list_member(table, name),
            _ => {}
        }
    }

    pub(crate) fn each_name(
        &mut self,
        table: NameTable,
        from: &[u8],
        mut each: impl FnMut(&mut Self, &[u8], &[u8]),
    ) -> Option<From> {
        let names = self.rows.first_names(table, from, STEP_ROWS);
        for name in &names {
            if let Some(value) = self.rows.name(table, name) {
                each(self, name, &value);
            }
        }
        let last = names.last().filter(|_| names.len() >= STEP_ROWS)?;
        Some(From { name: [last.as_slice(), &[0]].concat(), ..From::default() })
    }

    /// Sets a named row to its expected value. Returns whether it was wrong.
    pub(crate) fn put_named(&mut self, table: NameTable, name: &[u8], value: Value) -> bool {
        let differs = self.rows.name(table, name).as_ref() != Some(&value);
        if differs {
            self.rows.put_name(table, name, Some(value));
        }
        differs
    }

    pub(crate) fn remove_named(&mut self, table: NameTable, name: &[u8]) {
        self.derived(format!("{table:?} {}: no record has this row", name.escape_ascii()));
        self.rows.put_name(table, name, None);
    }
}

/// Formats a stamp with its time.
pub(crate) fn at(stamp: u64) -> String {
    format!("{stamp} (of {} ms after 1970)", Stamp(stamp).unix_ms())
}

/// Counts of a set.
#[derive(Debug)]
pub(crate) struct CountedSamples {
    pub(crate) id: SampleSetId,
    pub(crate) samples: u32,
    pub(crate) labels: BTreeMap<Label, u32>,
}

/// Counts of accounts and apps.
#[derive(Debug, Default)]
pub(crate) struct CountedAccounts {
    pub(crate) accounts: u32,
    pub(crate) disabled: u32,
    pub(crate) pending: u32,
    pub(crate) apps_unused: u32,
    /// Number of grants with which each app acts for users.
    pub(crate) uses: BTreeMap<u64, u32>,
}

impl CountedAccounts {
    /// Numbers of all, disabled and pending accounts, and of unused apps.
    pub(crate) fn totals(&self) -> [u32; 4] {
        [self.accounts, self.disabled, self.pending, self.apps_unused]
    }
}

/// Space used by pictures, by the keys of rows.
pub(crate) type Spaces = BTreeMap<[u8; 4], MediaSpace>;
