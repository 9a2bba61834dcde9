//! Upper bound of the cost of each command; see [`rows::Cost`].

mod choices;
mod drafts;
mod polls;

use rows::{Cost, WORK_PER_ROW};

use crate::accounts::{AccountCommand, AppRequest, RedirectUri, Website};
use crate::command::{Command, Request};
use crate::due::DueWork;
use crate::filters::FilterChange;
use crate::limits::{
    APP_GRANTS_MAX, APP_NAME_BYTES_MAX, BIO_BYTES_MAX, DESCRIPTION_BYTES_MAX, EARLIER_BOOSTS_MAX,
    EMAIL_BYTES_MAX, ERASE_ROWS_MAX, ERASING_USERS_MAX, FEATURED_TAGS_MAX, FIELD_BYTES_MAX,
    FILTERED_POSTS_MAX, FILTERS_BYTES_MAX, FOLLOW_OPTIONS_BYTES_MAX, FOLLOWED_TAGS_MAX,
    HANDLE_CHARS_MAX, INVITES_MAX, LIST_CHANGED_MAX, LIST_MEMBERS_MAX, LIST_TITLE_BYTES_MAX,
    LISTS_MAX, NAME_BYTES_MAX, NOTE_BYTES_MAX, PASSWORD_HASH_BYTES_MAX, PINS_MAX, POST_BYTES_MAX,
    POST_MEDIA_MAX, POST_MENTIONS_MAX, POST_TAGS_MAX, PROFILE_FIELDS_MAX, REDIRECT_URIS_MAX,
    RELISTED_POSTS_MAX, SAMPLE_SETS_MAX, STORY_VIEWS_REMOVED, TAG_BYTES_MAX, UNUSED_APPS_REMOVED,
    URI_BYTES_MAX, USER_GRANTS_MAX, USER_TOKENS_MAX,
};
use crate::lists::ListChange;
use crate::media::MediaCommand;
use crate::relation::RELATIONS;
use crate::row_counts::{DIRECT_ROWS, GRANT_ROWS, LIST_ROWS, LISTED_ROWS, MEDIA_ROWS, POLL_ROWS};
use crate::tags::Tag;
use crate::text::Note;
use crate::whole::{CONVERSATION_MARKS, WHOLE_TABLES};
use choices::{dismissal_cost, edit_notices_cost, follow_cost, options_cost, thread_mute_cost};
use drafts::tags_cost;

/// Rows for an idempotency key: its own, two old ones that are removed, and one lookup.
const IDEMPOTENCY_ROWS: usize = 4;
/// Most bytes of the row of a boost.
const BOOST_BYTES: usize = 64 + 5 * EARLIER_BOOSTS_MAX;
/// Key bytes of the rows of a direct post for one user.
pub(crate) const DIRECT_BYTES: usize = 40;
/// Key bytes of the rows of a hashtag of a post, without the hashtag.
pub(crate) const TAG_ROW_BYTES: usize = 32;
/// Bytes of the rows of a picture.
const MEDIA_BYTES: usize = DESCRIPTION_BYTES_MAX + 1_024;
/// The last rows of a deleted user are removed by one command.
const _: () =
    assert!(FEATURED_TAGS_MAX + FOLLOWED_TAGS_MAX + WHOLE_TABLES.len() + 6 <= ERASE_ROWS_MAX);
/// Key bytes of a row of a list or list member.
const LIST_ROW_BYTES: usize = 16;
/// Work of tokenizing one byte of text.
pub(crate) const TEXT_WORK: usize = 32;
/// Work of looking up a handle and writing a mention, which is more than for other rows.
pub(crate) const MENTION_WORK: usize = 4 * WORK_PER_ROW;

/// Most bytes of the row of a user.
const USER_BYTES_MAX: usize = HANDLE_CHARS_MAX
    + NAME_BYTES_MAX
    + BIO_BYTES_MAX
    + 2 * PROFILE_FIELDS_MAX * (FIELD_BYTES_MAX + 2)
    + 160;

/// Bytes of the rows of a grant.
const GRANT_BYTES: usize = 512;
/// Most grants of a user.
const GRANTS: usize = USER_GRANTS_MAX + USER_TOKENS_MAX;
/// Rows of a new grant and of the grant it replaces, and reads of the owner's grants and their list.
const GRANTING_ROWS: usize = 2 * GRANT_ROWS + 2 * GRANTS;

