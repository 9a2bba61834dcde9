//! Posting, deleting and viewing stories.
//!
//! A story is dead from the millisecond it expires or from the command that deletes it. Every command
//! treats a dead story as one that does not exist. Its rows are stored until the sweep removes them.

use rows::Stamp;

use crate::command::{Done, Outcome};
use crate::effect::{Effect, StoryChange};
use crate::facts::Txn;
use crate::ids::{StoryId, UserRef};
use crate::lifetime::Lifetime;
use crate::records::Story;
use crate::refusal::Refusal;
use crate::text::PostText;

pub(super) fn publish(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    author: &UserRef,
    text: &PostText,
    life: Lifetime,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let author = super::resolve(txn, author)?;
    let story = StoryId(stamp.0);
    let expires_ms = stamp.unix_ms() + life.ms();
    txn.put_story(story, &Story { author, expires_ms, views: 0 }, text);
    txn.total(|totals| {
        if totals.stories == 0 {
            // No story is stored: the sweep can skip the seconds before this one.
            totals.sweep_second = stamp.unix_second();
            totals.swept_up_to = 0;
        }
        totals.stories += 1;
    });
    effects.push(Effect::Story { story, author, change: StoryChange::Posted { expires_ms } });
    Ok(Done::StoryPosted { story, expires_ms })
}

pub(super) fn delete(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    id: StoryId,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let story = live(txn, stamp, id)?;
    txn.hide_story(id, &story, stamp.unix_second());
    effects.push(Effect::Story { story: id, author: story.author, change: StoryChange::Gone });
    Ok(Done::StoryDeleted)
}

pub(super) fn view(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    id: StoryId,
    viewer: &UserRef,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let viewer = super::resolve(txn, viewer)?;
    let story = live(txn, stamp, id)?;
    if viewer == story.author {
        return Ok(Done::StoryViewed);
    }
    if !txn.facts().are_friends(story.author, viewer) {
        return Err(Refusal::StoryNotFound);
    }
    // The view is an ephemeral row, so an effect may depend on it, but the outcome must not.
    if txn.put_view(id, &story, viewer, stamp.unix_ms()) {
        let (author, change) = (story.author, StoryChange::Viewed { viewer });
        effects.push(Effect::Story { story: id, author, change });
    }
    Ok(Done::StoryViewed)
}

fn live(txn: &Txn<'_>, stamp: Stamp, id: StoryId) -> Result<Story, Refusal> {
    let story = txn.facts().story(id).filter(|story| story.is_live(stamp.unix_ms()));
    story.ok_or(Refusal::StoryNotFound)
}
