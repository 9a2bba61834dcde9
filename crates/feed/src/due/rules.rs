//! Processing due work.

use rows::Stamp;

use crate::accounts;
use crate::blocks;
use crate::done::Done;
use crate::due::{Due, DueWork};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::PostId;
use crate::limits::ERASE_ROWS_MAX;
use crate::media;
use crate::notifications;
use crate::polls;
use crate::reactions;
use crate::schedule;
use crate::stories;

/// Does a part of some due work. The row stores the progress, so nothing is done twice.
pub(crate) fn apply(txn: &mut Txn<'_>, stamp: Stamp, due: Due, effects: &mut Vec<Effect>) -> Done {
    let from = txn.facts().due_from(due).filter(|_| due.at_ms <= stamp.unix_ms());
    let Some(from) = from else { return Done::NotDue };
    let at_ms = due.at_ms;
    let next = match due.work {
        DueWork::RemoveStory { story } => stories::rules::remove(txn, story, at_ms, effects),
        DueWork::EndMute { user, other } => {
            blocks::rules::end_mute(txn, (user, other), at_ms, effects);
            None
        }
        DueWork::EndPoll { post } => polls::rules::end(txn, (stamp, at_ms), (post, from), effects),
        DueWork::Publish { user, id } => {
            schedule::rules::publish(txn, (stamp, at_ms), (user, id), effects);
            None
        }
        DueWork::RemoveMedia { media } => {
            media::rules::expire(txn, media, at_ms);
            None
        }
        DueWork::NotifyOfEdit { post } => {
            notifications::rules::notify_of_edit(txn, (stamp, at_ms), (post, from), effects)
        }
        DueWork::SweepReactions { post } => reactions::rules::sweep(txn, (post, from), effects),
        DueWork::SweepVotes { poll } => txn.sweep_votes(poll, from, ERASE_ROWS_MAX),
        DueWork::Relist { user } => txn.relist_posts(user, PostId(from)),
        // [`Command::EraseUser`](crate::Command::EraseUser) does this work: its sender finds the rows.
        DueWork::Erase { .. } => return Done::NotDue,
        DueWork::ExpireGrant { grant } => {
            accounts::grants::expire(txn, grant, at_ms);
            None
        }
    };
    txn.put_due(due, next);
    Done::DueDone
}
