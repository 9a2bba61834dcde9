//! Facts about stories.
//!
//! Ephemeral rows (texts and views) may be newer than the other rows after a crash, so that a replay finds rows of
//! commands that it has not applied yet. It still ends with the same rows: the id of a story is never reused. Its text
//! is written once, by the command that posts the story. A view is written once, with the stamp of its command as
//! value. Nothing is written for a deleted or expired story, and the sweep removes all its rows. A deleted user's view
//! may be removed earlier: the command states how many of the user's views to remove and from which story on, and a
//! deleted user adds no views. So a row that exists too early is the row that the replay would write, and a row removed
//! too early is written and removed again.

use rows::{PointTable, Rows, SetTable, Span, decode, encode};

use crate::due::DueWork;
use crate::facts::{Facts, Txn, user_id};
use crate::ids::{StoryId, UserId};
use crate::stories::{Story, StoryRef};
use crate::text::PostText;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// A story that is neither deleted nor swept, but may have expired: see [`Story::is_live`].
    #[must_use]
    pub fn story(&self, story: StoryId) -> Option<Story> {
        let visible = |story: &Story| story.expires_ms > 0 && !self.is_being_erased(story.author);
        self.stored_story(story).filter(visible)
    }

    /// A story that is not swept, but may be deleted.
    #[must_use]
    pub fn stored_story(&self, story: StoryId) -> Option<Story> {
        self.rows.point(PointTable::Story, story.0).map(|row| decode(&row))
    }

    /// Calls `each` with every story that is neither deleted nor swept, in the order of ids. Reads all of them in one
    /// scan. Authors may be deleted.
    pub fn each_stored_story(&self, mut each: impl FnMut(StoryId, Story)) {
        self.rows.each_point(PointTable::Story, &mut |id, row| {
            let story: Story = decode(row);
            if story.expires_ms > 0 {
                each(StoryId(id), story);
            }
        });
    }

    /// Text of a story; `None` once it is deleted or swept. The caller must check that the story is live.
    #[must_use]
    pub fn story_text(&self, story: StoryId) -> Option<PostText> {
        self.rows.point(PointTable::StoryText, story.0).map(|row| decode(&row))
    }

    /// Stories of `author` within `span` of story ids, each with its expiry in milliseconds since 1970. Includes
    /// expired stories until they are swept, but no deleted ones.
    #[must_use]
    pub fn stories_by(&self, author: UserId, span: Span) -> Vec<(StoryId, u64)> {
        if self.is_being_erased(author) {
            return Vec::new();
        }
        let rows = self.rows.members(SetTable::AuthorStories, author.0.into(), span);
        rows.into_iter().map(|(story, expires_ms)| (StoryId(story), expires_ms)).collect()
    }

    /// Stories of `author` that are live at `now_ms`, within `span` of story ids and in its order. Fewer than the limit
    /// only if there are no more.
    #[must_use]
    pub fn live_stories_by(&self, author: UserId, now_ms: u64, span: Span) -> Vec<StoryRef> {
        let mut found = Vec::new();
        let mut rest = Some(span);
        while let Some(span) = rest.filter(|span| span.limit > 0) {
            let stories = self.stories_by(author, span);
            let last = stories.last().filter(|_| stories.len() >= span.limit).map(|last| last.0.0);
            let live = stories.into_iter().filter(|(_, expires_ms)| now_ms < *expires_ms);
            let before = found.len();
            found.extend(live.map(|(story, expires_ms)| StoryRef { story, author, expires_ms }));
            let missing = span.limit - (found.len() - before);
            rest = last.and_then(|last| span.beyond(last, missing));
        }
        found
    }

    /// Users who viewed a story, within `span` of user ids, each with the time of the first view in milliseconds since
    /// 1970.
    #[must_use]
    pub fn story_views(&self, story: StoryId, span: Span) -> Vec<(UserId, u64)> {
        let rows = self.rows.members(SetTable::StoryViews, story.0, span);
        rows.into_iter().filter_map(|(viewer, at_ms)| Some((user_id(viewer)?, at_ms))).collect()
    }

    /// Whether `viewer` has viewed a story that is not swept.
    #[must_use]
    pub fn seen(&self, viewer: UserId, story: StoryId) -> bool {
        self.rows.member(SetTable::Seen, viewer.0.into(), story.0).is_some()
    }

    /// Stories that `viewer` has viewed, within `span` of story ids.
    #[must_use]
    pub fn seen_by(&self, viewer: UserId, span: Span) -> Vec<StoryId> {
        let rows = self.rows.members(SetTable::Seen, viewer.0.into(), span);
        rows.into_iter().map(|(story, _)| StoryId(story)).collect()
    }
}

impl Txn<'_> {
    /// Writes the rows of a new story.
    pub fn put_story(&mut self, id: StoryId, story: &Story, text: &PostText) {
        write::story(self.rows, id, story, text);
    }

    /// Hides a story from every read, regardless of the reader's clock, and schedules the removal of its other rows.
    pub fn hide_story(&mut self, id: StoryId, story: &Story) {
        self.end_story(id, story);
        let removal = DueWork::RemoveStory { story: id };
        self.put_due(removal.at(story.expires_ms), None);
        self.put_due_now(DueWork::RemoveStory { story: id });
    }

    /// Counts a view of a live story by `viewer`, and records the viewer's first view. Returns whether it is the first.
    pub fn put_view(&mut self, id: StoryId, story: &Story, viewer: UserId, at_ms: u64) -> bool {
        let viewed = Story { views: story.views.saturating_add(1), ..*story };
        self.rows.put_point(PointTable::Story, id.0, Some(encode(&viewed)));
        let first = self.rows.member(SetTable::StoryViews, id.0, viewer.0.into()).is_none();
        if first {
            write::view(self.rows, id, viewer, at_ms);
        }
        first
    }

    /// Removes up to `views` view rows of a deleted or expired story, and subtracts `views` from its count.
    pub fn remove_views(&mut self, id: StoryId, story: &mut Story, views: u32) {
        let span = Span { limit: views as usize, ..Span::ALL };
        for (viewer, _) in self.facts().story_views(id, span) {
            self.remove_view(viewer, id.0);
        }
        story.views -= views;
        self.rows.put_point(PointTable::Story, id.0, Some(encode(story)));
    }

    /// Removes the text of a deleted or expired story and hides it from every read. Returns the record as stored then.
    /// The due row of its removal stays until no views are left.
    pub(crate) fn end_story(&mut self, id: StoryId, story: &Story) -> Story {
        let hidden = Story { expires_ms: 0, ..*story };
        self.rows.put_point(PointTable::Story, id.0, Some(encode(&hidden)));
        self.rows.put_point(PointTable::StoryText, id.0, None);
        self.rows.put_member(SetTable::AuthorStories, story.author.0.into(), id.0, None);
        hidden
    }

    /// Removes the record of a story without views.
    pub(crate) fn remove_story(&mut self, id: StoryId) {
        self.rows.put_point(PointTable::Story, id.0, None);
    }
}