impl Request {
    /// Upper bound of the request's cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let idempotency = match self.idempotency {
            // Day, digests and outcome.
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
            Self::Publish(draft) => drafts::publication_cost(draft),
            Self::Edit { patch, .. } => drafts::edit_cost(patch),
            Self::DeletePost { .. } => deletion_cost(),
            Self::FeatureTag { tag, .. } => user_tag_cost(tag, FEATURED_TAGS_MAX),
            Self::FollowTag { tag, .. } => user_tag_cost(tag, FOLLOWED_TAGS_MAX),
            Self::PostStory { text, .. } => Cost::of_rows(5, text.as_str().len() + 64),
            Self::DeleteStory { .. } | Self::ViewStory { .. } => Cost::of_rows(6, 96),
            // A new set requires counting the sets.
            Self::AddSample { .. } | Self::DeleteSample { .. } => {
                Cost::of_rows(6 + SAMPLE_SETS_MAX, 512)
            }
            Self::DeleteUser { .. } => user_deletion_cost(),
            // The additional rows store the progress.
            Self::EraseUser { .. } => erasure_cost().and(Cost::of_rows(2, 64)),
            Self::Account(command) => account_cost(command),
            Self::Media(command) => media_cost(command),
            Self::Vote { .. } => polls::vote_cost(),
            Self::Schedule(command) => drafts::schedule_cost(command),
            // A block also ends follows, requests and the friendship.
            Self::Block { .. } => {
                let ended = unlisted_cost().and(options_cost());
                Cost::of_rows(24, 192).and(ended).and(ended)
            }
            Self::Mute { .. } | Self::Unmute { .. } => Cost::of_rows(24, 192),
            Self::DoDue(due) => due_cost(due.work),
        }
    }
}

/// Cost of a step of due work, including the row of its progress.
fn due_cost(work: DueWork) -> Cost {
    let cost = match work {
        DueWork::RemoveStory { .. } => Cost::of_rows(2 * STORY_VIEWS_REMOVED as usize + 6, 64),
        DueWork::EndMute { .. } => Cost::of_rows(6, 96),
        DueWork::EndPoll { .. } => polls::end_cost(),
        DueWork::Publish { .. } => drafts::due_post_cost(),
        DueWork::RemoveMedia { .. } => pictures_cost(1),
        DueWork::NotifyOfEdit { .. } => edit_notices_cost(),
        DueWork::SweepReactions { .. } => {
            let cost = Cost::of_rows(ERASE_ROWS_MAX + 4, 16 * ERASE_ROWS_MAX);
            // Boosts are read, each with its user.
            Cost { work: cost.work + 2 * ERASE_ROWS_MAX * WORK_PER_ROW, ..cost }
        }
        DueWork::SweepVotes { .. } => Cost::of_rows(ERASE_ROWS_MAX + 2, 16 * ERASE_ROWS_MAX),
        DueWork::Relist { .. } => relisting_cost(),
        // Charged to [`Command::EraseUser`].
        DueWork::Erase { .. } => Cost::default(),
        DueWork::ExpireGrant { .. } => Cost::of_rows(GRANT_ROWS, GRANT_BYTES),
    };
    cost.and(Cost::of_rows(2, 64))
}

/// Cost of removing some rows of a deleted user.
fn erasure_cost() -> Cost {
    // Each follower may have a row of options, which is read and written.
    let options = ERASE_ROWS_MAX / 4 * FOLLOW_OPTIONS_BYTES_MAX;
    let cost = Cost::of_rows(ERASE_ROWS_MAX, (TAG_BYTES_MAX + 16) * ERASE_ROWS_MAX + options);
    // The reads include memberships in the lists of followers.
    let pictures = ERASE_ROWS_MAX / MEDIA_ROWS * 3 * MEDIA_BYTES;
    let read = ERASE_ROWS_MAX / 3 * (2 * POST_BYTES_MAX + 2 * WORK_PER_ROW) + pictures + options;
    Cost { work: cost.work + read, ..cost }
}

/// Cost of removing some posts of an account from lists, including reading the posts.
fn relisting_cost() -> Cost {
    let rows = RELISTED_POSTS_MAX * LISTED_ROWS + 1;
    let cost = Cost::of_rows(rows, 16 * rows);
    Cost { work: cost.work + RELISTED_POSTS_MAX * (POST_BYTES_MAX + WORK_PER_ROW), ..cost }
}

