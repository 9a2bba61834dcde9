//! The expected favourites, bookmarks, pins, boosts and notifications.

use feed::limits::{FOLLOW_NOTICES_SEEN, NOTIFICATIONS_MAX, PINS_MAX};
use feed::{Command, Done, Notice, Notification, NotificationId, Outcome, PostId};
use feed::{Reaction, Refusal, UserId, Visibility};

use super::feed::Feed;
use super::posts::ModelPost;

/// What a stored notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A favourite of this post.
    Favourite(u64),
    /// A boost of this post.
    Boost(u64),
    Follow,
    Request,
    /// The end of the poll of this post.
    Poll(u64),
}

impl Feed {
    /// Reactions, and notifications that are cleared or dismissed by a user.
    pub(super) fn react(&mut self, stamp: u64, command: &Command) -> Outcome {
        match command {
            Command::React { user, post, reaction, on } => {
                let user = self.resolve(user)?;
                self.set_reaction(stamp, (user, post.0, *reaction), *on)
            }
            Command::ClearNotifications { user } => {
                let user = self.resolve(user)?;
                self.cleared.insert(user, stamp);
                Ok(Done::NotificationsCleared)
            }
            Command::DismissNotification { user, notification } => {
                let user = self.resolve(user)?;
                let shown = self.notifications(user);
                let found = shown.iter().find(|shown| shown.id == *notification);
                match found.ok_or(Refusal::NotificationNotFound)?.notice {
                    Notice::Mention(post) => drop(self.dismissed.insert((user, post.0))),
                    _ => drop(self.notices.remove(&(user, notification.0))),
                }
                Ok(Done::NotificationDismissed)
            }
            _ => unreachable!("not of this kind"),
        }
    }

    fn set_reaction(&mut self, stamp: u64, key: (u32, u64, Reaction), on: bool) -> Outcome {
        let (user, post, reaction) = key;
        // A reaction to a boost is one to the boosted post.
        let boosted = self.posts.get(&post).and_then(|post| post.boost.as_ref());
        let post = boosted.map_or(post, |boost| boost.post);
        let key = (user, post, reaction);
        let found = self.posts.get(&post).ok_or(Refusal::PostNotFound)?;
        let (author, visibility) = (found.author, found.visibility);
        let before = self.reactions.get(&key).copied();
        if before.is_none() && !self.sees(user, found) {
            return Err(Refusal::PostNotFound);
        }
        match before {
            None if on => {
                if reaction == Reaction::Pin {
                    let pins = self.reactions.keys();
                    let pins = pins.filter(|(of, _, kind)| *of == user && *kind == Reaction::Pin);
                    if author != user {
                        return Err(Refusal::PinNotOwn);
                    } else if visibility == Visibility::Direct {
                        return Err(Refusal::PinDirect);
                    } else if pins.count() >= PINS_MAX {
                        return Err(Refusal::TooManyPins);
                    }
                }
                if reaction == Reaction::Boost {
                    self.boost(stamp, user, post)?;
                }
                self.reactions.insert(key, stamp);
                let cause = match reaction {
                    Reaction::Favourite => Some(Cause::Favourite(post)),
                    Reaction::Boost => Some(Cause::Boost(post)),
                    Reaction::Bookmark | Reaction::Pin => None,
                };
                if let Some(cause) = cause.filter(|_| author != user) {
                    self.notify(author, stamp, (user, cause));
                }
            }
            Some(before) if !on => {
                if reaction == Reaction::Boost {
                    self.posts.remove(&before);
                }
                self.reactions.remove(&key);
                self.notices.remove(&(author, before));
            }
            _ => {}
        }
        Ok(Done::Reacted)
    }

    /// Removes reactions to posts that are gone, and hides boosts of them. What they caused is still stored, and not
    /// shown.
    pub(super) fn forget_reactions(&mut self) {
        let posts = &self.posts;
        let is_orphan = |post: &ModelPost| {
            post.boost.as_ref().is_some_and(|boost| !posts.contains_key(&boost.post))
        };
        let orphans: Vec<u64> =
            posts.iter().filter(|(_, post)| is_orphan(post)).map(|(id, _)| *id).collect();
        for id in orphans {
            self.orphans.extend(self.posts.remove_entry(&id));
        }
        let posts = &self.posts;
        self.reactions.retain(|(_, post, _), _| posts.contains_key(post));
    }

