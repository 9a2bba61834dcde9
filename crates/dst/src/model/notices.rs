//! Expected notifications: stored ones, and those of mentions and posts, which are not stored.

use std::collections::BTreeSet;

use feed::limits::{
    EDIT_NOTICES_QUIET_MS, FOLLOW_NOTICES_SEEN, MUTED_THREADS_MAX, NOTIFICATIONS_MAX,
};
use feed::{Command, Done, Notice, Notification, NotificationId, Outcome, PostId};
use feed::{Reaction, Refusal, UserId, Visibility};

use super::feed::Feed;
use super::ms_of;
use super::posts::ModelPost;

/// Cause of a stored notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Favourite of this post.
    Favourite(u64),
    /// Boost of this post.
    Boost(u64),
    Follow,
    Request,
    /// End of the poll of this post.
    Poll(u64),
    /// Edit of this post, or of the post that this post of the user quotes.
    Edit(u64),
    /// Mention in this post that an edit added.
    Mention(u64),
    /// Quote in this post.
    Quote(u64),
}

impl Cause {
    /// Whether this kind of notification does not count towards the limit.
    const fn is_beside(self) -> bool {
        matches!(self, Self::Mention(_))
    }
}

/// Edit of a post about which some boosters were not notified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelEdit {
    pub(crate) stamp: u64,
    /// Whether an existing user boosts the post. If only deleted users do, their boosts may already be removed.
    pub(crate) is_sure: bool,
    /// First user who may not have been notified.
    from: u32,
}

/// Number of users whom one command of the node notifies about the end of a poll or an edit.
pub(super) const NOTIFIED_AT_ONCE: usize = 64;

/// Number of quotes of an edited post, the newest, whose authors are notified of the edit.
const NOTIFIED_QUOTES: usize = 1_000;

/// Returns the first user whom the next command notifies. The last command has notified `users`.
pub(super) fn next_notified(users: &[u32]) -> Option<u32> {
    users.last().filter(|_| users.len() == NOTIFIED_AT_ONCE).map(|last| last + 1)
}

impl Feed {
    /// Applies a command about notifications.
    pub(super) fn change_notices(&mut self, stamp: u64, command: &Command) -> Outcome {
        match command {
            Command::ClearNotifications { user } => {
                let user = self.resolve(user)?;
                self.cleared.insert(user, stamp);
                Ok(Done::NotificationsCleared)
            }
            Command::DismissNotification { user, notification } => {
                let user = self.resolve(user)?;
                let shown = self.notifications(user);
                let found = shown.iter().find(|shown| shown.id == *notification);
                found.ok_or(Refusal::NotificationNotFound)?;
                // Dismissing a quote also dismisses all other notifications about the post that quotes.
                let stored = self.notices.remove(&(user, notification.0));
                let is_other_cause = |(author, cause)| {
                    matches!(cause, Cause::Quote(_)) && self.follows.contains(&(user, author))
                };
                if stored.is_none_or(is_other_cause) {
                    self.dismissed.insert((user, notification.0));
                }
                Ok(Done::NotificationDismissed)
            }
            Command::MuteThread { user, post, on } => {
                let user = self.resolve(user)?;
                self.mute_thread(user, post.0, *on)
            }
            _ => unreachable!("a command of another kind"),
        }
    }

    fn mute_thread(&mut self, user: u32, named: u64, on: bool) -> Outcome {
        let post = self.posts.get(&named).ok_or(Refusal::PostNotFound)?;
        // A boost belongs to the thread of the boosted post.
        let id = post.boost.as_ref().map_or(named, |boost| boost.post);
        let post = self.posts.get(&id).ok_or(Refusal::PostNotFound)?;
        let (thread, is_visible) = (post.thread_of(id), self.sees(user, post));
        let muted = self.muted_threads.entry(user).or_default();
        let is_muted = muted.contains(&thread);
        if !is_muted && !is_visible {
            return Err(Refusal::PostNotFound);
        }
        if is_muted && !on {
            muted.retain(|other| *other != thread);
        }
        if !is_muted && on {
            muted.push(thread);
            let surplus = muted.len().saturating_sub(MUTED_THREADS_MAX);
            muted.drain(..surplus);
        }
        Ok(Done::ThreadMuted)
    }

    /// Whether a user has muted the thread of a post.
    pub(crate) fn mutes_thread_of(&self, user: u32, id: u64) -> bool {
        let muted = self.muted_threads.get(&user).map_or(&[][..], Vec::as_slice);
        self.posts.get(&id).is_some_and(|post| muted.contains(&post.thread_of(id)))
    }

    /// Whether `user` is notified about a post that mentions the user.
    pub(crate) fn notified(&self, user: u32, id: u64) -> bool {
        let Some(post) = self.posts.get(&id) else { return false };
        self.sees(user, post) && self.hears(user, post.author) && !self.mutes_thread_of(user, id)
    }

