//! Timeline of a user in an actor: posts in the order of their numbers.

use std::sync::Arc;

/// Post shared by timelines.
pub(super) struct Post {
    pub(super) number: u64,
    #[expect(dead_code, reason = "what a reader would be shown")]
    pub(super) text: String,
}

impl Post {
    pub(super) fn new(number: u64) -> Arc<Self> {
        Arc::new(Self { number, text: text(number) })
    }
}

/// The text of a post.
pub(super) fn text(number: u64) -> String {
    format!("post {number}: something that happened just now, in as many words as usual")
}

/// Posts, oldest first.
#[derive(Default)]
pub(super) struct Timeline(Vec<Arc<Post>>);

impl Timeline {
    /// Inserts a post. Posts arrive nearly in order, so the place is near the end.
    pub(super) fn add(&mut self, post: Arc<Post>) {
        let newer = self.0.iter().rev().take_while(|other| other.number > post.number).count();
        self.0.insert(self.0.len() - newer, post);
    }

    /// The newest posts, newest first.
    pub(super) fn newest(&self, count: usize) -> Vec<Arc<Post>> {
        self.0.iter().rev().take(count).cloned().collect()
    }
}
