//! Reading a thread: what a post replies to and what replies to it.

use feed::PostId;
use feed::thread::{self, Descendants, ThreadPath};

use crate::node::Node;

impl Node {
    /// Appends `"ancestors":[...],"descendants":[...]` of a post: posts as JSON objects, oldest first and
    /// in thread order; see [`feed::thread`] for the bounds. Of the descendants `limit` posts after `from`;
    /// returns where the next page begins, if there is more. `None`, and nothing appended, if there is no
    /// such post. May block.
    pub fn context(
        &self,
        post: PostId,
        from: &[PostId],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Option<Option<ThreadPath>> {
        let facts = self.facts();
        if !facts.has_post(post) {
            return None;
        }
        out.extend_from_slice(b"\"ancestors\":[");
        self.append_posts(&thread::ancestors(facts, post), out);
        out.extend_from_slice(b"],\"descendants\":[");
        let Descendants { posts, next } = thread::descendants(facts, post, from, limit);
        self.append_posts(&posts, out);
        out.push(b']');
        Some(next)
    }
}
