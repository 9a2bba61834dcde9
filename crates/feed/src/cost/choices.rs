//! Costs of follow options, dismissals and muted threads.

use rows::{Cost, WORK_PER_ROW};

use super::polls::{NOTICE_LOOK_UPS, NOTICE_ROWS};
use crate::limits::{
    EDIT_NOTICES_MAX, FOLLOW_NOTICES_SEEN, FOLLOW_OPTIONS_BYTES_MAX, MUTED_THREADS_BYTES_MAX,
    POST_BYTES_MAX,
};
use crate::whole::{FOLLOW_OPTIONS, MUTED_THREADS};

pub(crate) fn thread_mute_cost() -> Cost {
    let cost = MUTED_THREADS.cost();
    // Reads of the post, a boost of it, and its visibility.
    let read = 4 * POST_BYTES_MAX + 8 * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}

pub(crate) fn dismissal_cost() -> Cost {
    let cost = Cost::of_rows(12, 192);
    // Reads of the post, a boost of it, follow options and muted threads.
    let rows = FOLLOW_OPTIONS_BYTES_MAX + MUTED_THREADS_BYTES_MAX;
    let read = 4 * POST_BYTES_MAX + 16 * WORK_PER_ROW + rows;
    Cost { work: cost.work + read, ..cost }
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

/// Cost of notifying some boosters of an edit: each may see the post, and has no such notification yet.
pub(crate) fn edit_notices_cost() -> Cost {
    let cost = Cost::of_rows(NOTICE_ROWS * EDIT_NOTICES_MAX + 2, 48 * EDIT_NOTICES_MAX + 32);
    let looked_up = (NOTICE_LOOK_UPS + FOLLOW_NOTICES_SEEN + 2) * EDIT_NOTICES_MAX + 8;
    let read = 4 * POST_BYTES_MAX + looked_up * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}
