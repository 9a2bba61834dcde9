//! Expected versions of edited posts.

use feed::Content;

use super::feed::Feed;
use super::posts::ModelPost;

/// Version of a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelVersion {
    pub(crate) since: u64,
    pub(crate) content: Content,
    pub(crate) poll: Option<Vec<String>>,
}

impl Feed {
    /// Records the version of a post before an edit. The model records all versions; the check knows how many the node
    /// keeps.
    pub(super) fn add_version(&mut self, post: u64, old: ModelPost) {
        self.versions.entry(post).or_default().push(ModelVersion {
            since: old.edited.unwrap_or(post),
            content: old.content,
            poll: old.poll.map(|poll| poll.options),
        });
    }
}