    /// Whether `user` is notified of actions of `actor`: no block or mute prevents it.
    pub(super) fn hears(&self, user: u32, actor: u32) -> bool {
        let mute = self.mutes.get(&(user, actor));
        !self.are_hidden(user, actor) && mute.is_none_or(|(mentions, _)| !mentions)
    }

    /// Notifies a user of a follow or a request, unless the user's newest notifications already contain it.
    pub(super) fn announce(&mut self, stamp: u64, (user, other): (u32, u32), cause: Cause) {
        if !self.is_announced(other, (user, cause)) {
            self.notify(other, stamp, (user, cause));
        }
    }

    /// Whether the newest notifications of a user contain this one.
    fn is_announced(&self, user: u32, wanted: (u32, Cause)) -> bool {
        let cleared = self.cleared.get(&user).copied().unwrap_or(0);
        let stored = self.notices.range((user, 0)..=(user, u64::MAX)).rev();
        let stored = stored.filter(|(_, (_, cause))| !cause.is_beside());
        let mut shown = stored.take(FOLLOW_NOTICES_SEEN).filter(|((_, id), _)| *id > cleared);
        shown.any(|(_, notice)| *notice == wanted)
    }

    /// Notifies `user`. Drops the oldest stored notifications above the limit.
    pub(super) fn notify(&mut self, user: u32, stamp: u64, (actor, cause): (u32, Cause)) {
        if !self.hears(user, actor) {
            return;
        }
        self.notices.insert((user, stamp), (actor, cause));
        let cleared = self.cleared.get(&user).copied().unwrap_or(0);
        let stored = self.notices.range((user, cleared + 1)..=(user, u64::MAX));
        let stored = stored.filter(|(_, (_, cause))| !cause.is_beside());
        let keys: Vec<_> = stored.map(|(key, _)| *key).collect();
        for key in keys.iter().rev().skip(NOTIFICATIONS_MAX as usize) {
            self.notices.remove(key);
        }
    }

    /// Notifies the users whom an edit of a post mentions for the first time. Removes the notifications of users who
    /// are no longer mentioned.
    pub(super) fn announce_mentions(&mut self, stamp: u64, id: u64, before: &[u32]) {
        let post = self.posts[&id].clone();
        for user in before.iter().filter(|user| !post.mentions.contains(user)) {
            if let Some(edit) = self.mentioned_since.remove(&(*user, id)) {
                self.notices.remove(&(*user, edit));
            }
        }
        let added = post.mentions.iter().filter(|user| !before.contains(user));
        for user in added.filter(|user| **user != post.author) {
            if self.sees(*user, &post) && self.hears(*user, post.author) {
                self.mentioned_since.insert((*user, id), stamp);
                self.notify(*user, stamp, (post.author, Cause::Mention(id)));
            }
        }
    }

    fn boosters_of(&self, id: u64) -> impl Iterator<Item = u32> {
        let boosts = self.reactions.keys();
        let boosts = boosts.filter(move |(_, of, kind)| (*of, *kind) == (id, Reaction::Boost));
        boosts.map(|(user, ..)| *user)
    }

    /// Records an edit of a post. `before` is the time of the previous edit. The node notifies boosters later, only of
    /// the last edit, and not if the previous edit was a short time before.
    pub(super) fn announce_edit(&mut self, stamp: u64, id: u64, before: Option<u64>) {
        let pending = self.edits.remove(&id);
        let is_quiet = before.is_none_or(|at| ms_of(at) + EDIT_NOTICES_QUIET_MS <= ms_of(stamp));
        if !is_quiet && pending.is_none() {
            return;
        }
        let is_quoted = |sure: bool| {
            let mut quotes = self.quotes_of(id);
            quotes.any(|(_, user)| !sure || !self.accounts.relisted.contains(&user))
        };
        let has_boosts = self.boosters_of(id).next().is_some();
        let is_boosted = has_boosts || is_quoted(false);
        let is_sure = (has_boosts || is_quoted(true))
            && (is_quiet || pending.is_some_and(|edit| edit.is_sure));
        let is_left = |(user, of): &(u32, u64)| *of == id && self.erasing.contains_key(user);
        if is_boosted || self.erased_boosts.iter().any(is_left) {
            // Users who were notified of the previous edit are not notified of this one.
            let from = pending.map_or(0, |edit| edit.from);
            self.edits.insert(id, ModelEdit { stamp, is_sure, from });
        }
    }

