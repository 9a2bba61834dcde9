//! Posts as JSON, rendered once and kept as bytes: a page is a concatenation.
//!
//! An entry is good as long as its author's revision is the one it was rendered under. The writer
//! raises the revision, after the facts have changed, when a name changes or a post is deleted; a
//! reader notes the revision before it reads the facts. So what is found current never shows what
//! an acknowledged command had changed before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use feed::{Facts, PostId, Rows, UserId};
use quick_cache::{OptionsBuilder, Weighter, sync::Cache};

use crate::render;

/// Authors share revisions where their numbers are equal modulo this: a rare needless rendering in
/// exchange for a table of fixed size.
const REVISIONS: usize = 65_536;
/// What an entry costs besides its text.
const ENTRY_BYTES: usize = 96;
/// A typical rendered post, for sizing the table.
const TYPICAL_BYTES: usize = 256 + ENTRY_BYTES;

/// Rendered posts within a budget.
pub(crate) struct RenderedPosts {
    posts: Cache<PostId, Arc<Rendered>, Bytes>,
    revisions: Vec<AtomicU32>,
}

struct Rendered {
    author: UserId,
    revision: u32,
    json: Box<[u8]>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<PostId, Arc<Rendered>> for Bytes {
    fn weight(&self, _: &PostId, rendered: &Arc<Rendered>) -> u64 {
        (rendered.json.len() + ENTRY_BYTES) as u64
    }
}

impl RenderedPosts {
    /// Keeps at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity((bytes / TYPICAL_BYTES).max(16))
            .weight_capacity(bytes as u64)
            .build();
        let Ok(options) = options else { unreachable!("capacities are set") };
        let posts = Cache::with_options(
            options,
            Bytes,
            quick_cache::DefaultHashBuilder::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        );
        Self { posts, revisions: (0..REVISIONS).map(|_| AtomicU32::new(0)).collect() }
    }

    fn revision(&self, author: UserId) -> &AtomicU32 {
        let Some(revision) = self.revisions.get(author.0 as usize % REVISIONS) else {
            unreachable!("a remainder is within the table");
        };
        revision
    }

    /// Whatever was rendered of this author is not current any more.
    pub(crate) fn outdate(&self, author: UserId) {
        self.revision(author).fetch_add(1, Ordering::Release);
    }

    /// Appends a post if it is at hand; false if not.
    pub(crate) fn try_append(&self, post: PostId, out: &mut Vec<u8>) -> bool {
        let Some(rendered) = self.posts.get(&post) else { return false };
        if rendered.revision != self.revision(rendered.author).load(Ordering::Acquire) {
            return false;
        }
        out.extend_from_slice(&rendered.json);
        true
    }

    /// Appends a post, rendered from the facts if need be; false if there is none.
    pub(crate) fn append<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        id: PostId,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.try_append(id, out) {
            return true;
        }
        // The author stands in the post, so it is read twice: once to know whose revision counts,
        // once under that revision.
        let Some(author) = facts.post(id).map(|post| post.author) else { return false };
        let revision = self.revision(author).load(Ordering::Acquire);
        let Some(post) = facts.post(id) else { return false };
        let start = out.len();
        render::post(facts, id, &post, out);
        let json = out.get(start..).unwrap_or_default().into();
        self.posts.insert(id, Arc::new(Rendered { author, revision, json }));
        true
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.posts.weight()
    }
}
