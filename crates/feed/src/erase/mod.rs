//! Phases of the removal of a deleted user's data.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod items;
pub(crate) mod mend;
pub(crate) mod rules;

use rows::Table;
use serde::{Deserialize, Serialize};

/// Phase of the removal of a deleted user: the items in a table, or at the end only the marks of the removal itself.
/// Stored as the tag of the table, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct ErasurePhase(Option<Table>);

impl ErasurePhase {
    /// Last phase: only the marks of the removal are left.
    pub const LAST: Self = Self(None);

    /// Phase that removes the items of a table.
    #[must_use]
    pub const fn of(table: Table) -> Self {
        Self(Some(table))
    }

    pub(crate) const fn in_table(table: Option<Table>) -> Self {
        Self(table)
    }

    /// Table of the items.
    #[must_use]
    pub const fn table(self) -> Option<Table> {
        self.0
    }
}

impl From<ErasurePhase> for u8 {
    fn from(phase: ErasurePhase) -> Self {
        phase.0.map_or(0, Table::tag)
    }
}

impl TryFrom<u8> for ErasurePhase {
    type Error = &'static str;

    fn try_from(tag: u8) -> Result<Self, Self::Error> {
        match tag {
            0 => Ok(Self::LAST),
            _ => Table::of_tag(tag).map(Self::of).ok_or("no table has this tag"),
        }
    }
}
