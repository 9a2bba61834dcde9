//! Removing the rows of stories that expired or were deleted, a bounded piece a command.
//!
//! The sweep walks the seconds of expiry in order and stops before the second of its own stamp, in
//! which stories may still live. How far it comes is decided by rows that are not ephemeral: a story
//! costs the looks it has had, whatever view rows are left of them.

use rows::{Span, Stamp};

use crate::command::Done;
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::StoryId;
use crate::limits::{self, STORY_ROWS};

/// Rows of a look: who saw it, and what they have seen.
const LOOK_ROWS: u32 = 2;

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
        // Nothing waits anywhere: the seconds until now need no walk.
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
    /// The last story that is gone of those in the second at hand. None comes before it any more:
    /// commands with stamps of later seconds put nothing there.
    up_to: u64,
}

impl Sweep<'_, '_> {
    /// Removes what died in `second`; returns whether that was all of it.
    fn empty(&mut self, second: u64) -> bool {
        // One more than there is room for, so that running out of them means they were all.
        let limit = (self.rows_left / STORY_ROWS + 1) as usize;
        let rest = Span { low: self.up_to, limit, ..Span::ALL };
        let dead = self.txn.facts().expiring(second, rest);
        dead.into_iter().all(|(story, _)| self.remove(story, second))
    }

    /// Removes a story, or as much of it as there is room for; returns whether it is gone.
    fn remove(&mut self, id: StoryId, second: u64) -> bool {
        let Some(mut story) = self.txn.facts().standing_story(id) else {
            unreachable!("a story stands until its expiry is swept")
        };
        let looks = story.looks.min(self.rows_left / LOOK_ROWS);
        if looks > 0 {
            self.txn.remove_looks(id, &mut story, looks);
            self.rows_left -= looks * LOOK_ROWS;
        }
        if story.looks > 0 || self.rows_left < STORY_ROWS {
            return false;
        }
        self.rows_left -= STORY_ROWS;
        self.txn.remove_story(id, &story, second);
        self.stories += 1;
        self.up_to = id.0;
        if story.expires_ms > 0 {
            self.effects.push(Effect::StoryGone { story: id, author: story.author });
        }
        true
    }
}
