//! Reading stories from a node. Whether a story is live is asked at the moment of the read, with a
//! time that never goes back; the sweep has no say in it.

use std::sync::atomic::Ordering;

use feed::stories::StoryRef;
use feed::{Cursor, Facts, Page, PageOf, Story, StoryId, UserId};
use rows::{PointTable, Rows, Span};

use super::Node;
use super::reads::PageEnds;
use crate::render;
use crate::views::Shown;

impl Node {
    /// Milliseconds since 1970; never behind an earlier answer nor any acknowledged change.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.shared.time.now_ms()
    }

    /// A live story that `reader` may see (everybody's friend if `None`), as JSON appended to `out`;
    /// false if there is none. May block.
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
        page: &Page<StoryId>,
        out: &mut Vec<u8>,
    ) -> PageEnds<StoryId> {
        let (facts, now) = (self.facts(), self.now_ms());
        let mut found = Vec::new();
        let span = page.span(page.limit + 1).filter(|_| shown_to(facts, reader, author));
        if let Some(span) = span {
            self.views().stories.by(facts, author, now, span, &mut found);
        }
        let seen = |story| Some(reader? == author || facts.seen(reader?, story));
        let page = PageOf::from_scan(found, page);
        self.append_stories(page.items.iter().map(|told| (*told, seen(told.story))), out);
        ends(&page, |told| *told)
    }

    /// Appends a page of the live stories of all friends of `user` to `out`, as
    /// [`Node::stories_by`] does. `None`, and nothing appended, if it is not all in memory.
    pub fn try_stories_home(
        &self,
        user: UserId,
        page: &Page<StoryId>,
        out: &mut Vec<u8>,
    ) -> Option<PageEnds<StoryId>> {
        let page = self.views().stories.try_home(user, self.now_ms(), page)?;
        let start = out.len();
        let row = |id: StoryId| self.shared.store.point_in_memory(PointTable::StoryText, id.0);
        let in_memory = |id| row(id).map(|row| rows::decode(&row));
        for Shown { told, seen } in &page.items {
            if out.len() > start {
                out.push(b',');
            }
            if !self.views().rendered.try_story(in_memory, *told, out) {
                out.truncate(start);
                return None;
            }
            render::story_end(Some(*seen), out);
        }
        Some(ends(&page, |shown| shown.told))
    }

    /// As [`Node::try_stories_home`], reading what is not in memory. May block.
    pub fn stories_home(
        &self,
        user: UserId,
        page: &Page<StoryId>,
        out: &mut Vec<u8>,
    ) -> PageEnds<StoryId> {
        let page = self.views().stories.home(self.facts(), user, self.now_ms(), page);
        self.append_stories(page.items.iter().map(|shown| (shown.told, Some(shown.seen))), out);
        ends(&page, |shown| shown.told)
    }

    /// The newest live stories of all friends of `user`, newest first. May block.
    #[must_use]
    pub fn stories_of_friends(&self, user: UserId, limit: usize) -> Vec<StoryRef> {
        let page = Page { cursor: Cursor::Newest, limit };
        let page = self.views().stories.home(self.facts(), user, self.now_ms(), &page);
        page.items.into_iter().map(|shown| shown.told).collect()
    }

    /// As [`Node::stories_of_friends`]; `None` if it is not all in memory.
    #[must_use]
    pub fn try_stories_of_friends(&self, user: UserId, limit: usize) -> Option<Vec<StoryRef>> {
        let page = Page { cursor: Cursor::Newest, limit };
        Some(self.views().stories.try_stories(user, self.now_ms(), &page)?.items)
    }

    /// A number that differs once stories or friends of anybody have changed since it was last read.
    /// It has counted the changes up to an earlier [`Node::visible_up_to`].
    #[must_use]
    pub fn story_changes(&self) -> u64 {
        self.views().story_changes()
    }

    /// Appends a story of a friend of `reader`, which is live, as JSON if it is in memory; false says
    /// nothing about whether there is one.
    pub fn try_story(&self, told: StoryRef, reader: UserId, out: &mut Vec<u8>) -> bool {
        let Some(seen) = self.views().stories.try_seen(reader, told.story) else { return false };
        let row = |id: StoryId| self.shared.store.point_in_memory(PointTable::StoryText, id.0);
        let in_memory = |id| row(id).map(|row| rows::decode(&row));
        let rendered = self.views().rendered.try_story(in_memory, told, out);
        if rendered {
            render::story_end(Some(seen), out);
        }
        rendered
    }

    /// Who has seen a live story of `author`, within `span` of user ids, with when they first did in
    /// milliseconds since 1970. `None` if there is no such story, or it is somebody else's. May block.
    #[must_use]
    pub fn story_views(
        &self,
        story: StoryId,
        author: UserId,
        span: Span,
    ) -> Option<Vec<(UserId, u64)>> {
        let live = |told: &Story| told.is_live(self.now_ms()) && told.author == author;
        self.facts().story(story).filter(live)?;
        Some(self.facts().story_views(story, span))
    }

    /// Removes the rows of stories that expired or were deleted before the current second, which a
    /// thread of the node does by itself every second; tells whether there were any. Blocks.
    pub fn sweep_stories(&self) -> bool {
        self.shared.sweep()
    }

    /// Has everything that was removed with dead stories erased from the files of the log and the
    /// store within the next seconds, which a thread of the node does by itself within
    /// [`crate::NodeOptions::erase_within`].
    pub fn erase_stories(&self) {
        self.shared.erasure_due.store(true, Ordering::Release);
    }
}

impl Node {
    fn append_stories(
        &self,
        stories: impl Iterator<Item = (StoryRef, Option<bool>)>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        for (told, seen) in stories {
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            // It may have been deleted since its id was read: then it is left out.
            if !self.append_story(told, seen, out) {
                out.truncate(before);
            }
        }
    }

    fn append_story(&self, told: StoryRef, seen: Option<bool>, out: &mut Vec<u8>) -> bool {
        let rendered = self.views().rendered.story(self.facts(), told, out);
        if rendered {
            render::story_end(seen, out);
        }
        rendered
    }
}

/// Stories are for their author and the author's friends; the application itself sees all.
fn shown_to<R: Rows + ?Sized>(facts: Facts<'_, R>, reader: Option<UserId>, author: UserId) -> bool {
    reader.is_none_or(|reader| reader == author || facts.are_friends(reader, author))
}

fn ends<T>(page: &PageOf<T>, told: impl Fn(&T) -> StoryRef) -> PageEnds<StoryId> {
    let end = |item: Option<&T>| item.map(|item| told(item).story);
    PageEnds { first: end(page.items.first()), last: end(page.items.last()), more: page.more }
}
