//! Costs of notifications and of muted threads.

use rows::{Cost, WORK_PER_ROW};

use crate::limits::{
    EDIT_NOTICES_MAX, EDIT_NOTICES_QUOTES, FOLLOW_NOTICES_SEEN, FOLLOW_OPTIONS_BYTES_MAX,
    MUTED_THREADS_BYTES_MAX, POST_BYTES_MAX,
};
use crate::whole::MUTED_THREADS;

/// Rows of a notification: its own, its count, and two that are removed.
pub(crate) const NOTICE_ROWS: usize = 4;
/// Lookups that find whether a user exists and may see a post, before a notification of an edit or of the end of a
/// poll.
pub(crate) const NOTICE_LOOK_UPS: usize = 18;

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

/// Cost of notifying some users of an edit, including checks that each may see the post and has no such notification
/// yet.
pub(crate) fn edit_notices_cost() -> Cost {
    let cost = Cost::of_rows(NOTICE_ROWS * EDIT_NOTICES_MAX + 2, 48 * EDIT_NOTICES_MAX + 32);
    let of_users = (NOTICE_LOOK_UPS + FOLLOW_NOTICES_SEEN + 2) * EDIT_NOTICES_MAX;
    let looked_up = of_users + EDIT_NOTICES_QUOTES + 8;
    let read = 4 * POST_BYTES_MAX + looked_up * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}
