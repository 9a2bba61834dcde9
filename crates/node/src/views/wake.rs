//! Waking the watchers of those who follow an author: what would cost the writer in proportion to the watchers.
//!
//! One thread takes the effects from a queue. It asks the timelines in memory in whose home a post is. If it lags too far,
//! all watchers are woken and read again.
//!
//! A watcher misses nothing: a post that is published before the watcher is indexed for its author is found by the read
//! of home that follows, and one that is published after finds the watcher. A change of a post is in the effects after
//! the list of posts has it, so a reader who is notified of it finds it applied.

use std::sync::atomic::Ordering;

use feed::{Effect, HomeUsers, Listed, UserId};

use super::Views;
use super::watchers::{AT_ONCE, Change, Table};
use crate::sync::MutexGuard;

/// Those whom a call of [`Views::wake`] has woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// There were no effects.
    Nobody,
    /// Those whom some effects concern.
    Some,
    /// All, because effects were lost.
    All,
}

impl Views {
    /// Wakes the watchers of the users whom effects concern by name, and hands those that may concern many to
    /// [`Views::wake`]. Writer only, when everything else has the effects.
    pub(super) fn publish_to_watchers(&self, effects: &[Effect]) {
        for some in effects.chunks(AT_ONCE) {
            let Some(mut table) = self.watchers.for_writer() else { return };
            some.iter().for_each(|effect| wake_named(&mut table, effect));
            MutexGuard::unlock_fair(table);
            self.effects.publish(some.iter().filter(|effect| concerns_many(effect)));
        }
    }

    /// Wakes the watchers that the next published effects concern.
    pub(crate) fn wake(&self) -> Woken {
        match self.effects.take() {
            Some(piece) if piece.is_empty() => Woken::Nobody,
            Some(piece) => {
                piece.iter().for_each(|effect| self.wake_for(effect));
                Woken::Some
            }
            None => {
                self.wake_overflows.fetch_add(1, Ordering::Relaxed);
                self.watchers.all_missed(true);
                Woken::All
            }
        }
    }

    fn wake_for(&self, effect: &Effect) {
        match effect {
            Effect::Posted { author, listed, users, .. }
            | Effect::BoostShown { author, listed, users, .. } => {
                self.wake_readers(*author, (*listed, users.as_ref()), None);
            }
            // Who is mentioned in a direct post is notified of its changes as such. Whether an earlier boost hides one
            // is not known any more.
            Effect::PostDeleted { post, author, listed } => {
                self.wake_readers(*author, (*listed, None), Some(Change::Deleted(*post)));
            }
            Effect::PostEdited { post, author, listed } => {
                self.wake_readers(*author, (*listed, None), Some(Change::Edited(*post)));
            }
            Effect::StoryPosted { author, .. } | Effect::StoryGone { author, .. } => {
                self.watchers.notify_friends(*author);
            }
            Effect::UserDeleted { user } | Effect::UserHidden { user, hidden: true } => {
                self.watchers.readers_of(*user, |readers| {
                    if let Some(table) = self.watchers.any() {
                        readers.iter().for_each(|reader| table.changed(*reader, Change::Missed));
                    }
                });
                self.watchers.notify_friends(*user);
            }
            // Whose home has posts of the past again is not known, and nothing is new there.
            Effect::UserHidden { hidden: false, .. } => self.watchers.all_missed(false),
            // Known to the writer whom they concern.
            _ => {}
        }
    }

    /// Wakes the watchers of those who have a post at home, with a change of it if there is one.
    fn wake_readers(
        &self,
        author: UserId,
        (listed, users): (Listed, Option<&HomeUsers>),
        change: Option<Change>,
    ) {
        let wake = |table: &Table, user, shows: Option<bool>| match (change, shows) {
            (_, Some(false)) => {}
            (None, _) => table.notify(user),
            (Some(change), Some(true)) => table.changed(user, change),
            (Some(_), None) => table.missed(user),
        };
        self.watchers.readers_of(author, |readers| {
            let timelines = self.timelines.look();
            let shows = |user: &UserId| {
                let timeline = timelines.get(user)?;
                let is_change = change.is_some() && listed.is_boost();
                Some(timeline.shows(author, listed, || users, is_change))
            };
            let found: Vec<_> = readers.iter().map(|user| (*user, shows(user))).collect();
            drop(timelines);
            if let Some(table) = self.watchers.any() {
                found.into_iter().for_each(|(user, shows)| wake(&table, user, shows));
            }
        });
    }
}

fn wake_named(table: &mut Table, effect: &Effect) {
    match *effect {
        Effect::Mentioned { user, .. } => table.mentioned(user),
        Effect::Notified { user } => table.notified(user),
        Effect::MentionChanged { post, author, user, deleted } => {
            let change = match deleted {
                true => Change::MentionDeleted(post, author),
                false => Change::Edited(post),
            };
            table.changed(user, change);
        }
        Effect::FiltersChanged { user } => table.changed(user, Change::Filters),
        Effect::FollowingChanged { user, other, follows } => {
            let change = if follows { Change::Followed } else { Change::Unfollowed };
            table.changed(user, Change::Missed);
            table.changed(user, change(other));
        }
        Effect::FollowedMany { user }
        | Effect::MutesChanged { user }
        | Effect::FollowedTagsChanged { user } => table.changed(user, Change::Missed),
        Effect::FriendsChanged { user, other, friends } => {
            table.friends_changed(user, other, friends);
        }
        // The watchers of `other` get the end of a follow or friendship, and nothing else that would give the block
        // away, or wake them each time.
        Effect::Blocked { user, other, ended } => {
            if ended.followed {
                table.changed(other, Change::Missed);
                table.changed(other, Change::Unfollowed(user));
            }
            if ended.friends {
                table.friends_changed(user, other, false);
            }
            table.changed(user, Change::Missed);
        }
        _ => {}
    }
}

/// Whether an effect may concern the watchers of many users.
fn concerns_many(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Posted { .. }
            | Effect::BoostShown { .. }
            | Effect::PostDeleted { .. }
            | Effect::PostEdited { .. }
            | Effect::StoryPosted { .. }
            | Effect::StoryGone { .. }
            | Effect::UserDeleted { .. }
            | Effect::UserHidden { .. }
    )
}
