//! Costs of polls.

use rows::{Cost, WORK_PER_ROW};

use crate::index::POLL_ROWS;
use crate::limits::{POLL_NOTICES_MAX, POLL_OPTION_BYTES_MAX, POLL_OPTIONS_MAX, POST_BYTES_MAX};
use crate::notifications::cost::{NOTICE_LOOK_UPS, NOTICE_ROWS};

/// Maximum size of a poll in the row of its post, in bytes.
pub(crate) const POLL_BYTES_MAX: usize = POLL_OPTIONS_MAX * (POLL_OPTION_BYTES_MAX + 2) + 32;

/// Cost of adding, replacing or removing the poll of a post.
pub(crate) fn poll_change_cost() -> Cost {
    let cost = Cost::of_rows(POLL_ROWS + 1, 64);
    Cost { work: cost.work + 2 * WORK_PER_ROW, ..cost }
}

/// Cost of a vote, including reads of the post, its visibility, and earlier votes.
pub(crate) fn vote_cost() -> Cost {
    let cost = Cost::of_rows(3, 128);
    Cost { work: cost.work + 2 * POST_BYTES_MAX + 20 * WORK_PER_ROW, ..cost }
}

/// Cost of notifying some users of the end of a poll.
pub(crate) fn end_cost() -> Cost {
    let notified = POLL_NOTICES_MAX + 1;
    let cost = Cost::of_rows(NOTICE_ROWS * notified, 48 * notified + 32);
    let looked_up = NOTICE_LOOK_UPS * notified + POLL_NOTICES_MAX + 8;
    let read = 2 * POST_BYTES_MAX + looked_up * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}