    /// Notifies a user of a follow or a request, unless the newest notifications say so already.
    pub(super) fn announce(&mut self, stamp: u64, (user, other): (u32, u32), cause: Cause) {
        let cleared = self.cleared.get(&other).copied().unwrap_or(0);
        let stored = self.notices.range((other, 0)..=(other, u64::MAX)).rev();
        let newest = stored.take(FOLLOW_NOTICES_SEEN);
        let mut shown = newest.filter(|((_, id), _)| *id > cleared);
        if !shown.any(|(_, notice)| *notice == (user, cause)) {
            self.notify(other, stamp, (user, cause));
        }
    }

    /// Whether a mute hides what `actor` does from the notifications of `user`.
    fn hides_notices(&self, user: u32, actor: u32) -> bool {
        self.mutes.get(&(user, actor)).is_some_and(|(mentions, _)| *mentions)
    }

    /// Notifies `user`, and drops the oldest of what is stored beyond the limit.
    pub(super) fn notify(&mut self, user: u32, stamp: u64, (actor, cause): (u32, Cause)) {
        if self.hides_notices(user, actor) || self.are_hidden(user, actor) {
            return;
        }
        self.notices.insert((user, stamp), (actor, cause));
        let cleared = self.cleared.get(&user).copied().unwrap_or(0);
        let stored = self.notices.range((user, cleared + 1)..=(user, u64::MAX));
        let keys: Vec<_> = stored.map(|(key, _)| *key).collect();
        for key in keys.iter().rev().skip(NOTIFICATIONS_MAX as usize) {
            self.notices.remove(key);
        }
    }

    /// The notifications of `user`, newest first.
    pub(crate) fn notifications(&self, user: u32) -> Vec<Notification> {
        let cleared = self.cleared.get(&user).copied().unwrap_or(0);
        let mentions = self.posts.iter().filter(|(id, post)| {
            post.mentions.contains(&user) && !self.dismissed.contains(&(user, **id))
        });
        let mentions = mentions.map(|(id, post)| (*id, post.author, Notice::Mention(PostId(*id))));
        let stored = self.notices.range((user, 0)..=(user, u64::MAX));
        let stored = stored.filter_map(|((_, id), (actor, cause))| {
            let notice = match cause {
                Cause::Favourite(post) => {
                    let key = (*actor, *post, Reaction::Favourite);
                    let exists = self.reactions.get(&key) == Some(id);
                    exists.then_some(Notice::Favourite(PostId(*post)))?
                }
                Cause::Boost(post) => {
                    let key = (*actor, *post, Reaction::Boost);
                    let exists = self.reactions.get(&key) == Some(id);
                    exists.then_some(Notice::Boost(PostId(*post)))?
                }
                Cause::Follow => {
                    self.follows.contains(&(*actor, user)).then_some(Notice::Follow)?
                }
                Cause::Poll(post) => {
                    let found = self.posts.get(post).filter(|found| self.sees(user, found));
                    found.is_some_and(|found| found.poll.is_some()).then_some(())?;
                    Notice::Poll(PostId(*post))
                }
                Cause::Request => {
                    self.requests.contains(&(*actor, user)).then_some(Notice::FollowRequest)?
                }
            };
            Some((*id, *actor, notice))
        });
        let all = mentions.chain(stored).filter(|(id, actor, _)| {
            let hides = self.hides_notices(user, *actor);
            let exists = !self.users[*actor as usize].deleted;
            *id > cleared && exists && !hides && !self.are_hidden(user, *actor)
        });
        let mut all: Vec<Notification> = all
            .map(|(id, actor, notice)| Notification {
                id: NotificationId(id),
                actor: UserId(actor),
                notice,
            })
            .collect();
        all.sort_unstable_by_key(|shown| std::cmp::Reverse(shown.id));
        all
    }
}
