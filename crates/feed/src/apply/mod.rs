//! Rules: one function per command. Each checks everything before it changes anything, so a refused command changes no
//! row.

mod account;
mod block;
mod conversation;
mod due;
mod erase;
mod filter;
mod follow;
mod friend;
mod grant;
mod list;
mod marker;
mod media;
mod note;
mod notice;
mod poll;
pub(crate) mod post;
mod reaction;
mod sample;
mod schedule;
mod story;
mod tag;
mod user;

use crate::command::{Command, Outcome, Reply, StampedCommand};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{UserId, UserRef};
use crate::records::Sample;
use crate::refusal::Refusal;

/// Applies one stamped command: changes the facts of `txn`, appends the changes for the views to `effects`, and returns
/// the result. A refused command changes nothing.
///
/// A command with a known idempotency key changes nothing and returns the first result.
///
/// # Panics
/// If the stamp is not greater than the last one, because the log is out of order.
pub fn apply(txn: &mut Txn<'_>, entry: &StampedCommand, effects: &mut Vec<Effect>) -> Reply {
    txn.advance(entry.stamp);
    let Some(idempotency) = &entry.idempotency else {
        return Reply { outcome: run(txn, entry, effects), replayed: false };
    };
    match txn.facts().remembered(idempotency, entry.stamp) {
        Some((content, outcome)) if content == idempotency.content => {
            Reply { outcome, replayed: true }
        }
        Some(_) => Reply { outcome: Err(Refusal::KeyReused), replayed: false },
        None => {
            let outcome = run(txn, entry, effects);
            if outcome.is_ok() {
                txn.remember(idempotency, entry.stamp, outcome);
            }
            Reply { outcome, replayed: false }
        }
    }
}

fn run(txn: &mut Txn<'_>, entry: &StampedCommand, effects: &mut Vec<Effect>) -> Outcome {
    let stamp = entry.stamp;
    match &entry.command {
        Command::Register { handle, name, bio } => user::register(txn, stamp, handle, name, bio),
        Command::EditUser(edit) => user::edit(txn, edit),
        Command::Follow { user, other } => follow::set(txn, stamp, (user, other), true, effects),
        Command::FollowMany { user, others } => follow::many(txn, user, others, effects),
        Command::Unfollow { user, other } => follow::set(txn, stamp, (user, other), false, effects),
        Command::Publish(draft) => post::publish(txn, stamp, (draft, &[]), effects),
        Command::Edit { post, patch } => post::edit(txn, stamp, (*post, patch), effects),
        Command::DeletePost { post } => post::delete(txn, *post, effects),
        Command::Befriend { user, other } => friend::set(txn, user, other, true, effects),
        Command::Unfriend { user, other } => friend::set(txn, user, other, false, effects),
        Command::PostStory { author, text, life } => {
            story::publish(txn, stamp, author, text, *life, effects)
        }
        Command::DeleteStory { story } => story::delete(txn, stamp, *story, effects),
        Command::ViewStory { story, viewer } => story::view(txn, stamp, *story, viewer, effects),
        Command::AddSample { set, label, bits } => {
            let sample = Sample { set: set.clone(), label: label.clone(), bits: **bits };
            sample::add(txn, stamp, &sample, effects)
        }
        Command::DeleteSample { sample } => sample::delete(txn, *sample, effects),
        Command::DeleteUser { user } => erase::delete(txn, user, effects),
        Command::Account(command) => account::apply(txn, stamp, command, effects),
        Command::Media(command) => media::apply(txn, stamp, command, effects),
        Command::Vote { user, post, choices } => poll::vote(txn, stamp, (user, *post), *choices),
        Command::Schedule(command) => schedule::apply(txn, stamp, command),
        Command::Block { user, other } => block::block(txn, user, other, effects),
        Command::Unblock { user, other } => block::unblock(txn, user, other),
        Command::Mute { user, other, mentions, time } => {
            block::mute(txn, stamp, (user, other), *mentions, *time, effects)
        }
        Command::Unmute { user, other } => block::unmute(txn, user, other, effects),
        Command::React { user, post, reaction, on } => {
            reaction::set(txn, stamp, (user, *post), (*reaction, *on), effects)
        }
        Command::ClearNotifications { user } => notice::clear(txn, stamp, user),
        Command::DismissNotification { user, notification } => {
            notice::dismiss(txn, user, *notification)
        }
        Command::SetNote { user, other, note } => note::set(txn, user, other, note),
        Command::AnswerRequest { user, other, accept } => {
            follow::answer(txn, stamp, (user, other), *accept, effects)
        }
        Command::FeatureTag { user, tag, on } => tag::feature(txn, stamp, user, tag, *on),
        Command::Filter(command) => filter::change(txn, stamp, command, effects),
        Command::FollowTag { user, tag, on } => tag::follow(txn, stamp, user, (tag, *on), effects),
        Command::List(command) => list::change(txn, stamp, command),
        Command::SetMarkers(update) => marker::set(txn, stamp, update),
        Command::Conversation(update) => conversation::update(txn, update),
        Command::UnreadConversation { user, first, last } => {
            conversation::mark_unread(txn, user, *first, *last)
        }
        Command::FollowWith(new) => follow::set_with(txn, stamp, new, effects),
        Command::MuteThread { user, post, on } => notice::mute_thread(txn, user, *post, *on),
        Command::DoDue(due) => Ok(due::apply(txn, stamp, *due, effects)),
        Command::EraseUser { user, remains, from } => {
            Ok(erase::erase(txn, *user, (*remains, *from), effects))
        }
    }
}

/// Refuses a relation between two users if one blocks the other. To a blocked user, the blocking user does not exist.
fn refuse_blocked(txn: &Txn<'_>, user: UserId, other: UserId) -> Result<(), Refusal> {
    if txn.facts().blocks(other, user) {
        return Err(Refusal::OtherNotFound);
    }
    if txn.facts().blocks(user, other) { Err(Refusal::Blocked) } else { Ok(()) }
}

/// Resolves two users. Refuses with `same` if they are the same user.
fn resolve_two(
    txn: &Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    same: Refusal,
) -> Result<(UserId, UserId), Refusal> {
    let (user, other) = (resolve(txn, user)?, resolve_other(txn, other)?);
    if user == other { Err(same) } else { Ok((user, other)) }
}

fn resolve(txn: &Txn<'_>, user: &UserRef) -> Result<UserId, Refusal> {
    txn.facts().resolve(user).ok_or(Refusal::UserNotFound)
}

fn resolve_other(txn: &Txn<'_>, other: &UserRef) -> Result<UserId, Refusal> {
    txn.facts().resolve(other).ok_or(Refusal::OtherNotFound)
}
