//! Costs of deleting users.

use rows::{Cost, WORK_PER_ROW};

use crate::index::MEDIA_ROWS;
use crate::limits::{
    ERASE_ROWS_MAX, ERASING_USERS_MAX, FEATURED_TAGS_MAX, FOLLOW_OPTIONS_BYTES_MAX,
    FOLLOWED_TAGS_MAX, HANDLE_CHARS_MAX, POST_BYTES_MAX, TAG_BYTES_MAX,
};
use crate::media::cost::MEDIA_BYTES;
use crate::relation::RELATIONS;
use crate::users::rules::USER_BYTES_MAX;
use crate::whole::WHOLE_TABLES;

/// The last rows of a deleted user are removed by one command.
const _: () =
    assert!(FEATURED_TAGS_MAX + FOLLOWED_TAGS_MAX + WHOLE_TABLES.len() + 6 <= ERASE_ROWS_MAX);

/// Cost of removing some rows of a deleted user.
pub(crate) fn erasure_cost() -> Cost {
    // Each follower may have a row of options, which is read and written.
    let options = ERASE_ROWS_MAX / 4 * FOLLOW_OPTIONS_BYTES_MAX;
    let cost = Cost::of_rows(ERASE_ROWS_MAX, (TAG_BYTES_MAX + 16) * ERASE_ROWS_MAX + options);
    // The reads include memberships in the lists of followers.
    let pictures = ERASE_ROWS_MAX / MEDIA_ROWS * 3 * MEDIA_BYTES;
    let read = ERASE_ROWS_MAX / 3 * (2 * POST_BYTES_MAX + 2 * WORK_PER_ROW) + pictures + options;
    Cost { work: cost.work + read, ..cost }
}

pub(crate) fn user_deletion_cost() -> Cost {
    let cost = Cost::of_rows(7, HANDLE_CHARS_MAX + 96);
    // Relations to each user being erased, and to this user, are looked up twice.
    let related: usize = RELATIONS.into_iter().map(|relation| relation.counts().count()).sum();
    let looked_up = 2 * (1 + related) * (ERASING_USERS_MAX as usize + 1);
    Cost { work: cost.work + looked_up * WORK_PER_ROW + USER_BYTES_MAX, ..cost }
}
