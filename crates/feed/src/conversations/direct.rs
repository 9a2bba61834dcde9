//! Direct posts that a user sees, and their conversations.
//!
//! Both lists are read from the rows of direct posts by or to the user. Conversations are ordered by their newest post
//! that no block or mute hides. Older posts of a conversation are skipped, so that the conversation is on one page
//! only.
//!
//! **Invariant:** a page reads a bounded number of rows, regardless of the number of direct posts that others send, and
//! the next page continues where it ended.

use std::collections::HashMap;

use rows::{NameTable, Rows, SetTable, Span};

use crate::conversations::{Conversation, ConversationMark};
use crate::facts::Facts;
use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf};
use crate::scan::{Batch, ROWS_MAX, Shown, scan};
use crate::visible::Viewer;

/// Number of rows per read in search of the newest shown post of a conversation, which is nearly always the first row.
const NEWEST_AT_ONCE: usize = 16;

/// Number of rows of conversations already found that count as one row, because they need no lookup.
const KNOWN_ROWS: usize = 16;

impl<R: Rows + ?Sized> Viewer<'_, R> {
    /// Returns a page of the direct posts by or to the viewer, without those that a block or a mute hides.
    #[must_use]
    pub fn direct_posts(&self, page: &Page) -> PageOf<PostId> {
        let Some(user) = self.user() else { return PageOf::default() };
        let read = |span| Batch::of(self.facts().direct_posts(user, span), span);
        scan(page, read, |(post, _)| Shown::when(self.shows_direct(user, post), post))
    }

    /// Returns a page of the viewer's conversations, newest post first, without removed ones.
    #[must_use]
    pub fn conversations(&self, page: &Page) -> PageOf<Conversation> {
        let Some(user) = self.user() else { return PageOf::default() };
        let (marks, mut newest) = (self.marks(user), HashMap::new());
        let read = |span: Span| {
            let Batch { items: rows, mut last, .. } =
                Batch::of(self.facts().direct_posts(user, span), span);
            let (mut items, mut looked_up, mut of_known) = (Vec::new(), 0, 0);
            for (post, first) in rows {
                of_known += usize::from(newest.contains_key(&first));
                let newest = newest.entry(first).or_insert_with(|| {
                    let (found, rows) = self.newest_in(user, first);
                    looked_up += 1 + rows;
                    found
                });
                let is_removed = marks.get(&first).is_some_and(|mark| mark.removes(post));
                let is_listed = *newest == Some(post) && !is_removed;
                // The viewer may know all shown posts of the conversation, so the page may end at one that is left out.
                let shown = match newest {
                    Some(_) if is_listed => Shown::Yes((first, post)),
                    Some(_) => Shown::LeftOut,
                    None => Shown::Hidden,
                };
                items.push((post, shown));
                if looked_up >= 2 * ROWS_MAX {
                    last = Some(post.0);
                    break;
                }
            }
            Batch { rows: looked_up + of_known / KNOWN_ROWS, last, items, ends_page: false }
        };
        let found = scan(page, read, |(_, shown)| shown);
        found.filter_map(|(first, last)| {
            self.conversation_with(user, (first, last), marks.get(&first))
        })
    }

    /// The viewer's conversation with this first post, unless it is removed.
    #[must_use]
    pub fn conversation(&self, first: PostId) -> Option<Conversation> {
        let user = self.user()?;
        let last = self.newest_in(user, first).0?;
        self.conversation_with(user, (first, last), self.marks(user).get(&first))
    }

    fn conversation_with(
        &self,
        user: UserId,
        (first, last): (PostId, PostId),
        mark: Option<&ConversationMark>,
    ) -> Option<Conversation> {
        let is_by_other = self.facts().post(last)?.author != user;
        let is_read = mark.is_some_and(|mark| mark.reads(last));
        let is_unread = !is_read && (is_by_other || mark.is_some_and(|mark| mark.unreads(last)));
        let is_removed = mark.is_some_and(|mark| mark.removes(last));
        (!is_removed).then_some(Conversation { first, last, is_unread })
    }

    fn marks(&self, user: UserId) -> HashMap<PostId, ConversationMark> {
        let marks = self.facts().conversation_marks(user);
        marks.into_iter().map(|mark| (mark.first, mark)).collect()
    }

    /// Newest post of a conversation that the viewer sees, if it is among the newest [`ROWS_MAX`], and the number of
    /// rows read.
    fn newest_in(&self, user: UserId, first: PostId) -> (Option<PostId>, usize) {
        let (mut before, mut rows) = (PostId(u64::MAX), 0);
        while rows < ROWS_MAX {
            let posts = self.facts().conversation_posts(user, first, before, NEWEST_AT_ONCE);
            for post in &posts {
                rows += 1;
                if self.shows_direct(user, *post) {
                    return (Some(*post), rows);
                }
                before = *post;
            }
            if posts.len() < NEWEST_AT_ONCE {
                break;
            }
        }
        (None, rows)
    }

    /// Whether to show a direct post by or to the viewer: it is the viewer's, or neither a block nor a mute hides its
    /// author.
    fn shows_direct(&self, user: UserId, post: PostId) -> bool {
        match self.facts().direct_author(user, post) {
            Some(author) => {
                author == user || self.facts().exists(author) && self.notified_by(author)
            }
            None => self.facts().is_by(user, post),
        }
    }
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// First post of the conversation of a direct post by or to a user.
    #[must_use]
    pub fn conversation_of(&self, user: UserId, post: u64) -> Option<PostId> {
        self.rows.member(SetTable::DirectPosts, user.0.into(), post).map(PostId)
    }

    /// Direct posts by or to a user within `span` of post ids, each with the first post of its conversation.
    pub(crate) fn direct_posts(&self, user: UserId, span: Span) -> Vec<(PostId, PostId)> {
        let rows = self.rows.members(SetTable::DirectPosts, user.0.into(), span);
        rows.into_iter().map(|(post, first)| (PostId(post), PostId(first))).collect()
    }

    /// Newest direct posts by or to a user in a conversation that are older than `before`: at most `limit`.
    pub(crate) fn conversation_posts(
        &self,
        user: UserId,
        first: PostId,
        before: PostId,
        limit: usize,
    ) -> Vec<PostId> {
        let Some(last) = before.0.checked_sub(1) else { return Vec::new() };
        let start = [&user.0.to_be_bytes()[..], &first.0.to_be_bytes()].concat();
        let from = (!last).to_be_bytes();
        let posts = self.rows.names_under(NameTable::ConversationPost, &start, &from, limit);
        let ids = posts.iter().filter_map(|id| Some(!u64::from_be_bytes(*id.first_chunk()?)));
        ids.map(PostId).collect()
    }

    /// Author of a direct post that mentions `user`.
    pub(crate) fn direct_author(&self, user: UserId, post: PostId) -> Option<UserId> {
        let number = self.rows.member(SetTable::Mentions, user.0.into(), post.0)?;
        number.checked_sub(1).map(|author| UserId(author as u32))
    }
}
