//! The highest costs of what users choose of their follows and of what they are notified of.

use rows::{Cost, WORK_PER_ROW};

use super::polls::{NOTICE_LOOK_UPS, NOTICE_ROWS};
use crate::facts::whole::{FOLLOW_OPTIONS, MUTED_THREADS};
use crate::limits::{
    EDIT_NOTICES_MAX, FOLLOW_NOTICES_SEEN, FOLLOW_OPTIONS_BYTES_MAX, MUTED_THREADS_BYTES_MAX,
    POST_BYTES_MAX,
};

pub(super) fn thread_mute_cost() -> Cost {
    let cost = MUTED_THREADS.cost();
    // The post, a boost that names it, and whether the user may see it.
    let read = 4 * POST_BYTES_MAX + 8 * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}

pub(super) fn dismissal_cost() -> Cost {
    let cost = Cost::of_rows(12, 192);
    // The post, a boost that names it, and what the user chose of follows and threads.
    let rows = FOLLOW_OPTIONS_BYTES_MAX + MUTED_THREADS_BYTES_MAX;
    let read = 4 * POST_BYTES_MAX + 16 * WORK_PER_ROW + rows;
    Cost { work: cost.work + read, ..cost }
}

/// Of the options of a follow that are set or removed, for which those of all follows of the user are read twice.
pub(super) fn options_cost() -> Cost {
    let cost = FOLLOW_OPTIONS.cost();
    Cost { work: cost.work + FOLLOW_OPTIONS_BYTES_MAX, ..cost }
}

/// With a notification, and two that it replaces.
pub(super) fn follow_cost() -> Cost {
    let cost = Cost::of_rows(18, 256);
    let read = FOLLOW_NOTICES_SEEN * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}

/// Each user may see the post, has no notification of it yet, and gets one.
pub(super) fn edit_notices_cost() -> Cost {
    let cost = Cost::of_rows(NOTICE_ROWS * EDIT_NOTICES_MAX + 2, 48 * EDIT_NOTICES_MAX + 32);
    let looked_up = (NOTICE_LOOK_UPS + FOLLOW_NOTICES_SEEN + 2) * EDIT_NOTICES_MAX + 8;
    let read = 4 * POST_BYTES_MAX + looked_up * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}
