//! Earlier versions of edited posts.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::PostId;
use crate::limits;
use crate::polls::{PollOption, PollOptions};
use crate::posts::Post;
use crate::posts::content::Content;

/// Content of a post between two edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostVersion {
    /// Time of writing: of the post, or of the edit that made this version.
    pub since: Stamp,
    /// Content. Pictures that a later edit removed may be deleted.
    pub content: Content,
    /// Options of the poll.
    pub poll: Option<PollOptions>,
}

impl PostVersion {
    /// Creates a version from the current content of a post.
    #[must_use]
    pub fn of(id: PostId, post: &Post) -> Self {
        Self {
            since: post.last_edit(id),
            content: post.content.clone(),
            poll: post.poll.as_ref().map(|poll| poll.options.clone()),
        }
    }

    /// Upper bound of the bytes of the version in its row.
    fn bytes(&self) -> usize {
        /// Bytes of time, language, ids of pictures, and lengths.
        const OTHER: usize = 16 + limits::LANGUAGE_BYTES_MAX + 10 * limits::POST_MEDIA_MAX;
        let Content { text, warning, sensitive: _, language: _, media: _ } = &self.content;
        let options = self.poll.iter().flat_map(PollOptions::as_slice);
        let options: usize = options.map(|option| PollOption::as_str(option).len() + 2).sum();
        text.as_str().len() + warning.as_str().len() + options + OTHER
    }

    /// Adds the newest version. Removes versions at the limits of number and bytes, the oldest first except for the
    /// first one.
    pub fn keep(versions: &mut Vec<Self>, newest: Self) {
        versions.push(newest);
        let mut bytes: usize = versions.iter().map(Self::bytes).sum();
        while versions.len() > 2
            && (versions.len() > limits::VERSIONS_MAX || bytes > limits::VERSIONS_BYTES_MAX)
        {
            bytes -= versions.remove(1).bytes();
        }
    }
}
