//! Expected versions of edited posts.

use super::feed::Feed;
use super::posts::ModelPost;

/// Version of a post.
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
    /// Records the version of a post before an edit. The model records all versions; the check knows how many the node
    /// keeps.
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
