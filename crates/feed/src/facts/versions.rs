//! Facts about earlier versions of posts.
//!
//! **Invariant:** all of a post are one row, whose length is bounded, so an edit reads one row and writes one, and a deletion
//! removes one. Posts that were never edited have none.

use rows::{NameTable, Rows, decode};

use super::{Facts, Txn};
use crate::ids::PostId;
use crate::records::Post;
use crate::version::PostVersion;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// What a post said before it was edited, the oldest version first: the first one, and the newest of the others. Who
    /// may see the post is not checked.
    #[must_use]
    pub fn post_versions(&self, post: PostId) -> Vec<PostVersion> {
        let row = self.rows.name(NameTable::PostVersions, &post.0.to_be_bytes());
        row.map_or_else(Vec::new, |row| decode(&row))
    }

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
        write::post_versions(self.rows, id, &versions);
    }
}
