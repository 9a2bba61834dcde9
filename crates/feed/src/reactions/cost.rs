//! Costs of reactions.

use rows::{Cost, WORK_PER_ROW};

use crate::limits::{EARLIER_BOOSTS_MAX, ERASING_USERS_MAX, PINS_MAX, POST_BYTES_MAX};

/// Maximum size of the row of a boost, in bytes.
const BOOST_BYTES: usize = 64 + 5 * EARLIER_BOOSTS_MAX;

pub(crate) fn reaction_cost() -> Cost {
    // A boost is also a post.
    let cost = Cost::of_rows(22, 336 + 10 * EARLIER_BOOSTS_MAX).and(later_boosts_cost());
    // Reads of the post, a boost of it, its visibility, and the last boosts, each with its user.
    let rows = 12 + PINS_MAX + 4 * EARLIER_BOOSTS_MAX;
    let read = 6 * POST_BYTES_MAX + rows * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}

/// Cost of the later boosts that are shown again when a boost ends.
pub(crate) fn later_boosts_cost() -> Cost {
    let bytes = BOOST_BYTES + 16;
    let cost = Cost::of_rows(2 * EARLIER_BOOSTS_MAX, bytes * EARLIER_BOOSTS_MAX);
    // All of them are read, including boosts of deleted users between them.
    let read =
        (EARLIER_BOOSTS_MAX + 2 * ERASING_USERS_MAX as usize) * (BOOST_BYTES + 2 * WORK_PER_ROW);
    Cost { work: cost.work + read, ..cost }
}
