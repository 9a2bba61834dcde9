//! Rules: one function per command. Each checks everything before it changes anything, so a refused command changes no
//! row. The results of commands with an idempotency key are stored here.

use rows::{NameTable, Rows, Stamp, Value, decode, encode};

use crate::accounts::rules as accounts;
use crate::blocks::rules as blocks;
use crate::command::{Command, Idempotency, StampedCommand};
use crate::conditions;
use crate::conversations::rules as conversations;
use crate::done::{Outcome, Reply};
use crate::due::rules as due;
use crate::effect::Effect;
use crate::erase::rules as erase;
use crate::facts::{Facts, Txn};
use crate::feeds;
use crate::filters::rules as filters;
use crate::follows::friends;
use crate::follows::rules as follows;
use crate::interest;
use crate::limits;
use crate::lists::rules as lists;
use crate::markers::rules as markers;
use crate::media::rules as media;
use crate::notes;
use crate::notifications::rules as notifications;
use crate::polls::rules as polls;
use crate::posts::rules as posts;
use crate::reactions::rules as reactions;
use crate::refusal::Refusal;
use crate::samples::Sample;
use crate::samples::rules as samples;
use crate::schedule::rules as schedule;
use crate::stories::rules as stories;
use crate::tags::rules as tags;
use crate::users::rules as users;

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
        let outcome = run(txn, entry.stamp, &entry.command, effects);
        return Reply { outcome, replayed: false };
    };
    match txn.facts().remembered(idempotency, entry.stamp) {
        Some((content, outcome)) if content == idempotency.content => {
            Reply { outcome, replayed: true }
        }
        Some(_) => Reply { outcome: Err(Refusal::KeyReused), replayed: false },
        None => {
            let outcome = run(txn, entry.stamp, &entry.command, effects);
            if outcome.is_ok() {
                txn.remember(idempotency, entry.stamp, outcome);
            }
            Reply { outcome, replayed: false }
        }
    }
}

