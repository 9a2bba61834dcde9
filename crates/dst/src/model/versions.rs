//! What posts said before they were edited.

use super::feed::Feed;
use super::posts::ModelPost;

/// What a post said from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelVersion {
    pub(crate) since: u64,
    pub(crate) text: String,
    pub(crate) warning: String,
    pub(crate) sensitive: bool,
    pub(crate) language: Option<String>,
    pub(crate) media: Vec<u64>,
    pub(crate) poll: Option<Vec<String>>,
}

impl Feed {
    /// Records what a post says before it is edited. All of it: how much is kept is checked.
    pub(super) fn add_version(&mut self, post: u64, old: ModelPost) {
        self.versions.entry(post).or_default().push(ModelVersion {
            since: old.edited.unwrap_or(post),
            text: old.text,
            warning: old.warning,
            sensitive: old.sensitive,
            language: old.language,
            media: old.media,
            poll: old.poll.map(|poll| poll.options),
        });
    }
}
