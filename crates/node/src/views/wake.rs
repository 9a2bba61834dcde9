//! Waking of watchers by a separate thread, because the work grows with the number of watchers and must not slow the
//! writer.
//!
//! The thread follows the effects. It tests which timelines in memory show a post, and reads the friends of users from
//! the facts. If it lags too far, or a command was undone, it wakes all watchers, who then read again.
//!
//! A watcher misses nothing. A post that is published before the watcher is indexed for its author is found by the
//! watcher's next read of the home timeline; a later post finds the watcher. A change of a post is in the list of posts
//! before it is in the effects, so a notified reader finds it applied.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use feed::{Effect, Facts, HomeUsers, Input, Listed, PostChange, StoryChange, UserChange, UserId};
use rows::Rows;
use store::unless_unreadable;

use super::Views;
use super::effects::Lost;
use super::watchers::{Change, Table};

impl Views {
    /// Wakes all watchers if effects were lost, or readers may have read a command that was undone, since the last
    /// call; returns whether it did.
    pub(crate) fn wake_all(&self) -> bool {
        let wakes = self.wakes_all.swap(false, Ordering::AcqRel) && self.is_watched();
        if wakes {
            self.wake_overflows.fetch_add(1, Ordering::Relaxed);
            self.watchers.all_missed(true);
        }
        wakes
    }

    /// Wakes the watchers of the users whom the next published effects concern; returns whether there may be more. May
    /// read the facts. One thread at a time.
    pub(crate) fn wake<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> bool {
        let effects = match self.watchers.next(&self.effects) {
            Ok(Some(effects)) => effects,
            Ok(None) => return false,
            Err(Lost) => {
                self.wakes_all.store(true, Ordering::Release);
                return true;
            }
        };
        // An author occurs once, even if several of the author's stories end together.
        let mut authors = BTreeSet::new();
        effects.iter().for_each(|effect| self.wake_for(effect, &mut authors));
        for author in authors {
            match unless_unreadable(|| self.watched_friends(facts, author)) {
                Some(friends) => self.watchers.notify(&friends),
                None => self.wakes_all.store(true, Ordering::Release),
            }
        }
        true
    }

    /// Returns the friends of a user, or only the watched friends if it is cheaper to test each watched user.
    fn watched_friends<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, user: UserId) -> Vec<UserId> {
        match self.watchers.fewer_than(facts.counts(user).friends as usize) {
            Some(mut watched) => {
                watched.retain(|other| facts.are_friends(user, *other));
                watched
            }
            None => facts.friends_all(user),
        }
    }

    /// Wakes the watchers of the users whom an effect concerns, except friends: for these it adds the user to
    /// `authors`.
    fn wake_for(&self, effect: &Effect, authors: &mut BTreeSet<UserId>) {
        match *effect {
            Effect::Post { post, author, listed, ref users, change } => {
                let change = match change {
                    PostChange::Published | PostChange::Shown => None,
                    PostChange::Edited => Some(Change::Edited(post)),
                    PostChange::Deleted => Some(Change::Deleted(post)),
                };
                self.wake_readers(author, (listed, users.as_ref()), change);
            }
            Effect::Mention { post, author, user, change } => match change {
                PostChange::Published | PostChange::Shown => self.watchers.notify(&[user]),
                PostChange::Edited => self.watchers.changed(user, &[Change::Edited(post)]),
                PostChange::Deleted => {
                    self.watchers.changed(user, &[Change::MentionDeleted(post, author)]);
                }
            },
            Effect::Notified { user } => self.watchers.notify(&[user]),
            Effect::Follow { user, other, follows } => {
                let change = if follows { Change::Followed } else { Change::Unfollowed };
                self.watchers.changed(user, &[Change::Missed, change(other)]);
            }
            Effect::Input { user, input } => match input {
                Input::Follows | Input::Hidden => self.watchers.changed(user, &[Change::Missed]),
                Input::Friends => self.watchers.notify(&[user]),
                Input::Filters => self.watchers.changed(user, &[Change::Filters]),
            },
            Effect::User { user, change: UserChange::Deleted | UserChange::Hidden } => {
                self.watchers.readers_of(user, |readers| {
                    if let Some(table) = self.watchers.any() {
                        readers.iter().for_each(|reader| table.changed(*reader, Change::Missed));
                    }
                });
                authors.insert(user);
            }
            // It is unknown which home timelines show these posts. The posts are old, so watchers are not woken.
            Effect::User { change: UserChange::Shown, .. } => self.watchers.all_missed(false),
            // No event stream shows these effects.
            Effect::Story { change: StoryChange::Viewed { .. }, .. }
            | Effect::Sample { .. }
            | Effect::Act { .. } => {}
            Effect::Story { author, .. } => _ = authors.insert(author),
        }
    }

    /// Wakes the watchers of the users whose home timeline shows a post, with the post's change if there is one. Users
    /// mentioned in a direct post are notified separately. A changed boost is treated as shown, because it is unknown
    /// whether an earlier boost hides it.
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
            let timelines = self.timelines.reader();
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
