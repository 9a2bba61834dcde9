//! Removing the rows of stories that expired or were deleted, a bounded number per command.
//!
//! The sweep walks the seconds of expiry in order and stops before the second of its own stamp, in
//! which stories may still be live. How far it gets depends only on rows that are not ephemeral: the cost
//! of a story is its number of views (`views`), however many of its view rows are left.

use rows::{Span, Stamp};

use crate::command::Done;
use crate::effect::{Effect, StoryChange};
use crate::facts::Txn;
use crate::ids::StoryId;
use crate::limits::{self, STORY_ROWS};

/// Rows of a view: one with the story's viewers, one with the stories that the viewer has seen.
const VIEW_ROWS: u32 = 2;

pub(super) fn sweep(txn: &mut Txn<'_>, stamp: Stamp, effects: &mut Vec<Effect>) -> Done {
    let now = stamp.unix_second();
    let totals = txn.facts().totals();
    let mut second = totals.sweep_second;
    let end = now.min(second.saturating_add(limits::SWEEP_SECONDS_MAX));
    let rows_left = limits::SWEEP_ROWS_MAX;
    let mut sweep = Sweep { txn, effects, rows_left, stories: 0, up_to: totals.swept_up_to };
    while second < end && totals.stories > sweep.stories.into() && sweep.empty(second) {
        second += 1;
        sweep.up_to = 0;
    }
    let Sweep { stories, mut up_to, .. } = sweep;
    if totals.stories == stories.into() {
        // No story is left to sweep: skip the seconds until now.
        (second, up_to) = (now, 0);
    }
    txn.total(|totals| {
        totals.stories -= u64::from(stories);
        (totals.sweep_second, totals.swept_up_to) = (second, up_to);
    });
    Done::Swept { stories, more: second < now }
}

struct Sweep<'a, 'b> {
    txn: &'a mut Txn<'b>,
    effects: &'a mut Vec<Effect>,
    rows_left: u32,
    stories: u32,
    /// The last story removed in the current second. No story with a smaller id is added to this second
    /// any more, because later commands have stamps of later seconds.
    up_to: u64,
}

impl Sweep<'_, '_> {
    /// Removes the stories that died in `second`; returns whether none is left.
    fn empty(&mut self, second: u64) -> bool {
        // One more than can be removed: if all that were read are removed, none is left.
        let limit = (self.rows_left / STORY_ROWS + 1) as usize;
        let rest = Span { low: self.up_to, limit, ..Span::ALL };
        let dead = self.txn.facts().expiring(second, rest);
        dead.into_iter().all(|(story, _)| self.remove(story, second))
    }

    /// Removes a story, or as many of its rows as `rows_left` allows; returns whether all are removed.
    fn remove(&mut self, id: StoryId, second: u64) -> bool {
        let Some(mut story) = self.txn.facts().stored_story(id) else {
            unreachable!("a story is stored until its expiry is swept")
        };
        let views = story.views.min(self.rows_left / VIEW_ROWS);
        if views > 0 {
            self.txn.remove_views(id, &mut story, views);
            self.rows_left -= views * VIEW_ROWS;
        }
        if story.views > 0 || self.rows_left < STORY_ROWS {
            return false;
        }
        self.rows_left -= STORY_ROWS;
        self.txn.remove_story(id, &story, second);
        self.stories += 1;
        self.up_to = id.0;
        if story.expires_ms > 0 {
            let (author, change) = (story.author, StoryChange::Gone);
            self.effects.push(Effect::Story { story: id, author, change });
        }
        true
    }
}
