//! Numbers of rows, for costs and for the removal of what a deleted user has. Those of records with a fixed number of rows in
//! indexes are the lengths of what `index.rs` returns.

use crate::limits::{ERASE_ROWS_MAX, POST_MEDIA_MAX, POST_MENTIONS_MAX, POST_TAGS_MAX};

/// Rows of a post that is deleted beside those in indexes: its own, its earlier versions, who is notified of its last edit,
/// its counts, two of its author's pin, and that its reactions are to be swept.
pub(crate) const POST_OWN_ROWS: usize = 7;
/// Those, that of its author, that of the post replied to, and those in lists. A boost has two of the boosted post, and fewer
/// others.
pub(crate) const POST_ROWS_LEAST: usize = POST_OWN_ROWS + 2 + LISTED_ROWS;
/// Most rows of a post in lists of posts.
pub(crate) const LISTED_ROWS: usize = 4;
/// Most rows of a post that is deleted, with mentions and hashtags.
pub(crate) const POST_ROWS_MAX: usize = POST_ROWS_LEAST
    + POST_MENTIONS_MAX
    // Direct posts have no rows of hashtags.
    + DIRECT_ROWS * (1 + POST_MENTIONS_MAX)
    + MEDIA_ROWS * POST_MEDIA_MAX
    + POLL_ROWS;
/// Rows of a direct post for its author and for each user whom it mentions.
pub(crate) const DIRECT_ROWS: usize = 2;
/// Rows of a hashtag of a post.
pub(crate) const TAG_ROWS: usize = 2;
/// Rows of a picture: its own, that of its owner, whether it is attached, two files, and what its owner and all have.
pub(crate) const MEDIA_ROWS: usize = 7;
/// Rows of a member of a list.
pub(crate) const LIST_ROWS: usize = 2;
/// Rows of a vote: of its poll, and of its user.
pub(crate) const VOTE_ROWS: usize = 2;
/// Rows of a view: of its story, and of its viewer.
pub(crate) const VIEW_ROWS: usize = 2;
/// Most rows of a grant: its own, those of two secrets, that of its owner, of its expiry, the uses of its app, and
/// whether the app is unused; and one that is only looked up.
pub(crate) const GRANT_ROWS: usize = 8;
/// Rows of the poll of a post that is deleted: its counts, its end, and that its votes are to be swept.
pub(crate) const POLL_ROWS: usize = 3;
/// Rows of a scheduled post: its own, and when it is due.
pub(crate) const SCHEDULED_ROWS: usize = 2;

const _: () = assert!(POST_ROWS_MAX <= ERASE_ROWS_MAX);
const _: () = assert!(TAG_ROWS * POST_TAGS_MAX <= DIRECT_ROWS * POST_MENTIONS_MAX);