/// Cost of deleting a post.
fn deletion_cost() -> Cost {
    let users = POST_MENTIONS_MAX + 1;
    // A post that is not direct has no direct rows, but may have a notification for each mention added by an edit.
    let rows = 15 + POLL_ROWS + LISTED_ROWS + users + DIRECT_ROWS * users;
    let cost = Cost::of_rows(rows, 256 + 10 * POST_MEDIA_MAX + DIRECT_BYTES * users);
    let cost = cost.and(later_boosts_cost());
    cost.and(tags_cost(POST_TAGS_MAX, POST_BYTES_MAX)).and(pictures_cost(POST_MEDIA_MAX))
}

/// Cost of adding or removing one of at most `tags_max` hashtags of a user.
fn user_tag_cost(tag: &Tag, tags_max: usize) -> Cost {
    let cost = Cost::of_rows(2, tag.as_str().len() + 64);
    // All current hashtags are read.
    Cost { work: cost.work + 2 * tags_max * WORK_PER_ROW, ..cost }
}

fn list_cost(change: &ListChange) -> Cost {
    // The row of the list.
    let list = Cost::of_rows(2, LIST_TITLE_BYTES_MAX + LIST_ROW_BYTES);
    let look_up = |rows: usize| Cost { work: rows * WORK_PER_ROW, ..list };
    match change {
        ListChange::Create(_) => list.and(look_up(LISTS_MAX)),
        ListChange::Edit { .. } => list.and(look_up(2)),
        ListChange::Delete { .. } => {
            let members = LIST_ROWS * LIST_MEMBERS_MAX;
            list.and(Cost::of_rows(members, members * LIST_ROW_BYTES))
        }
        ListChange::Add { users, .. } => {
            let rows = LIST_ROWS * users.len().min(LIST_CHANGED_MAX);
            // All members are read.
            list.and(Cost::of_rows(rows, rows * LIST_ROW_BYTES))
                .and(look_up(LIST_MEMBERS_MAX + rows))
        }
        ListChange::Remove { users, .. } => {
            let rows = LIST_ROWS * users.len().min(LIST_CHANGED_MAX);
            list.and(Cost::of_rows(rows, rows * LIST_ROW_BYTES))
        }
    }
}

/// Cost of changing filters: all filters of the user are read and written.
fn filter_cost(change: &FilterChange) -> Cost {
    let cost = Cost::of_rows(2, FILTERS_BYTES_MAX);
    let looked_up = match change {
        // Lookups of the new post, its visibility, and the existence of the other posts.
        FilterChange::AddPost { .. } => FILTERED_POSTS_MAX + 6,
        _ => 0,
    };
    let read = looked_up * (2 * POST_BYTES_MAX + WORK_PER_ROW);
    Cost { work: cost.work + 3 * FILTERS_BYTES_MAX + read, ..cost }
}

/// Cost of removing a user from all lists of a former follower.
fn unlisted_cost() -> Cost {
    let rows = LIST_ROWS * LISTS_MAX;
    Cost::of_rows(rows, rows * LIST_ROW_BYTES)
}

/// Cost of following `others` users, or requesting to.
fn follows_cost(others: usize) -> Cost {
    // A request has two rows more than a follow. A follow of a user who was locked before replaces a request of four
    // rows.
    let cost = Cost::of_rows(7 * others + 3, 64 + 64 * others);
    // Lookups of blocks in both directions, locks and requests.
    Cost { work: cost.work + 6 * others * WORK_PER_ROW, ..cost }
}

fn reaction_cost() -> Cost {
    // A boost is also a post.
    let cost = Cost::of_rows(22, 336 + 10 * EARLIER_BOOSTS_MAX).and(later_boosts_cost());
    // Reads of the post, a boost of it, its visibility, and the last boosts, each with its user.
    let rows = 12 + PINS_MAX + 4 * EARLIER_BOOSTS_MAX;
    let read = 6 * POST_BYTES_MAX + rows * WORK_PER_ROW;
    Cost { work: cost.work + read, ..cost }
}

/// Cost of the later boosts that are shown again when a boost ends.
fn later_boosts_cost() -> Cost {
    let bytes = BOOST_BYTES + 16;
    let cost = Cost::of_rows(2 * EARLIER_BOOSTS_MAX, bytes * EARLIER_BOOSTS_MAX);
    // All of them are read, including boosts of deleted users between them.
    let read =
        (EARLIER_BOOSTS_MAX + 2 * ERASING_USERS_MAX as usize) * (BOOST_BYTES + 2 * WORK_PER_ROW);
    Cost { work: cost.work + read, ..cost }
}

