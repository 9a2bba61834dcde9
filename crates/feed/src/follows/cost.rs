//! Costs of follows and their options.

use rows::{Cost, WORK_PER_ROW};

use crate::limits::{FOLLOW_NOTICES_SEEN, FOLLOW_OPTIONS_BYTES_MAX};
use crate::whole::FOLLOW_OPTIONS;

/// Cost of following `others` users, or requesting to.
pub(crate) fn follows_cost(others: usize) -> Cost {
    // A request has two rows more than a follow. A follow of a user who was locked before replaces a request of four
    // rows.
    let cost = Cost::of_rows(7 * others + 3, 64 + 64 * others);
    // For each user, there are lookups of blocks in both directions, of the lock and of a request.
    Cost { work: cost.work + 6 * others * WORK_PER_ROW, ..cost }
}

/// Cost of setting or removing the options of a follow: the row of all options of the user is read twice.
pub(crate) fn options_cost() -> Cost {
    let cost = FOLLOW_OPTIONS.cost();
    Cost { work: cost.work + FOLLOW_OPTIONS_BYTES_MAX, ..cost }
}

/// Cost of a follow, including its notification and two that are removed.
pub(crate) fn follow_cost() -> Cost {
    let cost = Cost::of_rows(18, 256);
    let read = FOLLOW_NOTICES_SEEN * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}