    /// Notifies some of the boosters and quoters of an edited post, in the order of their ids, each once.
    pub(super) fn notify_of_edit(&mut self, stamp: u64, id: u64, edited_ms: u64) {
        if self.edits.get(&id).is_none_or(|edit| ms_of(edit.stamp) != edited_ms) {
            return;
        }
        let Some(edit) = self.edits.remove(&id) else { return };
        let Some(post) = self.posts.get(&id) else { return };
        let author = post.author;
        let quotes: Vec<_> = self.quotes_of(id).collect();
        let quotes = &quotes[quotes.len().saturating_sub(NOTIFIED_QUOTES)..];
        let boosters: BTreeSet<u32> = self.boosters_of(id).collect();
        let users: BTreeSet<u32> =
            quotes.iter().map(|(_, user)| *user).chain(boosters.clone()).collect();
        let users: Vec<u32> = users.range(edit.from..).copied().take(NOTIFIED_AT_ONCE).collect();
        for user in users.iter().copied().filter(|user| *user != author) {
            let own = || quotes.iter().filter(|(_, by)| *by == user).map(|(quote, _)| *quote);
            let newest = own().next_back().filter(|_| !boosters.contains(&user));
            let notice = (author, Cause::Edit(newest.unwrap_or(id)));
            if !self.sees(user, &self.posts[&id]) || !self.hears(user, author) {
                continue;
            }
            let is_sure = own().next().is_none() || !self.accounts.relisted.contains(&user);
            let has_edit =
                own().chain([id]).any(|of| self.is_announced(user, (author, Cause::Edit(of))));
            match (edit.is_sure && is_sure, has_edit && is_sure) {
                (_, true) => {}
                (true, false) => self.notify(user, stamp, notice),
                (false, false) => self.unsure.push(((user, stamp), notice)),
            }
        }
        if let Some(from) = next_notified(&users) {
            self.edits.insert(id, ModelEdit { from, ..edit });
        }
    }

    /// Returns the notification of `user` about a post, unless there is none or the user has dismissed it.
    fn notice_of_post(&self, user: u32, id: u64, post: &ModelPost) -> Option<Notice> {
        let is_stored = self.notices.contains_key(&(user, id));
        if self.dismissed.contains(&(user, id)) || is_stored {
            return None;
        }
        if post.mentions.contains(&user) && user != post.author {
            // A mention that an edit added is stored instead.
            let is_new = !self.mentioned_since.contains_key(&(user, id));
            return is_new.then_some(Notice::Mention(PostId(id)));
        }
        let pair = (user, post.author);
        let since = self.follow_options.get(&pair)?.notified_since?;
        let is_new = self.follows.contains(&pair) && id > since;
        let is_of_author = post.reply_to.is_none_or(|to| to == post.author);
        let is_open = post.boost.is_none() && post.visibility != Visibility::Direct;
        // A mute always hides this notification, even if it does not hide mentions.
        let is_muted = self.mutes.contains_key(&pair);
        let is_notice = is_new && is_of_author && is_open && !is_muted && self.sees(user, post);
        is_notice.then_some(Notice::Post(PostId(id)))
    }

    /// Returns a stored notification if its cause still exists.
    fn stored_notice(&self, user: u32, id: u64, (actor, cause): (u32, Cause)) -> Option<Notice> {
        let has_reacted = |post: u64, reaction: Reaction| {
            self.reactions.get(&(actor, post, reaction)) == Some(&id)
        };
        let visible = |post: u64| self.posts.get(&post).filter(|found| self.sees(user, found));
        match cause {
            Cause::Favourite(post) => {
                has_reacted(post, Reaction::Favourite).then_some(Notice::Favourite(PostId(post)))
            }
            Cause::Boost(post) => {
                has_reacted(post, Reaction::Boost).then_some(Notice::Boost(PostId(post)))
            }
            Cause::Follow => self.follows.contains(&(actor, user)).then_some(Notice::Follow),
            Cause::Request => {
                self.requests.contains(&(actor, user)).then_some(Notice::FollowRequest)
            }
            Cause::Poll(post) => visible(post)?.poll.as_ref().map(|_| Notice::Poll(PostId(post))),
            Cause::Edit(id) => {
                let post = visible(id)?;
                if post.author != user {
                    return Some(Notice::Edit(PostId(id)));
                }
                let quote = post.quote.filter(|quote| !quote.is_revoked)?;
                visible(quote.post).map(|_| Notice::QuotedUpdate(PostId(id)))
            }
            Cause::Quote(id) => {
                let quote = visible(id)?.quote.filter(|quote| !quote.is_revoked);
                quote.map(|_| Notice::Quote(PostId(id)))
            }
            Cause::Mention(post) => {
                let since = self.mentioned_since.get(&(user, post));
                visible(post).filter(|_| since == Some(&id)).map(|_| Notice::Mention(PostId(post)))
            }
        }
    }

    /// Notifications of `user`, newest first.
    pub(crate) fn notifications(&self, user: u32) -> Vec<Notification> {
        let cleared = self.cleared.get(&user).copied().unwrap_or(0);
        let of_posts = self.posts.iter().filter_map(|(id, post)| {
            Some((*id, post.author, self.notice_of_post(user, *id, post)?))
        });
        let stored = self.notices.range((user, 0)..=(user, u64::MAX));
        let stored = stored.filter_map(|((_, id), notice)| {
            Some((*id, notice.0, self.stored_notice(user, *id, *notice)?))
        });
        let all = of_posts.chain(stored).filter(|(id, actor, notice)| {
            let exists = !self.users[*actor as usize].deleted;
            let is_muted = notice.post().is_some_and(|post| self.mutes_thread_of(user, post.0));
            *id > cleared && exists && self.hears(user, *actor) && !is_muted
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
