//! Facts about earlier versions of posts.

use rows::Rows;

use super::whole::POST_VERSIONS;
use super::{Facts, Txn};
use crate::ids::PostId;
use crate::records::Post;
use crate::version::PostVersion;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// What a post said, and what it says now, the oldest version first. Who may see the post is not checked.
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
    /// Keeps what a post says, before it is edited.
    pub(super) fn keep_version(&mut self, id: PostId, post: &Post) {
        let mut versions = self.facts().post_versions(id);
        PostVersion::keep(&mut versions, PostVersion::of(id, post));
        self.put_whole(&POST_VERSIONS, id, &versions);
    }
}
