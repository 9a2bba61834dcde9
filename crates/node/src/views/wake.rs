//! Waking the watchers of those whom effects concern: what would cost the writer in proportion to the watchers.
//!
//! One thread follows the effects. It asks the timelines in memory in whose home a post is, and the facts whose friend
//! somebody is. If it lags too far, or a command was undone, all watchers are woken too and read again.
//!
//! A watcher misses nothing: a post that is published before the watcher is indexed for its author is found by the read
//! of home that follows, and one that is published after finds the watcher. A change of a post is in the effects after
//! the list of posts has it, so a reader who is notified of it finds it applied.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use feed::{Effect, Facts, HomeUsers, Input, Listed, PostChange, StoryChange, UserChange, UserId};
use rows::Rows;
use store::unless_unreadable;

use super::Views;
use super::effects::Lost;
use super::watchers::{Change, Table};

impl Views {
    /// Wakes all watchers if something was lost to them, or taken back, since the last call; returns whether that was so.
    pub(crate) fn wake_all(&self) -> bool {
        let wakes = self.wakes_all.swap(false, Ordering::AcqRel) && self.is_watched();
        if wakes {
            self.wake_overflows.fetch_add(1, Ordering::Relaxed);
            self.watchers.all_missed(true);
        }
        wakes
    }

    /// Wakes the watchers whom the next published effects concern; returns whether there may be more. May read the facts.
    /// One thread at a time.
    pub(crate) fn wake<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> bool {
        let effects = match self.watchers.next(&self.effects) {
            Ok(Some(effects)) => effects,
            Ok(None) => return false,
            Err(Lost) => {
                self.wakes_all.store(true, Ordering::Release);
                return true;
            }
        };
        // Once for each author, however many of their stories end together.
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

    /// The friends of a user, or those of them who are watched: a test of each watched user if these are fewer.
    fn watched_friends<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, user: UserId) -> Vec<UserId> {
        match self.watchers.fewer_than(facts.counts(user).friends as usize) {
            Some(mut watched) => {
                watched.retain(|other| facts.are_friends(user, *other));
                watched
            }
            None => facts.friends_all(user),
        }
    }

    /// Wakes the watchers whom an effect concerns, but for friends of a user, who is added to `authors`.
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
            // Whose home has posts of the past again is not known, and nothing is new there.
            Effect::User { change: UserChange::Shown, .. } => self.watchers.all_missed(false),
            // These are not published to consumers.
            Effect::Story { change: StoryChange::Viewed { .. }, .. } | Effect::Sample { .. } => {}
            Effect::Story { author, .. } => _ = authors.insert(author),
        }
    }

    /// Wakes the watchers of those who have a post at home, with a change of it if there is one. Who is mentioned in a direct
    /// post is notified of its changes as such. Whether an earlier boost hides one that has changed is not known any more.
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
