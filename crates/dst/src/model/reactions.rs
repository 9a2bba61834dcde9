//! Expected favourites, bookmarks, pins and boosts.

use feed::limits::PINS_MAX;
use feed::{Done, Outcome, Reaction, Refusal, Visibility};

use super::feed::Feed;
use super::notices::Cause;
use super::posts::ModelPost;

impl Feed {
    pub(super) fn set_reaction(
        &mut self,
        stamp: u64,
        key: (u32, u64, Reaction),
        on: bool,
    ) -> Outcome {
        let (user, post, reaction) = key;
        // A reaction to a boost applies to the boosted post.
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
                    Reaction::Bookmark | Reaction::Pin | Reaction::Less => None,
                };
                if let Some(cause) = cause.filter(|_| author != user) {
                    self.notify(author, stamp, (user, cause));
                }
            }
            Some(before) if !on => {
                if reaction == Reaction::Boost {
                    self.posts.remove(&before);
                    self.show_later_boosts(user, post);
                }
                self.reactions.remove(&key);
                self.notices.remove(&(author, before));
            }
            _ => {}
        }
        Ok(Done::Reacted)
    }

    /// Removes reactions to deleted posts, and hides boosts of these posts. Notifications about the reactions stay
    /// stored, but are not shown. Users are no longer notified about edits of deleted posts.
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
        self.edits.retain(|post, _| posts.contains_key(post));
    }
}
