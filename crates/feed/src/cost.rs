//! Upper bound of the cost of each command; see [`rows::Cost`].

use rows::{Cost, WORK_PER_ROW};

use crate::accounts::cost::{GRANT_BYTES, account_cost};
use crate::command::{Command, Request};
use crate::due::DueWork;
use crate::erase::cost::{erasure_cost, user_deletion_cost};
use crate::feeds::feed_cost;
use crate::filters::rules::filter_cost;
use crate::follows::cost::{follow_cost, follows_cost, options_cost};
use crate::index::GRANT_ROWS;
use crate::limits::{
    ERASE_ROWS_MAX, FEATURED_TAGS_MAX, FOLLOWED_TAGS_MAX, POST_BYTES_MAX, SAMPLE_SETS_MAX,
    STORY_VIEWS_REMOVED,
};
use crate::lists::cost::{list_cost, unlisted_cost};
use crate::media::MediaCommand;
use crate::media::cost::{media_cost, pictures_cost};
use crate::notes::note_cost;
use crate::notifications::cost::{dismissal_cost, edit_notices_cost, thread_mute_cost};
use crate::polls::cost::{end_cost, vote_cost};
use crate::posts::cost::{deletion_cost, edit_cost, publication_cost, relisting_cost};
use crate::reactions::cost::reaction_cost;
use crate::schedule::cost::{due_post_cost, schedule_cost};
use crate::tags::rules::user_tag_cost;
use crate::users::rules::USER_BYTES_MAX;
use crate::whole::CONVERSATION_MARKS;

/// Rows for an idempotency key: its own, two old ones that are removed, and one lookup.
const IDEMPOTENCY_ROWS: usize = 4;

impl Request {
    /// Upper bound of the request's cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let idempotency = match self.idempotency {
            // The bytes are those of the day, the digests and the outcome.
            Some(_) => Cost::of_rows(IDEMPOTENCY_ROWS, IDEMPOTENCY_ROWS * 64),
            None => Cost::default(),
        };
        self.command.cost().and(idempotency)
    }
}

impl Command {
    fn cost(&self) -> Cost {
        match self {
            Self::Register { handle, name, bio } => {
                let held = 2 * handle.as_str().len() + name.as_str().len() + bio.as_str().len();
                Cost::of_rows(3, held + 64)
            }
            // The whole row is written, including unchanged fields.
            Self::EditUser(_) => Cost::of_rows(3, USER_BYTES_MAX),
            Self::Follow { .. } => follow_cost(),
            Self::React { .. } => reaction_cost(),
            Self::ClearNotifications { .. } => Cost::of_rows(4, 64),
            Self::SetMarkers(_) => Cost::of_rows(2, 128),
            Self::Conversation(_) | Self::UnreadConversation { .. } => CONVERSATION_MARKS.cost(),
            Self::MuteThread { .. } => thread_mute_cost(),
            Self::FollowWith(_) => follow_cost().and(options_cost()),
            Self::List(command) => list_cost(&command.change),
            Self::Filter(command) => filter_cost(&command.change),
            Self::SetNote { note, .. } => note_cost(note),
            Self::DismissNotification { .. } => dismissal_cost(),
            Self::Unfollow { .. } => {
                Cost::of_rows(14, 128).and(unlisted_cost()).and(options_cost())
            }
            Self::AnswerRequest { .. } => follow_cost().and(options_cost()),
            Self::Befriend { .. } | Self::Unfriend { .. } | Self::Unblock { .. } => {
                Cost::of_rows(14, 128)
            }
            Self::FollowMany { others, .. } => follows_cost(others.len()),
            Self::Publish(draft) => publication_cost(draft),
            Self::Edit { patch, .. } => edit_cost(patch),
            Self::DeletePost { .. } => deletion_cost(),
            Self::FeatureTag { tag, .. } => user_tag_cost(tag, FEATURED_TAGS_MAX),
            Self::FollowTag { tag, .. } => user_tag_cost(tag, FOLLOWED_TAGS_MAX),
            Self::PostStory { text, .. } => Cost::of_rows(5, text.as_str().len() + 64),
            Self::DeleteStory { .. } | Self::ViewStory { .. } => Cost::of_rows(6, 96),
            // The first sample of a set needs a count of all sets.
            Self::AddSample { .. } | Self::DeleteSample { .. } => {
                Cost::of_rows(6 + SAMPLE_SETS_MAX, 512)
            }
            Self::DeleteUser { .. } => user_deletion_cost(),
            // The additional rows store the progress.
            Self::EraseUser { .. } => erasure_cost().and(Cost::of_rows(2, 64)),
            Self::Account(command) => account_cost(command),
            Self::Media(command @ MediaCommand::Redraft { .. }) => {
                media_cost(command).and(deletion_cost())
            }
            Self::Media(command) => media_cost(command),
            Self::Vote { .. } => vote_cost(),
            Self::Schedule(command) => schedule_cost(command),
            // A block also ends the friendship and, in each direction, the follow or the follow request. Two users
            // never have both in one direction.
            Self::Block { .. } => {
                let ended = unlisted_cost().and(options_cost());
                Cost::of_rows(24, 192).and(ended).and(ended)
            }
            Self::Mute { .. } | Self::Unmute { .. } => Cost::of_rows(24, 192),
            Self::SetFeed { definition, .. } => feed_cost(definition.as_ref()),
            Self::NotInterested { .. } => Cost::of_rows(6, 96),
            Self::If(condition) => {
                let cost = condition.command().cost();
                // The post and the post that it boosts are read twice, and users are looked up by their handles.
                let read = 6 * POST_BYTES_MAX + 2 * USER_BYTES_MAX + 12 * WORK_PER_ROW;
                Cost { work: cost.work + read, ..cost }
            }
            Self::DoDue(due) => due_cost(due.work),
        }
    }
}

/// Cost of a step of due work, including the row of its progress.
fn due_cost(work: DueWork) -> Cost {
    let cost = match work {
        DueWork::RemoveStory { .. } => Cost::of_rows(2 * STORY_VIEWS_REMOVED as usize + 6, 64),
        DueWork::EndMute { .. } => Cost::of_rows(6, 96),
        DueWork::EndPoll { .. } => end_cost(),
        DueWork::Publish { .. } => due_post_cost(),
        DueWork::RemoveMedia { .. } => pictures_cost(1),
        DueWork::NotifyOfEdit { .. } => edit_notices_cost(),
        DueWork::SweepReactions { .. } => {
            let cost = Cost::of_rows(ERASE_ROWS_MAX + 4, 16 * ERASE_ROWS_MAX);
            // Boosts are read, each with its user.
            Cost { work: cost.work + 2 * ERASE_ROWS_MAX * WORK_PER_ROW, ..cost }
        }
        DueWork::SweepVotes { .. } => Cost::of_rows(ERASE_ROWS_MAX + 2, 16 * ERASE_ROWS_MAX),
        DueWork::Relist { .. } => relisting_cost(),
        // The cost is charged to [`Command::EraseUser`].
        DueWork::Erase { .. } => Cost::default(),
        DueWork::ExpireGrant { .. } => Cost::of_rows(GRANT_ROWS, GRANT_BYTES),
    };
    cost.and(Cost::of_rows(2, 64))
}
