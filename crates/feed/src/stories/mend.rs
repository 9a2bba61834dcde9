//! Checks stories, their texts and views.
//!
//! If texts and views are newer than the other rows, the two are not compared. Stories with ids after the last stamp
//! belong to commands that are not applied yet.

use rows::{PointTable, RowsMut, Scan, SetTable, Span, decode, encode};

use crate::due::DueWork;
use crate::ids::StoryId;
use crate::index;
use crate::mend::{Mend, Rows, at};
use crate::stories::Story;

impl Mend {
    pub(crate) fn story<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let mut story: Story = decode(value);
        let author = u64::from(story.author.0);
        if step.user(author).is_none() {
            step.lost(format!("story {}: there is no user {author}", at(key)));
            step.rows.put_point(PointTable::Story, key, None);
            return;
        }
        if step.is_erased(story.author) && story.expires_ms > 0 {
            self.erase_again(step, story.author);
        }
        self.counted.last_stamp = self.counted.last_stamp.max(key);
        self.counted.stories += 1;
        let has_text = step.rows.point(PointTable::StoryText, key).is_some();
        if story.expires_ms > 0 && !has_text && !self.ephemeral_ahead {
            step.lost(format!(
                "story {} of user {author}: its text is lost, and the story is deleted",
                at(key)
            ));
            index::replace(step.rows, &index::of_story(StoryId(key), &story), &[]);
            story.expires_ms = 0;
        }
        let removal = DueWork::RemoveStory { story: StoryId(key) };
        if story.expires_ms == 0 && step.put_pending(removal) {
            step.derived(format!("story {}: its removal is not scheduled", at(key)));
        }
        step.put_index(|| format!("story {}", at(key)), index::of_story(StoryId(key), &story));
        let span = Span { limit: story.views as usize + 1, ..Span::ALL };
        let views = step.rows.members(SetTable::StoryViews, key, span).len() as u32;
        if views > story.views && !self.ephemeral_ahead {
            story.views = step.rows.members(SetTable::StoryViews, key, Span::ALL).len() as u32;
            step.derived(format!("story {}: the number of views is wrong", at(key)));
        }
        step.put(PointTable::Story, key, Some(encode(&story)));
    }

    /// Whether the story of an ephemeral row must exist.
    fn must_exist<R: Scan + RowsMut>(&self, step: &Rows<'_, R>, story: u64) -> bool {
        let last = step.rows.totals().last_stamp.map_or(0, |stamp| stamp.0);
        !self.ephemeral_ahead && story <= last.max(self.counted.last_stamp)
    }

    pub(crate) fn story_text<R: Scan + RowsMut>(&mut self, step: &mut Rows<'_, R>, key: u64) {
        let stored = step.facts().stored_story(StoryId(key));
        if stored.is_none_or(|story| story.expires_ms == 0) && self.must_exist(step, key) {
            if stored.is_none() {
                step.lost(format!("story {}: only its text is left, and is removed", at(key)));
            } else {
                step.derived(format!("StoryText {key}: the story was deleted"));
            }
            step.rows.put_point(PointTable::StoryText, key, None);
        }
    }

    /// Checks a view in one of its two tables.
    pub(crate) fn view<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        (table, opposite): (SetTable, SetTable),
        owner: u64,
        item: u64,
    ) {
        let story = if table == SetTable::Seen { item } else { owner };
        if !self.must_exist(step, story) {
            return;
        }
        if step.facts().stored_story(StoryId(story)).is_none() {
            step.derived(format!("{table:?} {owner}, {item}: the story does not exist"));
            step.set(table, owner, item, None);
            step.set(opposite, item, owner, None);
        } else if step.rows.member(opposite, item, owner).is_none() {
            step.derived(format!(
                "{table:?} {owner}, {item}: the row of the other direction is missing"
            ));
            // The time of the view is lost; the story's time is a lower bound.
            let number = if opposite == SetTable::Seen { 0 } else { StoryId(story).unix_ms() };
            step.set(opposite, item, owner, Some(number));
        }
    }
}
