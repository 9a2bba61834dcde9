//! Expected conversations.

use std::collections::BTreeMap;

use feed::conversations::{Conversation, ConversationUpdate};
use feed::limits::CONVERSATION_MARKS_MAX;
use feed::{Done, Draft, Outcome, PostId, UserRef, Visibility};

use super::feed::Feed;
use super::posts::ModelPost;

/// Position up to which a user has read a conversation, and whether the user removed the conversation then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelMark {
    read: u64,
    is_removed: bool,
    /// Stamp of the last change.
    stamp: u64,
}

/// Removes marks above the limit, beginning with those that were read longest ago.
fn keep_newest(marks: &mut BTreeMap<u64, ModelMark>) {
    while marks.len() > CONVERSATION_MARKS_MAX {
        let oldest = marks.iter().min_by_key(|(_, mark)| (mark.read, mark.stamp));
        let first = oldest.map(|(first, _)| *first);
        first.and_then(|first| marks.remove(&first));
    }
}

impl Feed {
    /// Returns the first post of the conversation to which a direct reply belongs.
    pub(super) fn conversation_of(&self, new: &Draft) -> Option<u64> {
        let parent = self.parent_of(new).filter(|_| new.visibility == Visibility::Direct)?;
        let post = self.posts.get(&parent).filter(|post| post.visibility == Visibility::Direct)?;
        Some(post.conversation.unwrap_or(parent))
    }

    pub(super) fn update_conversation(
        &mut self,
        stamp: u64,
        update: &ConversationUpdate,
    ) -> Outcome {
        let user = self.resolve(&update.user)?;
        let (read, is_removed) = (update.mark.read.0, update.mark.is_removed);
        let marks = self.marks.entry(user).or_default();
        let new = ModelMark { read, is_removed, stamp };
        let mark = marks.entry(update.mark.first.0).or_insert(new);
        if read > mark.read || read == mark.read && is_removed && !mark.is_removed {
            *mark = new;
        }
        keep_newest(marks);
        Ok(Done::ConversationUpdated)
    }

    pub(super) fn unread_conversation(
        &mut self,
        stamp: u64,
        user: &UserRef,
        (first, last): (u64, u64),
    ) -> Outcome {
        let user = self.resolve(user)?;
        let marks = self.marks.entry(user).or_default();
        let new = ModelMark { read: last.saturating_sub(1), is_removed: false, stamp };
        let mark = marks.entry(first).or_insert(new);
        let is_newer = mark.read > last || mark.read == last && mark.is_removed;
        let is_same = mark.read == new.read && !mark.is_removed;
        if !is_newer && !is_same {
            *mark = new;
        }
        keep_newest(marks);
        Ok(Done::ConversationUpdated)
    }

    /// Conversations of a user. The conversation with the newest post is first.
    pub(crate) fn conversations(&self, user: u32) -> Vec<Conversation> {
        let marks = self.marks.get(&user);
        let mut newest = BTreeMap::new();
        let is_shown = |post: &ModelPost| {
            let is_heard = || post.mentions.contains(&user) && self.hears(user, post.author);
            post.visibility == Visibility::Direct && (post.author == user || is_heard())
        };
        for (id, post) in self.posts.iter().rev().filter(|(_, post)| is_shown(post)) {
            newest.entry(post.conversation.unwrap_or(*id)).or_insert(*id);
        }
        let shown = newest.into_iter().filter_map(|(first, last)| {
            let mark = marks.and_then(|marks| marks.get(&first));
            let read = mark.map_or(0, |mark| mark.read);
            let is_others = self.posts[&last].author != user;
            let is_unread = read < last && (is_others || read + 1 == last);
            let shown = Conversation { first: PostId(first), last: PostId(last), is_unread };
            mark.is_none_or(|mark| !mark.is_removed || read < last).then_some(shown)
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by_key(|shown| std::cmp::Reverse(shown.last));
        shown
    }
}
