//! Costs of posts: the cost that each part adds to publishing and editing a post, and the cost of deleting one.

use rows::{Cost, WORK_PER_ROW};

use crate::index::{DIRECT_ROWS, LISTED_ROWS, POLL_ROWS};
use crate::limits::{
    POST_BYTES_MAX, POST_MEDIA_MAX, POST_MENTIONS_MAX, POST_TAGS_MAX, RELISTED_POSTS_MAX,
    VERSIONS_BYTES_MAX,
};
use crate::media::cost::pictures_cost;
use crate::notifications::cost::{NOTICE_LOOK_UPS, NOTICE_ROWS};
use crate::polls::cost::{POLL_BYTES_MAX, poll_change_cost};
use crate::posts::content::{Content, Patch};
use crate::posts::draft::Draft;
use crate::quotes;
use crate::reactions::cost::later_boosts_cost;
use crate::tags::rules::tags_cost;
use crate::text::PostText;
use crate::token::{TAG_SIGNS, TEXT_WORK};

/// Key bytes of the rows of a direct post for one user.
pub(crate) const DIRECT_BYTES: usize = 40;
/// Work of looking up a handle and writing a mention, which is more than for other rows.
pub(crate) const MENTION_WORK: usize = 4 * WORK_PER_ROW;

/// Cost of removing some posts of an account from lists, including reading the posts.
pub(crate) fn relisting_cost() -> Cost {
    let rows = RELISTED_POSTS_MAX * LISTED_ROWS + 1;
    let cost = Cost::of_rows(rows, 16 * rows);
    Cost { work: cost.work + RELISTED_POSTS_MAX * (POST_BYTES_MAX + WORK_PER_ROW), ..cost }
}

/// Cost of deleting a post.
pub(crate) fn deletion_cost() -> Cost {
    let users = POST_MENTIONS_MAX + 1;
    // A post that is not direct has no direct rows, but may have a notification for each mention added by an edit.
    let rows = 15 + POLL_ROWS + LISTED_ROWS + users + DIRECT_ROWS * users;
    let cost = Cost::of_rows(rows, 256 + 10 * POST_MEDIA_MAX + DIRECT_BYTES * users);
    // The quoted post is read.
    let cost = Cost { work: cost.work + POST_BYTES_MAX + 2 * WORK_PER_ROW, ..cost };
    let cost = cost.and(later_boosts_cost());
    cost.and(tags_cost(POST_TAGS_MAX, POST_BYTES_MAX)).and(pictures_cost(POST_MEDIA_MAX))
}

/// Maximum number of users that a text can mention.
const MENTIONS_MAX: usize = POST_MENTIONS_MAX - 1;

/// Sizes of the parts of a draft that matter for its cost.
pub(crate) struct Parts {
    text_bytes: usize,
    warning_bytes: usize,
    mentions: usize,
    tags: usize,
    is_reply: bool,
    pub(crate) media: usize,
    has_poll: bool,
    has_quote: bool,
}

impl Parts {
    /// Largest draft.
    pub(crate) const MAX: Self = Self {
        text_bytes: POST_BYTES_MAX,
        warning_bytes: POST_BYTES_MAX,
        mentions: MENTIONS_MAX,
        tags: POST_TAGS_MAX,
        is_reply: true,
        media: POST_MEDIA_MAX,
        has_poll: true,
        has_quote: true,
    };

    pub(crate) fn of(draft: &Draft) -> Self {
        let Draft {
            content,
            parent,
            poll,
            quote,
            // These take a few bytes in every row.
            author: _,
            opens_reply: _,
            visibility: _,
            quote_policy: _,
        } = draft;
        let Content { text, warning, media, sensitive: _, language: _ } = content;
        Self {
            text_bytes: text.as_str().len(),
            warning_bytes: warning.as_str().len(),
            mentions: mentions(text),
            tags: text.as_str().matches(TAG_SIGNS).count().min(POST_TAGS_MAX),
            is_reply: parent.is_some(),
            // A draft with more pictures is refused before any lookup.
            media: media.len().min(POST_MEDIA_MAX),
            has_poll: poll.is_some(),
            has_quote: quote.is_some(),
        }
    }

    /// Bytes of the draft, or of the row of the post, without its mentions.
    pub(crate) fn bytes(&self) -> usize {
        let poll = if self.has_poll { POLL_BYTES_MAX } else { 0 };
        self.text_bytes + self.warning_bytes + poll + 10 * self.media + 128
    }

    pub(crate) fn quote_cost(&self) -> Cost {
        if self.has_quote { quotes::cost::publication_cost() } else { Cost::default() }
    }

    pub(crate) fn publication_cost(&self) -> Cost {
        let Self { mentions, is_reply, .. } = *self;
        // The parent's author is mentioned, too, and the visibility of the parent is checked. The draft may name a
        // boost of the parent.
        let (rows, read) =
            if is_reply { (6, 5 * POST_BYTES_MAX + 12 * WORK_PER_ROW) } else { (4, 0) };
        // A direct post also has rows for its author.
        let users = mentions + 1 + usize::from(is_reply);
        // One more row for the end of the poll.
        let rows = rows + LISTED_ROWS + mentions + DIRECT_ROWS * users + usize::from(self.has_poll);
        let cost = Cost::of_rows(rows, self.bytes() + 8 * mentions + DIRECT_BYTES * users + 16);
        let work = mentions * MENTION_WORK + read + self.text_bytes * TEXT_WORK;
        let cost = Cost { work: cost.work + work, ..cost };
        let cost = cost.and(tags_cost(self.tags, self.text_bytes)).and(self.quote_cost());
        cost.and(pictures_cost(self.media))
    }
}

pub(crate) fn publication_cost(draft: &Draft) -> Cost {
    Parts::of(draft).publication_cost()
}

fn mentions(text: &PostText) -> usize {
    text.as_str().matches('@').count().min(MENTIONS_MAX)
}

pub(crate) fn edit_cost(patch: &Patch) -> Cost {
    let Patch { text, media, described, poll, revoke_quote, .. } = patch;
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
        // Pictures are counted twice: the old and the new ones.
        cost = cost.and(pictures_cost(2 * POST_MEDIA_MAX));
    }
    if poll.is_some() {
        cost = cost.and(poll_change_cost());
    }
    if *revoke_quote {
        cost = cost.and(quotes::cost::revocation_cost());
    }
    // Rows of hashtags change for the old and for the new text.
    let tags = tags_cost(POST_TAGS_MAX, POST_BYTES_MAX);
    cost.and(tags).and(tags)
}
