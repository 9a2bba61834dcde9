//! Reading stories from a node. Whether a story is live is decided when it is read, by a time that never
//! goes back. It does not depend on the sweep.

use feed::stories::StoryRef;
use feed::{Batch, Facts, Page, PageEnds, Story, StoryId, UserId, scan};
use rows::{PointTable, Rows, Span};

use super::Node;
use crate::views::{Shown, render};

impl Node {
    /// Milliseconds since 1970; never less than in an earlier reply or at any acknowledged change.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.shared.time.now_ms()
    }

    /// Appends a live story that `reader` may see (any story if `None`) to `out` as JSON; false if there is
    /// none. May block.
    pub fn story(&self, id: StoryId, reader: Option<UserId>, out: &mut Vec<u8>) -> bool {
        let facts = self.facts();
        let story = facts.story(id).filter(|story| story.is_live(self.now_ms()));
        let Some(story) = story.filter(|story| shown_to(facts, reader, story.author)) else {
            return false;
        };
        let Story { author, expires_ms, .. } = story;
        let seen = reader.map(|reader| reader == author || facts.seen(reader, id));
        self.append_story(StoryRef { story: id, author, expires_ms }, seen, out)
    }

    /// A page of the live stories of `author` that `reader` may see, as JSON objects joined by
    /// commas, newest first. May block.
    pub fn stories_by(
        &self,
        author: UserId,
        reader: Option<UserId>,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> PageEnds {
        let (facts, now) = (self.facts(), self.now_ms());
        let is_shown = shown_to(facts, reader, author);
        let read = |span| {
            let mut found = Vec::new();
            if is_shown {
                self.views().stories.by(facts, author, now, span, &mut found);
            }
            Batch::of(found, span)
        };
        let seen = |story| Some(reader? == author || facts.seen(reader?, story));
        let found = scan(page, read, feed::Shown::Yes);
        self.append_stories(found.items.iter().map(|story| (*story, seen(story.story))), out);
        found.ends(page)
    }

    /// Appends a page of the live stories of all friends of `user` to `out`, as
    /// [`Node::stories_by`] does. `None`, and nothing appended, if it is not all in memory.
    pub fn try_stories_home(
        &self,
        user: UserId,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> Option<PageEnds> {
        let found = self.views().stories.try_home(user, self.now_ms(), page)?;
        let start = out.len();
        for Shown { story, seen } in &found.items {
            if out.len() > start {
                out.push(b',');
            }
            if !self.try_append_story(*story, *seen, out) {
                out.truncate(start);
                return None;
            }
        }
        Some(found.ends(page))
    }

    /// As [`Node::try_stories_home`], reading what is not in memory. May block.
    pub fn stories_home(&self, user: UserId, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        let found = self.views().stories.home(self.facts(), user, self.now_ms(), page);
        self.append_stories(found.items.iter().map(|shown| (shown.story, Some(shown.seen))), out);
        found.ends(page)
    }

    /// The newest live stories of all friends of `user`, newest first. May block.
    #[must_use]
    pub fn stories_of_friends(&self, user: UserId, limit: usize) -> Vec<StoryRef> {
        let page = Page::newest(limit);
        let page = self.views().stories.home(self.facts(), user, self.now_ms(), &page);
        page.items.into_iter().map(|shown| shown.story).collect()
    }

    /// As [`Node::stories_of_friends`]; `None` if it is not all in memory.
    #[must_use]
    pub fn try_stories_of_friends(&self, user: UserId, limit: usize) -> Option<Vec<StoryRef>> {
        let page = Page::newest(limit);
        Some(self.views().stories.try_stories(user, self.now_ms(), &page)?.items)
    }

    /// A counter that rises when stories or friends of any user change. It includes all changes up to an
    /// earlier [`Node::visible_up_to`].
    #[must_use]
    pub fn story_changes(&self) -> u64 {
        self.views().story_changes()
    }

    /// Appends a live story of a friend of `reader` as JSON if it is in memory; false if not, whether the
    /// story exists or not.
    pub fn try_story(&self, story: StoryRef, reader: UserId, out: &mut Vec<u8>) -> bool {
        let seen = self.views().stories.try_seen(reader, story.story);
        seen.is_some_and(|seen| self.try_append_story(story, seen, out))
    }

    /// The users within `span` of user ids who have seen a live story of `author`, each with the time of
    /// their first view in milliseconds since 1970, also users whom the author may not see. `None` if there is no such
    /// story, or it is by another author. May block.
    #[must_use]
    pub fn story_views(
        &self,
        story: StoryId,
        author: UserId,
        span: Span,
    ) -> Option<Vec<(UserId, u64)>> {
        let live = |found: &Story| found.is_live(self.now_ms()) && found.author == author;
        self.facts().story(story).filter(live)?;
        Some(self.facts().story_views(story, span))
    }

    /// Starts to erase everything that was removed with dead stories from the files of the log and the
    /// store, which takes seconds. A thread of the node also does it by itself within
    /// [`crate::NodeOptions::erase_within`].
    pub fn erase_stories(&self) {
        self.shared.start_erasure();
    }
}

impl Node {
    fn append_stories(
        &self,
        stories: impl Iterator<Item = (StoryRef, Option<bool>)>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        for (story, seen) in stories {
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            // It may have been deleted since its id was read: then it is left out.
            if !self.append_story(story, seen, out) {
                out.truncate(before);
            }
        }
    }

    fn try_append_story(&self, story: StoryRef, seen: bool, out: &mut Vec<u8>) -> bool {
        let row = |id: StoryId| self.shared.store.point_in_memory(PointTable::StoryText, id.0);
        let in_memory = |id| row(id).map(|row| rows::decode(&row));
        let rendered = self.views().entities.try_story(&self.shared.store, in_memory, story, out);
        if rendered {
            render::story_end(Some(seen), out);
        }
        rendered
    }

    fn append_story(&self, story: StoryRef, seen: Option<bool>, out: &mut Vec<u8>) -> bool {
        let rendered = self.views().entities.story(&self.shared.store, self.facts(), story, out);
        if rendered {
            render::story_end(seen, out);
        }
        rendered
    }
}

/// Stories are visible to their author and the author's friends; the application itself sees all.
fn shown_to<R: Rows + ?Sized>(facts: Facts<'_, R>, reader: Option<UserId>, author: UserId) -> bool {
    reader.is_none_or(|reader| {
        let is_friend = || facts.are_friends(reader, author) && !facts.is_disabled(author);
        reader == author || is_friend()
    })
}
