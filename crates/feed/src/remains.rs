//! What is left of a deleted user while it is being removed.

use rows::Table;
use serde::{Deserialize, Serialize};

/// What can be left of a deleted user: items that they have in a table; or only the rows that say that something is left.
/// Stored as the tag of the table, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Remains(Option<Table>);

impl Remains {
    /// Only the rows that say that something is left.
    pub const NOTHING: Self = Self(None);

    /// Items of a table.
    #[must_use]
    pub const fn of(table: Table) -> Self {
        Self(Some(table))
    }

    pub(crate) const fn in_table(table: Option<Table>) -> Self {
        Self(table)
    }

    /// The table with the items.
    #[must_use]
    pub const fn table(self) -> Option<Table> {
        self.0
    }
}

impl From<Remains> for u8 {
    fn from(remains: Remains) -> Self {
        remains.0.map_or(0, Table::tag)
    }
}

impl TryFrom<u8> for Remains {
    type Error = &'static str;

    fn try_from(tag: u8) -> Result<Self, Self::Error> {
        match tag {
            0 => Ok(Self::NOTHING),
            _ => Table::of_tag(tag).map(Self::of).ok_or("no table has this tag"),
        }
    }
}
