//! Passes of a check over the tables, in order.

use rows::{NameTable, PointTable, SetTable, Table};

use crate::relation::{RELATIONS, Relation};
use crate::tables::{index_tables, record_check};
use crate::whole::WHOLE_TABLES;

/// A pass over the rows of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pass {
    Points(PointTable),
    Members(SetTable),
    /// Sums up the rows of one direction of a relation.
    Relations(&'static Relation, SetTable),
    /// Adds rows that exist only in the other direction.
    Complete(&'static Relation),
    /// Adds rows of a relation that has only a text.
    Texts(&'static Relation, PointTable),
    /// Removes rows of a relation without a text.
    WithText(&'static Relation, SetTable),
    Names(NameTable),
    /// Removes rows that are not valid records.
    Records(Table),
    /// Checks rows that hold all records of an owner.
    Whole(NameTable),
    /// Removes index rows that their records do not have.
    Index(Table),
    Users,
    Counts,
    Samples,
    /// Adds missing counts of uses of apps.
    AppUses,
    /// Checks pictures.
    Media,
    /// Checks the space used by pictures.
    MediaSpaces,
    /// Checks scheduled posts.
    Scheduled,
    /// Removes due rows that no record justifies.
    Pending,
    /// Checks due rows.
    Due,
    Totals,
}

/// All passes. Later passes rely on the results of earlier ones.
pub(crate) fn passes() -> Vec<Pass> {
    let records = Table::all().filter(|table| record_check(*table).is_some()).map(Pass::Records);
    let related = RELATIONS.into_iter().flat_map(relation);
    let whole = WHOLE_TABLES.into_iter().map(Pass::Whole);
    let indexes = index_tables().map(Pass::Index);
    let checked = records.chain(BEFORE_RELATIONS).chain(related).chain(LISTS);
    checked.chain(whole).chain(LAST).chain(indexes).chain(COUNTED).collect()
}

fn relation(relation: &'static Relation) -> Vec<Pass> {
    let tables = relation.tables();
    if let Some(text) = relation.text {
        let rows = tables.map(|table| Pass::WithText(relation, table));
        return std::iter::once(Pass::Texts(relation, text)).chain(rows).collect();
    }
    let compare = tables.map(|table| Pass::Relations(relation, table));
    // After the comparison of blocks, a pass ends the other relations of blocked users.
    let is_block = relation.forward == SetTable::Blocks;
    let more = is_block.then_some(Pass::Members(relation.forward));
    compare.chain([Pass::Complete(relation)]).chain(more).collect()
}

const BEFORE_RELATIONS: [Pass; 28] = [
    Pass::Pending,
    Pass::Members(SetTable::DeletedUsers),
    Pass::Members(SetTable::ErasingUsers),
    Pass::Names(NameTable::Handle),
    Pass::Points(PointTable::User),
    Pass::Users,
    Pass::Points(PointTable::Account),
    Pass::Points(PointTable::Grant),
    Pass::Points(PointTable::AppUses),
    Pass::AppUses,
    Pass::Points(PointTable::App),
    Pass::Points(PointTable::Post),
    Pass::Scheduled,
    Pass::Media,
    Pass::MediaSpaces,
    Pass::Names(NameTable::FeaturedTag),
    Pass::Names(NameTable::FollowedTag),
    Pass::Members(SetTable::Favourites),
    Pass::Members(SetTable::Bookmarks),
    Pass::Members(SetTable::Pins),
    Pass::Members(SetTable::Less),
    Pass::Members(SetTable::Reactions),
    Pass::Members(SetTable::Votes),
    Pass::Members(SetTable::PollVotes),
    Pass::Points(PointTable::PollCounts),
    Pass::Points(PointTable::PostCounts),
    Pass::Members(SetTable::Notifications),
    Pass::Points(PointTable::NoticeState),
];

/// Passes over lists, after follows.
const LISTS: [Pass; 3] = [
    Pass::Names(NameTable::List),
    Pass::Names(NameTable::ListMember),
    Pass::Names(NameTable::ListedUser),
];

const LAST: [Pass; 8] = [
    Pass::Points(PointTable::Markers),
    Pass::Members(SetTable::LockedUsers),
    Pass::Points(PointTable::Story),
    Pass::Points(PointTable::StoryText),
    Pass::Members(SetTable::StoryViews),
    Pass::Members(SetTable::Seen),
    Pass::Points(PointTable::Sample),
    Pass::Samples,
];

/// Passes that depend on all records and their rows.
const COUNTED: [Pass; 3] = [Pass::Due, Pass::Counts, Pass::Totals];