fn run(txn: &mut Txn<'_>, stamp: Stamp, command: &Command, effects: &mut Vec<Effect>) -> Outcome {
    match command {
        Command::Register { handle, name, bio } => {
            users::register(txn, stamp, handle, (name, bio), effects)
        }
        Command::EditUser(edit) => users::edit(txn, edit, effects),
        Command::Follow { user, other } => follows::set(txn, stamp, (user, other), true, effects),
        Command::FollowMany { user, others } => follows::many(txn, user, others, effects),
        Command::Unfollow { user, other } => {
            follows::set(txn, stamp, (user, other), false, effects)
        }
        Command::Publish(draft) => posts::publish(txn, stamp, (draft, &[]), effects),
        Command::Edit { post, patch } => posts::edit(txn, stamp, (*post, patch), effects),
        Command::DeletePost { post } => posts::delete(txn, *post, effects),
        Command::Befriend { user, other } => friends::set(txn, user, other, true, effects),
        Command::Unfriend { user, other } => friends::set(txn, user, other, false, effects),
        Command::PostStory { author, text, life } => {
            stories::publish(txn, stamp, author, text, *life, effects)
        }
        Command::DeleteStory { story } => stories::delete(txn, stamp, *story, effects),
        Command::ViewStory { story, viewer } => stories::view(txn, stamp, *story, viewer, effects),
        Command::AddSample { set, label, bits } => {
            let sample = Sample { set: set.clone(), label: label.clone(), bits: **bits };
            samples::add(txn, stamp, &sample, effects)
        }
        Command::DeleteSample { sample } => samples::delete(txn, *sample, effects),
        Command::DeleteUser { user } => erase::delete(txn, user, effects),
        Command::Account(command) => accounts::apply(txn, stamp, command, effects),
        Command::Media(command) => media::apply(txn, stamp, command, effects),
        Command::Vote { user, post, choices } => polls::vote(txn, stamp, (user, *post), *choices),
        Command::Schedule(command) => schedule::apply(txn, stamp, command),
        Command::Block { user, other } => blocks::block(txn, user, other, effects),
        Command::Unblock { user, other } => blocks::unblock(txn, user, other, effects),
        Command::Mute { user, other, mentions, time } => {
            blocks::mute(txn, stamp, (user, other), *mentions, *time, effects)
        }
        Command::Unmute { user, other } => blocks::unmute(txn, user, other, effects),
        Command::React { user, post, reaction, on } => {
            reactions::set(txn, stamp, (user, *post), (*reaction, *on), effects)
        }
        Command::ClearNotifications { user } => notifications::clear(txn, stamp, user),
        Command::DismissNotification { user, notification } => {
            notifications::dismiss(txn, user, *notification)
        }
        Command::SetNote { user, other, note } => notes::set(txn, user, other, note),
        Command::AnswerRequest { user, other, accept } => {
            follows::answer(txn, stamp, (user, other), *accept, effects)
        }
        Command::FeatureTag { user, tag, on } => tags::feature(txn, stamp, user, tag, *on),
        Command::Filter(command) => filters::change(txn, stamp, command, effects),
        Command::FollowTag { user, tag, on } => tags::follow(txn, stamp, user, (tag, *on), effects),
        Command::List(command) => lists::change(txn, stamp, command),
        Command::SetMarkers(update) => markers::set(txn, stamp, update),
        Command::Conversation(update) => conversations::update(txn, update),
        Command::UnreadConversation { user, first, last } => {
            conversations::mark_unread(txn, user, *first, *last)
        }
        Command::FollowWith(new) => follows::set_with(txn, stamp, new, effects),
        Command::MuteThread { user, post, on } => notifications::mute_thread(txn, user, *post, *on),
        Command::NotInterested { user, other, on } => interest::set(txn, user, other, *on, effects),
        Command::SetFeed { name, definition } => feeds::set(txn, name, definition.as_ref()),
        Command::If(condition) => {
            conditions::check(txn, stamp, condition)?;
            run(txn, stamp, &condition.command(), effects)
        }
        Command::DoDue(due) => Ok(due::apply(txn, stamp, *due, effects)),
        Command::EraseUser { user, phase, from } => {
            Ok(erase::erase(txn, *user, (*phase, *from), effects))
        }
    }
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Content digest and result of the command with this key, if it was applied within the days that keys are kept.
    #[must_use]
    pub fn remembered(
        &self,
        idempotency: &Idempotency,
        stamp: Stamp,
    ) -> Option<([u8; 8], Outcome)> {
        let today = stamp.unix_day();
        let today = today + u32::from(rows::has_bug("forget-yesterday"));
        (today.saturating_sub(limits::IDEMPOTENCY_DAYS)..=today).rev().find_map(|day| {
            let key = idempotency_key(day, &idempotency.key);
            self.rows.name(NameTable::Idempotency, &key).map(|row| decode(&row))
        })
    }
}

impl Txn<'_> {
    /// Stores the result of a command with a key, and removes up to two expired keys, so that the table stays bounded.
    pub fn remember(&mut self, idempotency: &Idempotency, stamp: Stamp, outcome: Outcome) {
        let key = idempotency_key(stamp.unix_day(), &idempotency.key);
        let row = encode(&(idempotency.content, outcome));
        self.rows.put_name(NameTable::Idempotency, &key, Some(row));
        let keep_from = stamp.unix_day().saturating_sub(limits::IDEMPOTENCY_DAYS);
        for _ in 0..2 {
            if self.rows.totals().idempotency_day >= keep_from {
                return;
            }
            let first = self.rows.first_name(NameTable::Idempotency, &[]);
            match first.filter(|key| key.as_slice() < keep_from.to_be_bytes().as_slice()) {
                Some(key) => self.rows.put_name(NameTable::Idempotency, &key, None),
                None => self.total(|totals| totals.idempotency_day = keep_from),
            }
        }
    }
}

fn idempotency_key(day: u32, key: &[u8; 16]) -> Value {
    let mut bytes = Value::from_slice(&day.to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}
