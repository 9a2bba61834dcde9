//! The direct posts that a user sees, and the conversations of which they are.
//!
//! Rows say which posts are direct, and who wrote them. So no post is read to find them, and what a block or a mute hides
//! takes no place in a list.
//!
//! **Invariant:** a list reads a bounded number of rows, and keeps no texts.

use std::collections::{HashMap, HashSet};

use rows::{Rows, SetTable};

use crate::conversation::Conversation;
use crate::ids::{PostId, UserId};
use crate::limits::DIRECT_POSTS_MAX;
use crate::post::{Listed, Visibility};
use crate::visible::Viewer;

impl<R: Rows + ?Sized> Viewer<'_, R> {
    /// The newest direct posts by the viewer or that mention them, newest first, without those that a block or a mute
    /// hides.
    #[must_use]
    pub fn direct_posts(&self) -> Vec<PostId> {
        let Some(user) = self.user() else { return Vec::new() };
        let facts = self.facts();
        let mut shown = HashMap::new();
        let mut is_shown = |author| {
            let shows = || facts.exists(author) && self.notified_by(author);
            author == user || *shown.entry(author).or_insert_with(shows)
        };
        let mut found = facts.newest_in(SetTable::Mentions, user, |number| {
            let author = number.checked_sub(1).and_then(|author| u32::try_from(author).ok());
            author.is_some_and(|author| is_shown(UserId(author)))
        });
        found.extend(facts.newest_in(SetTable::AuthorPosts, user, |number| {
            Listed::of_number(number).visibility() == Visibility::Direct
        }));
        found.sort_unstable_by(|one, other| other.cmp(one));
        // Some mention their author.
        found.dedup();
        found.truncate(DIRECT_POSTS_MAX);
        found
    }

    /// The conversations of the viewer, that of the newest post first.
    #[must_use]
    pub fn conversations(&self) -> Vec<Conversation> {
        let Some(user) = self.user() else { return Vec::new() };
        let marks = self.facts().conversation_marks(user);
        let marks: HashMap<_, _> = marks.into_iter().map(|mark| (mark.first, mark)).collect();
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for last in self.direct_posts() {
            let Some(post) = self.facts().post(last) else { continue };
            let first = post.conversation.unwrap_or(last);
            let mark = marks.get(&first);
            if known.insert(first) && mark.is_none_or(|mark| !mark.removes(last)) {
                let is_read = mark.is_some_and(|mark| mark.reads(last));
                let is_marked = mark.is_some_and(|mark| mark.unreads(last));
                let is_unread = !is_read && (post.author != user || is_marked);
                found.push(Conversation { first, last, is_unread });
            }
        }
        found
    }
}
