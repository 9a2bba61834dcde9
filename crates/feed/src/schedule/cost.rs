//! Costs of scheduled posts.

use rows::{Cost, WORK_PER_ROW};

use crate::index::{MEDIA_ROWS, SCHEDULED_ROWS};
use crate::limits::{POST_BYTES_MAX, POST_MEDIA_MAX, SCHEDULED_MAX};
use crate::media::cost::pictures_cost;
use crate::posts::cost::Parts;
use crate::schedule::ScheduleCommand;

pub(crate) fn schedule_cost(command: &ScheduleCommand) -> Cost {
    let most_bytes = Parts::MAX.bytes();
    let pictures = pictures_cost(POST_MEDIA_MAX);
    let row = |bytes| Cost::of_rows(SCHEDULED_ROWS, bytes + 64);
    match command {
        ScheduleCommand::Create(new) => {
            let parts = Parts::of(&new.draft);
            let cost = row(parts.bytes()).and(pictures_cost(parts.media)).and(parts.quote_cost());
            // Lookups of the parent and its visibility.
            let looked_up = SCHEDULED_MAX + 19 + POST_MEDIA_MAX * MEDIA_ROWS;
            let read = 5 * POST_BYTES_MAX + looked_up * WORK_PER_ROW;
            Cost { work: cost.work + read, ..cost }
        }
        ScheduleCommand::Move { .. } => {
            let cost = row(0).and(row(most_bytes));
            Cost { work: cost.work + most_bytes + 2 * WORK_PER_ROW, ..cost }
        }
        ScheduleCommand::Cancel { .. } => {
            let cost = row(0).and(pictures).and(pictures);
            Cost { work: cost.work + most_bytes + 2 * WORK_PER_ROW, ..cost }
        }
    }
}

/// Cost of publishing a scheduled post, or of releasing its pictures.
pub(crate) fn due_post_cost() -> Cost {
    let row = Cost::of_rows(SCHEDULED_ROWS, 64);
    let cost = Parts::MAX.publication_cost().and(pictures_cost(POST_MEDIA_MAX)).and(row);
    // The account is read, too.
    Cost { work: cost.work + Parts::MAX.bytes() + 4 * WORK_PER_ROW, ..cost }
}
