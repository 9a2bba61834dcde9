//! Deleting a user, and removing the rows of deleted users, a bounded number of rows per command.
//!
//! The node looks for the next rows to remove, and names them in the command. So the writer walks over no rows
//! that are already removed, and no outcome depends on ephemeral rows.

use std::cmp::Reverse;

use crate::accounts::GrantId;
use crate::command::{Done, Outcome};
use crate::cost::{
    DIRECT_ROWS, GRANT_ROWS, LIST_ROWS, MEDIA_ROWS, POLL_ROWS, POST_ROWS_LEAST, POST_ROWS_MAX,
    SCHEDULED_ROWS, TAG_ROWS,
};
use crate::effect::{Effect, Input, PostChange, StoryChange, UserChange};
use crate::facts::{HiddenCount, Txn, VOTE_ROWS};
use crate::ids::ScheduledId;
use crate::ids::{PostId, StoryId, UserId, UserRef};
use crate::limits::{ERASE_ROWS_MAX, ERASING_USERS_MAX, LISTS_MAX};
use crate::list::ListId;
use crate::media::MediaId;
use crate::poll::PollId;
use crate::post::Visibility;
use crate::reaction::Reaction;
use crate::records::Counts;
use crate::refusal::Refusal;
use crate::remains::Remains;
use crate::text::Note;

/// Rows of a story that is deleted.
const STORY_ROWS: usize = 5;
/// Rows of a follow, a request or a friendship: one for each of the two, and the counts of the other user.
const RELATION_ROWS: usize = 3;
/// Rows of a block or mute: one for each of the two, the end of a mute, and the counts of the other user.
const HIDDEN_ROWS: usize = 4;
/// Rows of a reaction: one for the user, one for the post, and the counts of the post.
const REACTION_ROWS: usize = 3;
/// Rows of a note: its text, one for each of the two users, and the counts of its author.
const NOTE_ROWS: usize = 4;
/// Rows of a view.
const VIEW_ROWS: usize = 2;

pub(super) fn delete(txn: &mut Txn<'_>, user: &UserRef, effects: &mut Vec<Effect>) -> Outcome {
    let id = super::resolve(txn, user)?;
    let user = txn.facts().user(id).ok_or(Refusal::UserNotFound)?;
    if txn.facts().totals().users_erasing >= ERASING_USERS_MAX {
        return Err(Refusal::TooManyDeletions);
    }
    txn.delete_user(id, user);
    effects.push(Effect::User { user: id, change: UserChange::Deleted });
    Ok(Done::UserDeleted)
}

pub(super) fn erase(
    txn: &mut Txn<'_>,
    user: UserId,
    (remains, from): (Remains, u64),
    effects: &mut Vec<Effect>,
) -> Done {
    let Some(due) = txn.facts().erasure_of(user) else { return Done::NotDue };
    if txn.facts().erasure(due).is_some_and(|stored| is_before((remains, from), stored)) {
        // Of a node that has not seen how far others are.
        return Done::NotDue;
    }
    txn.put_erasure(due, (remains, from));
    let mut erase = Erase { txn, effects, user };
    match remains {
        Remains::Posts => erase.posts(from),
        Remains::Stories => erase.stories(from),
        Remains::Following | Remains::Followers | Remains::Friends => {
            erase.relations(remains, from);
        }
        Remains::Mentions => {
            for post in erase.items(remains, from, ERASE_ROWS_MAX / (1 + DIRECT_ROWS)) {
                erase.txn.remove_mention(user, post);
            }
        }
        Remains::Views => {
            for story in erase.items(remains, from, ERASE_ROWS_MAX / VIEW_ROWS) {
                erase.txn.remove_view(user, story);
            }
        }
        Remains::Grants => {
            for grant in erase.items(remains, from, ERASE_ROWS_MAX / GRANT_ROWS) {
                erase.txn.remove_grant(GrantId(grant));
            }
        }
        Remains::Blocks | Remains::BlockedBy | Remains::Mutes | Remains::MutedBy => {
            erase.hidden(remains, from);
        }
        Remains::Favourites | Remains::Bookmarks | Remains::Pins => {
            let reaction = match remains {
                Remains::Favourites => Reaction::Favourite,
                Remains::Bookmarks => Reaction::Bookmark,
                _ => Reaction::Pin,
            };
            erase.txn.erase_reactions(user, reaction, from, ERASE_ROWS_MAX / REACTION_ROWS);
        }
        Remains::Notifications => {
            erase.txn.erase_notifications(user, from, ERASE_ROWS_MAX / 2);
        }
        Remains::FollowRequests | Remains::Requested => {
            erase.pairs(remains, (from, RELATION_ROWS + 1), |txn, (asking, asked)| {
                txn.put_request(asking, asked, false);
                txn.forget_follow_options(asking, asked);
            });
        }
        Remains::Notes | Remains::NotedBy => {
            erase.pairs(remains, (from, NOTE_ROWS), |txn, (author, about)| {
                txn.put_note(author, about, &Note::default());
            });
        }
        Remains::Lists => erase.txn.erase_lists(user, ListId(from), ERASE_ROWS_MAX),
        Remains::Media => {
            for media in erase.items(remains, from, ERASE_ROWS_MAX / MEDIA_ROWS) {
                erase.txn.remove_media(MediaId(media));
            }
        }
        Remains::Votes => {
            for poll in erase.items(remains, from, ERASE_ROWS_MAX / (VOTE_ROWS + 1)) {
                erase.txn.erase_vote(PollId(poll), user);
            }
        }
        Remains::Scheduled => {
            erase.txn.erase_scheduled(user, ScheduledId(from), ERASE_ROWS_MAX / SCHEDULED_ROWS);
        }
        Remains::Nothing => erase.txn.finish_erasing(user, due),
    }
    Done::DueDone
}

