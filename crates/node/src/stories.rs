//! Reading stories from a node. Whether a story is live is asked at the moment of the read, with a
//! time that never goes back; the sweep has no say in it.

use std::io::Write as _;
use std::sync::atomic::Ordering;

use feed::stories::{Told, gather};
use feed::{Facts, Page, PageOf, Rows, Span, Story, StoryId, UserId};

use crate::node::Node;
use crate::reads::{PageEnds, ends};
use crate::render;

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
        append(facts, Told { story: id, author, expires_ms }, reader, out)
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
        let span = page.span(page.limit + 1).filter(|_| shown_to(facts, reader, author));
        let scan = span.map(|span| facts.live_stories_by(author, now, span));
        append_all(facts, &PageOf::from_scan(scan.unwrap_or_default(), page), reader, out)
    }

    /// A page of the live stories of all friends of `user`, as [`Node::stories_by`] does. May block.
    pub fn stories_home(
        &self,
        user: UserId,
        page: &Page<StoryId>,
        out: &mut Vec<u8>,
    ) -> PageEnds<StoryId> {
        let (facts, now) = (self.facts(), self.now_ms());
        let friends = facts.friends_all(user);
        let page = gather(&friends, page, |friend, span, found| {
            found.extend(facts.live_stories_by(friend, now, span));
        });
        append_all(facts, &page, Some(user), out)
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

/// Stories are for their author and the author's friends; the application itself sees all.
fn shown_to<R: Rows + ?Sized>(facts: Facts<'_, R>, reader: Option<UserId>, author: UserId) -> bool {
    reader.is_none_or(|reader| reader == author || facts.are_friends(reader, author))
}

fn append_all<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    page: &PageOf<Told>,
    reader: Option<UserId>,
    out: &mut Vec<u8>,
) -> PageEnds<StoryId> {
    let start = out.len();
    for told in &page.items {
        let before = out.len();
        if before > start {
            out.push(b',');
        }
        // It may have been deleted since its id was read: then it is left out.
        if !append(facts, *told, reader, out) {
            out.truncate(before);
        }
    }
    let ids: Vec<StoryId> = page.items.iter().map(|told| told.story).collect();
    ends(&ids, page.more)
}

/// Appends a story as a JSON object, with whether `reader` has seen it.
fn append<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    told: Told,
    reader: Option<UserId>,
    out: &mut Vec<u8>,
) -> bool {
    let Some(text) = facts.story_text(told.story) else { return false };
    let Some(author) = facts.user(told.author) else { return false };
    out.extend_from_slice(b"{\"id\":\"");
    render::number(told.story.0, out);
    out.extend_from_slice(b"\",\"author\":");
    render::author(told.author, &author.handle, &author.name, out);
    out.extend_from_slice(b",\"text\":");
    render::string(text.as_str(), out);
    out.extend_from_slice(b",\"created_at\":\"");
    render::time(told.story.unix_ms(), out);
    out.extend_from_slice(b"\",\"expires_at\":\"");
    render::time(told.expires_ms, out);
    out.push(b'"');
    if let Some(reader) = reader {
        let seen = reader == told.author || facts.seen(reader, told.story);
        let Ok(()) = write!(out, ",\"seen\":{seen}") else { unreachable!("memory takes bytes") };
    }
    out.push(b'}');
    true
}
