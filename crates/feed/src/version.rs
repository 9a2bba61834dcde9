//! What a post said before it was edited.

use serde::{Deserialize, Serialize};

use rows::Stamp;

use crate::ids::PostId;
use crate::limits;
use crate::media::MediaId;
use crate::poll::{PollOption, PollOptions};
use crate::records::Post;
use crate::text::{Language, PostText, Warning};

/// What a post said from one time on, until it was edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostVersion {
    /// When it was written: the time of the post, or of the edit that made this version.
    pub since: Stamp,
    /// See [`Post::text`].
    pub text: PostText,
    /// See [`Post::warning`].
    pub warning: Warning,
    /// See [`Post::sensitive`].
    pub sensitive: bool,
    /// See [`Post::language`].
    pub language: Option<Language>,
    /// Its pictures. Those that a later edit took away may be deleted.
    pub media: Vec<MediaId>,
    /// The options of its poll.
    pub poll: Option<PollOptions>,
}

impl PostVersion {
    /// What a post says now.
    #[must_use]
    pub fn of(id: PostId, post: &Post) -> Self {
        Self {
            since: post.edited.unwrap_or(Stamp(id.0)),
            text: post.text.clone(),
            warning: post.warning.clone(),
            sensitive: post.sensitive,
            language: post.language.clone(),
            media: post.media.clone(),
            poll: post.poll.as_ref().map(|poll| poll.options.clone()),
        }
    }

    /// Bounds the bytes of its part of a row.
    fn bytes(&self) -> usize {
        /// Of the time, the language, the ids of the pictures, and the lengths.
        const OTHER: usize = 16 + limits::LANGUAGE_BYTES_MAX + 10 * limits::POST_MEDIA_MAX;
        let options = self.poll.iter().flat_map(PollOptions::as_slice);
        let options: usize = options.map(|option| PollOption::as_str(option).len() + 2).sum();
        self.text.as_str().len() + self.warning.as_str().len() + options + OTHER
    }

    /// Adds the newest version. The first one always stays; of those after it the oldest go if they are too many or too
    /// long together.
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