fn user_deletion_cost() -> Cost {
    let cost = Cost::of_rows(7, HANDLE_CHARS_MAX + 96);
    // Lookups of relations to each user being erased and to this user, each twice.
    let related: usize = RELATIONS.into_iter().map(|relation| relation.counts().count()).sum();
    let looked_up = 2 * (1 + related) * (ERASING_USERS_MAX as usize + 1);
    Cost { work: cost.work + looked_up * WORK_PER_ROW + USER_BYTES_MAX, ..cost }
}

fn note_cost(note: &Note) -> Cost {
    let cost = Cost::of_rows(10, note.as_str().len() + 128);
    // The old note is read.
    Cost { work: cost.work + NOTE_BYTES_MAX, ..cost }
}

fn media_cost(command: &MediaCommand) -> Cost {
    let user = Cost::of_rows(1, USER_BYTES_MAX);
    match command {
        // The second is a replaced profile picture.
        MediaCommand::Add(_) => pictures_cost(2).and(user),
        MediaCommand::ClearProfile { .. } => pictures_cost(1).and(user),
        MediaCommand::Change { .. } | MediaCommand::Delete { .. } => pictures_cost(1),
        MediaCommand::Redraft { .. } => deletion_cost().and(pictures_cost(POST_MEDIA_MAX)),
    }
}

/// Cost of adding, changing or removing `pictures` pictures, each of which is read twice.
pub(crate) fn pictures_cost(pictures: usize) -> Cost {
    let cost = Cost::of_rows(MEDIA_ROWS * pictures, MEDIA_BYTES * pictures);
    let read = pictures * (3 * MEDIA_BYTES + 3 * WORK_PER_ROW);
    Cost { work: cost.work + read, ..cost }
}

fn account_cost(command: &AccountCommand) -> Cost {
    const ACCOUNT_BYTES: usize = 2 * EMAIL_BYTES_MAX + PASSWORD_HASH_BYTES_MAX + 64;
    match command {
        AccountCommand::SignUp { .. } => {
            Cost::of_rows(8, ACCOUNT_BYTES + 3 * HANDLE_CHARS_MAX + 128)
        }
        AccountCommand::Open { .. } | AccountCommand::SetRole { .. } => {
            Cost::of_rows(5, ACCOUNT_BYTES)
        }
        AccountCommand::SetPassword { .. } | AccountCommand::SetState { .. } => {
            let rows = GRANTS * GRANT_ROWS + 4;
            Cost::of_rows(rows, GRANTS * GRANT_BYTES + ACCOUNT_BYTES)
        }
        AccountCommand::CreateInvite { .. } => {
            Cost::of_rows(2 * INVITES_MAX + 2, (2 * INVITES_MAX + 2) * 64)
        }
        AccountCommand::RegisterApp(app) => {
            let removed = UNUSED_APPS_REMOVED * (APP_GRANTS_MAX * GRANT_ROWS + 4);
            Cost::of_rows(removed + 3, removed * 64 + app_bytes(app))
        }
        AccountCommand::LogIn { .. }
        | AccountCommand::Authorize { .. }
        | AccountCommand::Exchange { .. }
        | AccountCommand::GrantApp { .. }
        | AccountCommand::GrantUser { .. } => {
            // All grants of the user are read.
            let read = ACCOUNT_BYTES + APP_BYTES_MAX + GRANTS * GRANT_BYTES;
            let cost = Cost::of_rows(GRANTING_ROWS, 2 * GRANT_BYTES);
            Cost { work: cost.work + read, ..cost }
        }
        // Expired tokens are removed, too.
        AccountCommand::Mint { .. } => {
            let rows = GRANTING_ROWS + USER_TOKENS_MAX * GRANT_ROWS;
            let cost = Cost::of_rows(rows, (2 + USER_TOKENS_MAX) * GRANT_BYTES);
            Cost { work: cost.work + ACCOUNT_BYTES + GRANTS * GRANT_BYTES, ..cost }
        }
        AccountCommand::Revoke { .. } => Cost::of_rows(GRANT_ROWS, GRANT_BYTES),
    }
}

/// Most bytes of the row of an app.
const APP_BYTES_MAX: usize = APP_NAME_BYTES_MAX + (REDIRECT_URIS_MAX + 1) * URI_BYTES_MAX + 128;

fn app_bytes(app: &AppRequest) -> usize {
    let website = app.website.as_ref().map_or(0, |website: &Website| website.as_str().len());
    let redirects: usize =
        app.redirects.iter().map(|uri: &RedirectUri| uri.as_str().len() + 4).sum();
    app.name.as_str().len() + website + redirects + 128
}
