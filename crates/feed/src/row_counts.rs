//! Numbers of rows, for costs and for the removal of deleted users' data. For records with a fixed number of index
//! rows, they are the lengths of the arrays returned by `index.rs`.

use crate::limits::{ERASE_ROWS_MAX, POST_MEDIA_MAX, POST_MENTIONS_MAX, POST_TAGS_MAX};

/// Rows of a deleted post outside of indexes: its own, its earlier versions, the notices of its last edit, its counts,
/// two of its author's pin, and the sweep of its reactions.
pub(crate) const POST_OWN_ROWS: usize = 7;
/// Rows of a deleted post without mentions, pictures and a poll: those outside of indexes, one each of its author and
/// its parent, and those in lists. A boost has two rows of the boosted post, and fewer others.
pub(crate) const POST_ROWS_LEAST: usize = POST_OWN_ROWS + 2 + LISTED_ROWS;
/// Most rows of a post in lists of posts.
pub(crate) const LISTED_ROWS: usize = 4;
/// Most rows of a deleted post, with mentions and hashtags.
pub(crate) const POST_ROWS_MAX: usize = POST_ROWS_LEAST
    + POST_MENTIONS_MAX
    // Direct posts have no hashtag rows.
    + DIRECT_ROWS * (1 + POST_MENTIONS_MAX)
    + MEDIA_ROWS * POST_MEDIA_MAX
    + POLL_ROWS;
/// Rows of a direct post for its author and for each mentioned user.
pub(crate) const DIRECT_ROWS: usize = 2;
/// Rows of a hashtag of a post.
pub(crate) const TAG_ROWS: usize = 2;
/// Rows of a picture: its own, one of its owner, its removal, two files, and the space of its owner and of all.
pub(crate) const MEDIA_ROWS: usize = 7;
/// Rows of a list member.
pub(crate) const LIST_ROWS: usize = 2;
/// Rows of a vote: one of the poll, one of the user.
pub(crate) const VOTE_ROWS: usize = 2;
/// Rows of a view: one of the story, one of the viewer.
pub(crate) const VIEW_ROWS: usize = 2;
/// Most rows of a grant: its own, two secrets, its owner, its expiry, the uses of its app, and the mark of an unused
/// app; and one lookup.
pub(crate) const GRANT_ROWS: usize = 8;
/// Rows of the poll of a deleted post: its counts, its end, and the sweep of its votes.
pub(crate) const POLL_ROWS: usize = 3;
/// Rows of a scheduled post: its own, and its due time.
pub(crate) const SCHEDULED_ROWS: usize = 2;

const _: () = assert!(POST_ROWS_MAX <= ERASE_ROWS_MAX);
const _: () = assert!(TAG_ROWS * POST_TAGS_MAX <= DIRECT_ROWS * POST_MENTIONS_MAX);
