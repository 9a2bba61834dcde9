//! Facts about earlier versions of posts.

use rows::Rows;

use super::whole::POST_VERSIONS;
use super::{Facts, Txn};
use crate::ids::PostId;
use crate::records::Post;
use crate::version::PostVersion;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// All versions of a post including the current one, oldest first. Does not check the visibility of the post.
    #[must_use]
    pub fn post_history(&self, id: PostId, post: &Post) -> Vec<PostVersion> {
        let mut versions = match post.edited {
            Some(_) => self.post_versions(id),
            None => Vec::new(),
        };
        versions.push(PostVersion::of(id, post));
        versions
    }
}

impl Txn<'_> {
    /// Stores the current version of a post before an edit.
    pub(super) fn keep_version(&mut self, id: PostId, post: &Post) {
        let mut versions = self.facts().post_versions(id);
        PostVersion::keep(&mut versions, PostVersion::of(id, post));
        self.put_whole(&POST_VERSIONS, id, &versions);
    }
}
