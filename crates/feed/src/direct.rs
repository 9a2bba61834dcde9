//! The direct posts that a user sees, and the conversations of which they are.
//!
//! **Invariant:** a list reads a bounded number of rows: those of the newest direct posts.

use std::collections::{HashMap, HashSet};

use rows::Rows;

use crate::conversation::Conversation;
use crate::ids::PostId;
use crate::records::Post;
use crate::visible::Viewer;

impl<R: Rows + ?Sized> Viewer<'_, R> {
    /// The newest direct posts by the viewer or that mention them, newest first, without those that a block or a mute
    /// hides.
    #[must_use]
    pub fn direct_posts(&self) -> Vec<(PostId, Post)> {
        let Some(user) = self.user() else { return Vec::new() };
        let posts = self.facts().newest_direct(user).into_iter();
        let posts = posts.filter_map(|id| Some((id, self.facts().post(id)?)));
        posts.filter(|(_, post)| self.visible(post) && self.notified_by(post.author)).collect()
    }

    /// The conversations of the viewer, that of the newest post first.
    #[must_use]
    pub fn conversations(&self) -> Vec<Conversation> {
        let Some(user) = self.user() else { return Vec::new() };
        let marks = self.facts().conversation_marks(user);
        let marks: HashMap<_, _> = marks.into_iter().map(|mark| (mark.first, mark)).collect();
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for (last, post) in self.direct_posts() {
            let first = post.conversation.unwrap_or(last);
            let mark = marks.get(&first).filter(|mark| mark.read >= last);
            if known.insert(first) && mark.is_none_or(|mark| !mark.is_removed) {
                let is_unread = post.author != user && mark.is_none();
                found.push(Conversation { first, last, is_unread });
            }
        }
        found
    }
}
