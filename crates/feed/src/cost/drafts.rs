//! Costs of drafts and patches: the cost that each part adds to publishing, scheduling and editing a post.

use rows::{Cost, WORK_PER_ROW};

use super::polls::{NOTICE_LOOK_UPS, NOTICE_ROWS, POLL_BYTES_MAX, poll_change_cost};
use super::{DIRECT_BYTES, MENTION_WORK, TAG_ROW_BYTES, TEXT_WORK, pictures_cost};
use crate::limits::{
    POST_BYTES_MAX, POST_MEDIA_MAX, POST_MENTIONS_MAX, POST_TAGS_MAX, SCHEDULED_MAX, TAG_BYTES_MAX,
    VERSIONS_BYTES_MAX,
};
use crate::posts::draft::{Draft, Patch};
use crate::row_counts::{DIRECT_ROWS, LISTED_ROWS, MEDIA_ROWS, SCHEDULED_ROWS, TAG_ROWS};
use crate::schedule::ScheduleCommand;
use crate::text::PostText;
use crate::token::TAG_SIGNS;

/// Most users that a text can mention.
const MENTIONS_MAX: usize = POST_MENTIONS_MAX - 1;

/// Sizes of the parts of a draft that matter for its cost.
struct Parts {
    text_bytes: usize,
    warning_bytes: usize,
    mentions: usize,
    tags: usize,
    is_reply: bool,
    media: usize,
    has_poll: bool,
}

impl Parts {
    /// Largest draft.
    const MAX: Self = Self {
        text_bytes: POST_BYTES_MAX,
        warning_bytes: POST_BYTES_MAX,
        mentions: MENTIONS_MAX,
        tags: POST_TAGS_MAX,
        is_reply: true,
        media: POST_MEDIA_MAX,
        has_poll: true,
    };

    fn of(draft: &Draft) -> Self {
        let Draft {
            text,
            parent,
            warning,
            media,
            poll,
            // A few bytes in every row.
            author: _,
            opens_reply: _,
            visibility: _,
            sensitive: _,
            language: _,
        } = draft;
        Self {
            text_bytes: text.as_str().len(),
            warning_bytes: warning.as_str().len(),
            mentions: mentions(text),
            tags: text.as_str().matches(TAG_SIGNS).count().min(POST_TAGS_MAX),
            is_reply: parent.is_some(),
            // More are refused before any lookup.
            media: media.len().min(POST_MEDIA_MAX),
            has_poll: poll.is_some(),
        }
    }

    /// Bytes of the draft, or of the row of the post, without its mentions.
    fn bytes(&self) -> usize {
        let poll = if self.has_poll { POLL_BYTES_MAX } else { 0 };
        self.text_bytes + self.warning_bytes + poll + 10 * self.media + 96
    }

    fn publication_cost(&self) -> Cost {
        let Self { mentions, is_reply, .. } = *self;
        // The parent's author is mentioned, too, and the visibility of the parent is checked. The draft may name a
        // boost of the parent.
        let (rows, read) =
            if is_reply { (6, 5 * POST_BYTES_MAX + 12 * WORK_PER_ROW) } else { (4, 0) };
        // The author has rows of a direct post, too.
        let users = mentions + 1 + usize::from(is_reply);
        // One more row for the end of the poll.
        let rows = rows + LISTED_ROWS + mentions + DIRECT_ROWS * users + usize::from(self.has_poll);
        let cost = Cost::of_rows(rows, self.bytes() + 8 * mentions + DIRECT_BYTES * users + 16);
        let work = mentions * MENTION_WORK + read + self.text_bytes * TEXT_WORK;
        let cost = Cost { work: cost.work + work, ..cost };
        cost.and(tags_cost(self.tags, self.text_bytes)).and(pictures_cost(self.media))
    }
}

pub(crate) fn publication_cost(draft: &Draft) -> Cost {
    Parts::of(draft).publication_cost()
}

fn mentions(text: &PostText) -> usize {
    text.as_str().matches('@').count().min(MENTIONS_MAX)
}

/// Cost of `tags` hashtags in texts of `text_bytes` bytes: each is in two keys, and may be longer in lower case.
pub(crate) fn tags_cost(tags: usize, text_bytes: usize) -> Cost {
    let tags = if rows::has_bug("cost-one-hashtag") { tags.min(1) } else { tags };
    let bytes = text_bytes.min(tags * TAG_BYTES_MAX);
    let cost = Cost::of_rows(TAG_ROWS * tags, 2 * TAG_ROWS * bytes + TAG_ROW_BYTES * tags);
    // The text is searched for them.
    Cost { work: cost.work + text_bytes * TEXT_WORK, ..cost }
}

pub(crate) fn edit_cost(patch: &Patch) -> Cost {
    let Patch { text, media, described, poll, warning: _, sensitive: _, language: _ } = patch;
    let mentions = text.as_ref().map_or(0, mentions);
    // Old mentions are removed with their notifications, and new ones are added with theirs.
    let rows = 5 + 2 * LISTED_ROWS + 3 * (MENTIONS_MAX + 1);
    let rows = rows + (2 + NOTICE_ROWS) * (mentions + 1);
    // The row of the post with all its parts, and the row of its earlier versions.
    let bytes = 2 * POST_BYTES_MAX + POLL_BYTES_MAX + VERSIONS_BYTES_MAX;
    let cost = Cost::of_rows(rows, bytes + 16 * rows + 96);
    // Lookups of follows by users no longer mentioned, and of the visibility for the others.
    let looked_up = 2 * (MENTIONS_MAX + 1) + NOTICE_LOOK_UPS * (mentions + 1);
    let read = 4 * POST_BYTES_MAX + 2 * VERSIONS_BYTES_MAX + looked_up * WORK_PER_ROW;
    let work = mentions * MENTION_WORK + read + POST_BYTES_MAX * TEXT_WORK;
    let mut cost = Cost { work: cost.work + work, ..cost };
    if media.is_some() || !described.is_empty() {
        // Old and new pictures.
        cost = cost.and(pictures_cost(2 * POST_MEDIA_MAX));
    }
    if poll.is_some() {
        cost = cost.and(poll_change_cost());
    }
    // Hashtags of the old and the new text.
    let tags = tags_cost(POST_TAGS_MAX, POST_BYTES_MAX);
    cost.and(tags).and(tags)
}

pub(crate) fn schedule_cost(command: &ScheduleCommand) -> Cost {
    let most_bytes = Parts::MAX.bytes();
    let pictures = pictures_cost(POST_MEDIA_MAX);
    let row = |bytes| Cost::of_rows(SCHEDULED_ROWS, bytes + 64);
    match command {
        ScheduleCommand::Create(new) => {
            let parts = Parts::of(&new.draft);
            let cost = row(parts.bytes()).and(pictures_cost(parts.media));
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
