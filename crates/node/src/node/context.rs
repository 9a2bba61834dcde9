//! Reading a thread: what a post replies to and what replies to it.

use feed::thread::{self, Descendants, ThreadPath};
use feed::{PostId, UserId};

use super::Node;

impl Node {
    /// Appends `"ancestors":[...],"descendants":[...]` of a post: posts as JSON objects, oldest first and
    /// in thread order; see [`feed::thread`] for the bounds. Of the descendants `limit` posts after `from`;
    /// returns where the next page begins, if there is more. `viewer` sees only what is visible and wanted, the
    /// application (`None`) everything. `None`, and nothing appended, if there is no such post. May block.
    pub fn context(
        &self,
        viewer: Option<UserId>,
        post: PostId,
        from: &[PostId],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Option<Option<ThreadPath>> {
        let viewer = self.viewer(viewer);
        self.facts().post(post).filter(|post| viewer.visible(post))?;
        out.extend_from_slice(b"\"ancestors\":[");
        self.append_posts(&thread::ancestors(&viewer, post), out);
        out.extend_from_slice(b"],\"descendants\":[");
        let Descendants { posts, next } = thread::descendants(&viewer, post, from, limit);
        self.append_posts(&posts, out);
        out.push(b']');
        Some(next)
    }
}
