//! Maximum costs of quotes in addition to those of every post.

use rows::{Cost, WORK_PER_ROW};

use crate::limits::POST_BYTES_MAX;

/// Rows of a notification: its own, the counts, and two removed ones.
const NOTICE_ROWS: usize = 4;
/// Lookups of the quoted post, a boost of it, relations of both authors, and the conditions of the notification.
const LOOK_UPS: usize = 24;

/// Cost of checking the quote of a draft, and of notifying the author of the quoted post.
pub(crate) fn publication_cost() -> Cost {
    let cost = Cost::of_rows(NOTICE_ROWS, 64);
    Cost { work: cost.work + 5 * POST_BYTES_MAX + LOOK_UPS * WORK_PER_ROW, ..cost }
}

/// Cost of revoking a quote in addition to an edit: it reads the quoted post, and removes a notification.
pub(crate) fn revocation_cost() -> Cost {
    let cost = Cost::of_rows(NOTICE_ROWS, 64);
    Cost { work: cost.work + POST_BYTES_MAX + 2 * WORK_PER_ROW, ..cost }
}
