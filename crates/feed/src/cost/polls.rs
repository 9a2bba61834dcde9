//! Costs of polls and scheduled posts.

use rows::{Cost, WORK_PER_ROW};

use super::{MENTIONS_MAX, edit_cost_of, pictures_cost, post_cost, publication_cost};
use crate::limits::{
    POLL_NOTICES_MAX, POLL_OPTION_BYTES_MAX, POLL_OPTIONS_MAX, POST_BYTES_MAX, POST_MEDIA_MAX,
    POST_TAGS_MAX, SCHEDULED_MAX,
};
use crate::poll::PollCommand;
use crate::row_counts::{MEDIA_ROWS, POLL_ROWS, SCHEDULED_ROWS};
use crate::schedule::{ScheduleCommand, ScheduledPost};

/// Most bytes of a poll in the row of its post.
pub(super) const POLL_BYTES_MAX: usize = POLL_OPTIONS_MAX * (POLL_OPTION_BYTES_MAX + 2) + 32;
/// Rows of a notification: its own, which are counted, and two that are removed.
pub(super) const NOTICE_ROWS: usize = 4;
/// Rows that are looked up before somebody is notified of the end of a poll, or of an edit: whether they exist and may see
/// the post.
pub(super) const NOTICE_LOOK_UPS: usize = 18;
/// Most bytes of the row of a scheduled post.
const SCHEDULED_BYTES_MAX: usize = 2 * POST_BYTES_MAX + POLL_BYTES_MAX + 10 * POST_MEDIA_MAX + 128;

pub(super) fn poll_cost(command: &PollCommand) -> Cost {
    match command {
        PollCommand::Publish(new) => {
            let post = &new.post;
            let cost = post_cost(&post.text, post.warning.as_str(), post.parent.is_some());
            // And when it ends.
            cost.and(Cost::of_rows(1, POLL_BYTES_MAX + 16))
        }
        PollCommand::Edit(edit) => {
            let post = edit_cost_of(&edit.edit);
            let poll = Cost::of_rows(POLL_ROWS + 1, 64);
            let poll = Cost { work: poll.work + 2 * WORK_PER_ROW, ..poll };
            // As of an edit of pictures.
            post.and(poll).and(pictures_cost(2 * POST_MEDIA_MAX))
        }
        // The post, whether the user may see it, and whether they have voted.
        PollCommand::Vote { .. } => {
            let cost = Cost::of_rows(3, 128);
            Cost { work: cost.work + 2 * POST_BYTES_MAX + 20 * WORK_PER_ROW, ..cost }
        }
    }
}

/// Cost of notifying some of those whom the end of a poll concerns.
pub(super) fn end_cost() -> Cost {
    let notified = POLL_NOTICES_MAX + 1;
    let cost = Cost::of_rows(NOTICE_ROWS * notified, 48 * notified + 32);
    let looked_up = NOTICE_LOOK_UPS * notified + POLL_NOTICES_MAX + 8;
    let read = 2 * POST_BYTES_MAX + looked_up * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}

pub(super) fn schedule_cost(command: &ScheduleCommand) -> Cost {
    let pictures = pictures_cost(POST_MEDIA_MAX);
    let row = |bytes| Cost::of_rows(SCHEDULED_ROWS, bytes + 64);
    match command {
        ScheduleCommand::Create(new) => {
            let cost = row(scheduled_bytes(new)).and(pictures_cost(new.media.len()));
            // What the post replies to, and whether the author may see it.
            let looked_up = SCHEDULED_MAX + 19 + POST_MEDIA_MAX * MEDIA_ROWS;
            let read = 5 * POST_BYTES_MAX + looked_up * WORK_PER_ROW;
            Cost { work: cost.work + read, ..cost }
        }
        ScheduleCommand::Move { .. } => {
            let cost = row(0).and(row(SCHEDULED_BYTES_MAX));
            Cost { work: cost.work + SCHEDULED_BYTES_MAX + 2 * WORK_PER_ROW, ..cost }
        }
        ScheduleCommand::Cancel { .. } => {
            let cost = row(0).and(pictures).and(pictures);
            Cost { work: cost.work + SCHEDULED_BYTES_MAX + 2 * WORK_PER_ROW, ..cost }
        }
    }
}

/// Cost of publishing a scheduled post.
pub(super) fn due_post_cost() -> Cost {
    let pictures = pictures_cost(POST_MEDIA_MAX);
    let bytes = (POST_BYTES_MAX, POST_BYTES_MAX);
    let post = publication_cost(bytes, (MENTIONS_MAX, POST_TAGS_MAX), true);
    let poll = Cost::of_rows(1, POLL_BYTES_MAX + 16);
    let cost = post.and(poll).and(pictures).and(pictures).and(Cost::of_rows(SCHEDULED_ROWS, 64));
    // And the account.
    Cost { work: cost.work + SCHEDULED_BYTES_MAX + 4 * WORK_PER_ROW, ..cost }
}

fn scheduled_bytes(new: &ScheduledPost) -> usize {
    let texts = new.post.text.as_str().len() + new.post.warning.as_str().len();
    texts + POLL_BYTES_MAX + 10 * new.media.len() + 128
}
