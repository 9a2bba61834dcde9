//! Reads of stories. Whether a story is live depends on a time that never goes back, not on the sweep.

use feed::stories::StoryRef;
use feed::{Batch, Facts, Page, PageEnds, Story, StoryId, UserId, scan};
use rows::{PointTable, Rows, Span};

use super::Node;
use crate::views::{Shown, render};

impl Node {
    /// Returns milliseconds since 1970; never less than in an earlier reply or at an acknowledged change.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.shared.time.now_ms()
    }

    /// Appends a live story that `reader` may see (`None`: any story) to `out` as JSON; returns false if there is none.
    /// May block.
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

    /// Appends a page of the live stories of `author` that `reader` may see: JSON objects separated by commas, newest
    /// first. May block.
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

    /// Appends a page of the live stories of all friends of `user`, in the form of [`Node::stories_by`]. Returns `None`
    /// and appends nothing if a part is not in memory.
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

    /// Appends a page of stories like [`Node::try_stories_home`], reading what is not in memory. May block.
    pub fn stories_home(&self, user: UserId, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        let found = self.views().stories.home(self.facts(), user, self.now_ms(), page);
        self.append_stories(found.items.iter().map(|shown| (shown.story, Some(shown.seen))), out);
        found.ends(page)
    }

    /// Returns the newest live stories of all friends of `user`, newest first. May block.
    #[must_use]
    pub fn stories_of_friends(&self, user: UserId, limit: usize) -> Vec<StoryRef> {
        let page = Page::newest(limit);
        let page = self.views().stories.home(self.facts(), user, self.now_ms(), &page);
        page.items.into_iter().map(|shown| shown.story).collect()
    }

    /// Returns the stories of [`Node::stories_of_friends`]; `None` if a part is not in memory.
    #[must_use]
    pub fn try_stories_of_friends(&self, user: UserId, limit: usize) -> Option<Vec<StoryRef>> {
        let page = Page::newest(limit);
        Some(self.views().stories.try_stories(user, self.now_ms(), &page)?.items)
    }

    /// Returns a counter that rises when stories or friends of any user change. It includes all changes up to an
    /// earlier [`Node::visible_up_to`].
    #[must_use]
    pub fn story_changes(&self) -> u64 {
        self.views().story_changes()
    }

    /// Appends a live story of a friend of `reader` as JSON; returns false if it is not in memory, whether or not it
    /// exists.
    pub fn try_story(&self, story: StoryRef, reader: UserId, out: &mut Vec<u8>) -> bool {
        let seen = self.views().stories.try_seen(reader, story.story);
        seen.is_some_and(|seen| self.try_append_story(story, seen, out))
    }

    /// Returns the users with ids in `span` who have seen a live story of `author`, including users that are hidden
    /// from the author, each with the time of the first view in milliseconds since 1970. `None` if `author` has no such
    /// live story. May block.
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

    /// Starts to erase everything that was removed with ended stories from the files of the log and the store. An
    /// erasure takes seconds. A thread of the node does the same within [`crate::NodeOptions::erase_within`].
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
            // A story that was deleted after its id was read is left out.
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

/// Stories are visible to their author and the author's friends. The application itself sees all stories.
fn shown_to<R: Rows + ?Sized>(facts: Facts<'_, R>, reader: Option<UserId>, author: UserId) -> bool {
    reader.is_none_or(|reader| {
        let is_friend = || facts.are_friends(reader, author) && !facts.is_disabled(author);
        reader == author || is_friend()
    })
}