fn is_before(one: (Remains, u64), other: (Remains, u64)) -> bool {
    let place = |(remains, from): (Remains, u64)| (Reverse(remains.kinds_after()), from);
    place(one) < place(other)
}

struct Erase<'a, 'b> {
    txn: &'a mut Txn<'b>,
    effects: &'a mut Vec<Effect>,
    user: UserId,
}

impl Erase<'_, '_> {
    fn items(&self, remains: Remains, from: u64, limit: usize) -> Vec<u64> {
        self.txn.facts().remains(self.user, remains, from, limit)
    }

    /// Requests and notes: removes each, of which one user is the deleted one.
    fn pairs(
        &mut self,
        remains: Remains,
        (from, rows): (u64, usize),
        remove: impl Fn(&mut Txn<'_>, (UserId, UserId)),
    ) {
        let user = self.user;
        for other in self.items(remains, from, ERASE_ROWS_MAX / rows) {
            let Ok(other) = u32::try_from(other).map(UserId) else { continue };
            let is_of_user = matches!(remains, Remains::Requested | Remains::Notes);
            remove(self.txn, if is_of_user { (user, other) } else { (other, user) });
        }
    }

    fn posts(&mut self, from: u64) {
        let mut rows_left = ERASE_ROWS_MAX;
        for post in self.items(Remains::Posts, from, ERASE_ROWS_MAX / 3) {
            if rows_left < POST_ROWS_MAX {
                return;
            }
            let id = PostId(post);
            let Some(post) = self.txn.facts().stored_post(id) else {
                unreachable!("an author has rows of posts that are stored")
            };
            let tags = TAG_ROWS * post.tags().len();
            let media = MEDIA_ROWS * post.media.len();
            let poll = POLL_ROWS * post.poll.iter().len();
            let is_direct = post.visibility == Visibility::Direct;
            let direct = if is_direct { DIRECT_ROWS * (1 + post.mentions.len()) } else { 0 };
            // Mentions that edits added, of which a direct post has none.
            let added = if post.edited.is_some() && !is_direct { post.mentions.len() } else { 0 };
            let mentions = post.mentions.len() + added;
            rows_left -= POST_ROWS_LEAST + mentions + direct + tags + media + poll;
            self.txn.remove_post(id, &post);
            let (author, change) = (post.author, PostChange::Deleted);
            let deleted = |user| Effect::Mention { post: id, author, user, change };
            self.effects.extend(post.mentioned_others().map(deleted));
        }
    }

    fn stories(&mut self, from: u64) {
        for story in self.items(Remains::Stories, from, ERASE_ROWS_MAX / STORY_ROWS) {
            let id = StoryId(story);
            let Some(story) = self.txn.facts().stored_story(id) else {
                unreachable!("an author has rows of stories that are stored")
            };
            self.txn.hide_story(id, &story);
            let (author, change) = (self.user, StoryChange::Gone);
            self.effects.push(Effect::Story { story: id, author, change });
        }
    }

    /// Blocks and mutes.
    fn hidden(&mut self, remains: Remains, from: u64) {
        let user = self.user;
        for other in self.items(remains, from, ERASE_ROWS_MAX / HIDDEN_ROWS) {
            let Ok(other) = u32::try_from(other).map(UserId) else { continue };
            let of_user = matches!(remains, Remains::Blocks | Remains::Mutes);
            let (one, two) = if of_user { (user, other) } else { (other, user) };
            let count: HiddenCount = match remains {
                Remains::Blocks | Remains::BlockedBy => {
                    self.txn.put_block(one, two, false);
                    |counts| &mut counts.blocks
                }
                _ => {
                    if let Some(mute) = self.txn.facts().mute(one, two) {
                        self.txn.remove_mute(one, two, mute);
                    }
                    |counts| &mut counts.mutes
                }
            };
            self.txn.count_hidden(one, false, count);
        }
    }

    fn relations(&mut self, remains: Remains, from: u64) {
        let mut rows_left = ERASE_ROWS_MAX;
        for other in self.items(remains, from, ERASE_ROWS_MAX / RELATION_ROWS) {
            // Who unfollows the user removes them from all lists, and has no options of the follow.
            if rows_left < RELATION_ROWS + 1 + LIST_ROWS * LISTS_MAX {
                return;
            }
            let Ok(other) = u32::try_from(other).map(UserId) else { continue };
            rows_left -= RELATION_ROWS + 1 + LIST_ROWS * self.relation(remains, other);
        }
    }

    /// The count first: a reader of counts subtracts what has a row. Returns the number of lists of the other user that
    /// lose the deleted one.
    fn relation(&mut self, remains: Remains, other: UserId) -> usize {
        let user = self.user;
        let count: fn(&mut Counts) -> &mut u32 = match remains {
            Remains::Following => |counts| &mut counts.followers,
            Remains::Followers => |counts| &mut counts.following,
            _ => |counts| &mut counts.friends,
        };
        // The counts of a deleted user are not shown, and may be removed already.
        if !self.txn.facts().is_deleted(other) {
            self.txn.count(other, |counts| super::step(count(counts), false));
        }
        match remains {
            Remains::Following => self.txn.put_follow(user, other, false),
            Remains::Followers => {
                self.txn.put_follow(other, user, false);
                self.txn.forget_follow_options(other, user);
                return self.txn.leave_lists(other, user);
            }
            _ => {
                self.txn.put_friends(user, other, false);
                self.effects.push(Effect::Input { user: other, input: Input::Friends });
            }
        }
        0
    }
}
