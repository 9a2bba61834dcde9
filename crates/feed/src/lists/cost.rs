//! Costs of lists.

use rows::{Cost, WORK_PER_ROW};

use crate::index::LIST_ROWS;
use crate::limits::{LIST_CHANGED_MAX, LIST_MEMBERS_MAX, LIST_TITLE_BYTES_MAX, LISTS_MAX};
use crate::lists::ListChange;

/// Key bytes of a row of a list or list member.
const LIST_ROW_BYTES: usize = 16;

pub(crate) fn list_cost(change: &ListChange) -> Cost {
    // The row of the list.
    let list = Cost::of_rows(2, LIST_TITLE_BYTES_MAX + LIST_ROW_BYTES);
    let look_up = |rows: usize| Cost { work: rows * WORK_PER_ROW, ..list };
    match change {
        ListChange::Create(_) => list.and(look_up(LISTS_MAX)),
        ListChange::Edit { .. } => list.and(look_up(2)),
        ListChange::Delete { .. } => {
            let members = LIST_ROWS * LIST_MEMBERS_MAX;
            list.and(Cost::of_rows(members, members * LIST_ROW_BYTES))
        }
        ListChange::Add { users, .. } => {
            let rows = LIST_ROWS * users.len().min(LIST_CHANGED_MAX);
            // All members are read.
            list.and(Cost::of_rows(rows, rows * LIST_ROW_BYTES))
                .and(look_up(LIST_MEMBERS_MAX + rows))
        }
        ListChange::Remove { users, .. } => {
            let rows = LIST_ROWS * users.len().min(LIST_CHANGED_MAX);
            list.and(Cost::of_rows(rows, rows * LIST_ROW_BYTES))
        }
    }
}

/// Cost of removing a user from all lists of a former follower.
pub(crate) fn unlisted_cost() -> Cost {
    let rows = LIST_ROWS * LISTS_MAX;
    Cost::of_rows(rows, rows * LIST_ROW_BYTES)
}
