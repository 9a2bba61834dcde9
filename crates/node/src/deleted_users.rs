//! Removes the rows of deleted users, reactions to deleted posts, votes of their polls, and posts of disabled accounts from
//! lists: looks for rows of one user, post or poll, and submits commands that remove them, until none are left. Reads already
//! hide these rows.
//!
//! It runs on the thread of the sweeper. After a restart it continues with the rows that the facts still have, also with
//! those at which the rules failed: until then it skips what they belong to, so that nothing else waits for it.

use std::time::Duration;

use feed::accounts::GrantId;
use feed::limits::{ERASE_ROWS_MAX, RELISTED_POSTS_MAX};
use feed::media::MediaId;
use feed::poll::PollCommand;
use feed::{
    Command, Facts, ListId, PollId, PostId, Reaction, Refusal, Remains, ScheduledId, Span, UserId,
};
use store::Store;

use crate::shared::{OwnReply, Shared};

/// Commands in a row before the sweeper does its other work.
const COMMANDS_AT_ONCE: usize = 64;
/// The same as a time: a command waits for the disk, and in its turn for others.
const TIME_AT_ONCE: Duration = Duration::from_millis(250);

/// Number of items of which rows are read before the writer removes them: as many as one command removes.
const READ_AHEAD: usize = ERASE_ROWS_MAX / 3;

/// Users, posts and polls that are skipped, at most.
const SKIPPED_MAX: usize = 64;

/// Progress of the removals. No earlier rows are left than those named: a read does not walk over rows that are removed.
pub(crate) struct Progress {
    user: Option<UserProgress>,
    /// The deleted post whose reactions are being removed, and the first item that may be left.
    post: (PostId, u64),
    /// The poll that no post has any more, whose votes are being removed, and the first user of whom one may be left.
    poll: (PollId, u64),
    /// The user whose posts are being removed from lists, or added again.
    relisted: UserId,
    /// The subject of the last command.
    last: Option<Head>,
    /// The rules failed at these.
    skipped: Vec<Head>,
}

/// The subject of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    User(UserId),
    Post(PostId),
    Poll(PollId),
    Relisted(UserId),
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            user: None,
            post: (PostId(0), 0),
            poll: (PollId(0), 0),
            relisted: UserId(0),
            last: None,
            skipped: Vec::new(),
        }
    }
}

/// Progress of the removal of a deleted user.
#[derive(Clone, Copy)]
struct UserProgress {
    user: UserId,
    remains: Remains,
    from: u64,
}

impl Shared {
    /// Removes some of what is left of deleted users, posts and polls, and moves some posts of accounts that were disabled or
    /// enabled out of lists or back; keeps in `progress` how far it is, and returns whether there may be more. Blocks for
    /// about [`TIME_AT_ONCE`].
    pub(crate) fn erase_users(&self, progress: &mut Progress) -> bool {
        let end = self.time.elapsed() + TIME_AT_ONCE;
        for _ in 0..COMMANDS_AT_ONCE {
            if self.time.elapsed() >= end {
                break;
            }
            let Some(reply) = self.submit_erasure(progress) else { return false };
            let done = reply.blocking_recv();
            match done.ok().and_then(|replies| Some(replies.first()?.outcome)) {
                Some(Ok(_)) => {}
                Some(Err(Refusal::Internal)) if progress.skipped.len() < SKIPPED_MAX => {
                    progress.skipped.extend(progress.last);
                }
                // The node is closing, or the rules would fail again at once.
                _ => return false,
            }
        }
        true
    }

    /// Submits the next command; `None` if nothing is left, or the inbox does not accept it.
    pub(crate) fn submit_erasure(&self, progress: &mut Progress) -> Option<OwnReply> {
        let facts = Facts::new(&self.store);
        let skipped = std::mem::take(&mut progress.skipped);
        let skips = |head| skipped.contains(&head);
        let found = progress.next(facts, skips);
        progress.skipped = skipped;
        let (head, command) = found?;
        progress.last = Some(head);
        self.submit_own(command)
    }
}

impl Progress {
    /// Reads from the beginning again. What is skipped stays so.
    pub(crate) fn begin_again(&mut self) {
        *self = Self { skipped: std::mem::take(&mut self.skipped), ..Self::default() };
    }

    /// The next command.
    fn next(
        &mut self,
        facts: Facts<'_, Store>,
        skips: impl Fn(Head) -> bool,
    ) -> Option<(Head, Command)> {
        self.user = next(facts, self.user, |user| skips(Head::User(user)));
        if let Some(UserProgress { user, remains, from }) = self.user {
            return Some((Head::User(user), Command::EraseUser { user, remains, from }));
        }
        if let Some((post, from)) = next_post(facts, self.post, |post| skips(Head::Post(post))) {
            self.post = (post, from);
            return Some((Head::Post(post), Command::SweepReactions { post, from }));
        }
        if let Some((poll, from)) = next_poll(facts, self.poll, |poll| skips(Head::Poll(poll))) {
            self.poll = (poll, from);
            return Some((Head::Poll(poll), Command::Poll(PollCommand::Sweep { poll, from })));
        }
        let user = next_relisted(facts, self.relisted, |user| skips(Head::Relisted(user)))?;
        self.relisted = user;
        Some((Head::Relisted(user), Command::RelistPosts { user }))
    }
}

/// The first number from `last` on, or else the first one, that `find` finds and `skips` does not name.
fn first_from(
    last: u64,
    find: impl Fn(u64) -> Option<u64>,
    skips: impl Fn(u64) -> bool,
) -> Option<u64> {
    let first = |mut from: u64| {
        loop {
            let found = find(from)?;
            if !skips(found) {
                return Some(found);
            }
            from = found.checked_add(1)?;
        }
    };
    // What is earlier may have come since.
    first(last).or_else(|| first(0))
}

/// The deleted post whose reactions are to be removed next, and the first of them.
fn next_post(
    facts: Facts<'_, Store>,
    (last, from): (PostId, u64),
    skips: impl Fn(PostId) -> bool,
) -> Option<(PostId, u64)> {
    let find = |from| facts.swept_post(PostId(from)).map(|post| post.0);
    let post = PostId(first_from(last.0, find, |post| skips(PostId(post)))?);
    let from = if post == last { from } else { 0 };
    let left = facts.reactions_to(post, from, ERASE_ROWS_MAX / 2);
    for (_, reaction, user, stamp) in &left {
        let span = Span { low: *stamp, high: *stamp, ..Span::ALL };
        match reaction {
            Reaction::Boost => {
                drop((facts.posts_by(*user, span), facts.stored_counts(*user)));
            }
            _ => drop(facts.reactions_of(*user, *reaction, span)),
        }
    }
    Some((post, left.first().map_or(from, |(item, ..)| *item)))
}

/// As [`next_post`], of a poll that no post has any more.
fn next_poll(
    facts: Facts<'_, Store>,
    (last, from): (PollId, u64),
    skips: impl Fn(PollId) -> bool,
) -> Option<(PollId, u64)> {
    let find = |from| facts.swept_poll(PollId(from)).map(|poll| poll.0);
    let poll = PollId(first_from(last.0, find, |poll| skips(PollId(poll)))?);
    let from = if poll == last { from } else { 0 };
    let left = facts.poll_votes(poll, from, ERASE_ROWS_MAX / 2);
    for (user, _) in &left {
        drop(facts.votes_of(*user, poll, 1));
    }
    Some((poll, left.first().map_or(from, |(user, _)| user.0.into())))
}

/// The user whose posts are to be removed from lists next, or added again.
fn next_relisted(
    facts: Facts<'_, Store>,
    last: UserId,
    skips: impl Fn(UserId) -> bool,
) -> Option<UserId> {
    let user_from = |from| u32::try_from(from).ok().map(UserId);
    let find = |from| Some(facts.relisted(user_from(from)?)?.0.0.into());
    let user = first_from(last.0.into(), find, |user| user_from(user).is_some_and(&skips))?;
    let (user, from) = facts.relisted(user_from(user)?)?;
    let span = Span { low: from.0, limit: RELISTED_POSTS_MAX, ..Span::ALL };
    for (post, listed) in facts.posts_by(user, span) {
        if listed.visibility().is_open() {
            drop(facts.stored_post(post));
        }
    }
    Some(user)
}

/// The rows to remove next.
fn next(
    facts: Facts<'_, Store>,
    last: Option<UserProgress>,
    skips: impl Fn(UserId) -> bool,
) -> Option<UserProgress> {
    let user = facts.erasing().into_iter().find(|user| !skips(*user))?;
    let start = UserProgress { user, remains: Remains::Posts, from: 0 };
    let mut next = last.filter(|last| last.user == user).unwrap_or(start);
    while next.remains != Remains::Nothing {
        let rest = facts.remains(user, next.remains, next.from, READ_AHEAD);
        if let Some(first) = rest.first() {
            read_ahead(facts, user, next.remains, &rest);
            return Some(UserProgress { from: *first, ..next });
        }
        next = UserProgress { remains: next.remains.next(), from: 0, ..next };
    }
    Some(next)
}

/// Reads what the writer will read, so that it finds it in the cache of the store: all changes would wait
/// while it reads the disk.
fn read_ahead(facts: Facts<'_, Store>, user: UserId, remains: Remains, items: &[u64]) {
    // Each has two rows.
    let mut members_left = ERASE_ROWS_MAX / 2;
    for item in items {
        let reacted_to = |post, reaction| {
            let _ = (facts.reaction(user, post, reaction), facts.post_counts(post));
        };
        let reacted = |reaction| {
            let span = Span { low: *item, high: *item, ..Span::ALL };
            for (_, post) in facts.reactions_of(user, reaction, span) {
                reacted_to(post, reaction);
            }
        };
        match remains {
            Remains::Posts => {
                drop(facts.reactions_left(PostId(*item), 0, 1));
                if let Some(boost) = facts.stored_post(PostId(*item)).and_then(|post| post.boost) {
                    reacted_to(boost.post, Reaction::Boost);
                }
            }
            Remains::Favourites => reacted(Reaction::Favourite),
            Remains::Bookmarks => reacted(Reaction::Bookmark),
            Remains::Pins => reacted(Reaction::Pin),
            Remains::Following
            | Remains::Followers
            | Remains::Friends
            | Remains::BlockedBy
            | Remains::MutedBy
            | Remains::NotedBy
            | Remains::FollowRequests
            | Remains::Requested => {
                if let Ok(other) = u32::try_from(*item).map(UserId) {
                    let _ = facts.stored_counts(other);
                    if remains == Remains::Followers {
                        drop(facts.lists_with(other, user));
                    }
                }
            }
            Remains::Lists => {
                let (list, first) = (ListId(*item), UserId(0));
                members_left -= facts.list_members_from(user, list, first, members_left).len();
            }
            Remains::Grants => drop(facts.grant(GrantId(*item))),
            Remains::Media => drop(facts.media(MediaId(*item))),
            Remains::Votes => {
                let _ = (facts.vote(PollId(*item), user), facts.poll_counts(PollId(*item)));
            }
            Remains::Scheduled => drop(facts.scheduled(user, ScheduledId(*item))),
            Remains::Mentions => {
                let _ = facts.conversation_of(user, *item);
            }
            Remains::Stories
            | Remains::Views
            | Remains::Blocks
            | Remains::Mutes
            | Remains::Notifications
            | Remains::Notes
            | Remains::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_keeps_nothing_else_waiting() {
        let check = |last, items: &[u64], skipped: &[u64], expected| {
            let find = |from| items.iter().copied().find(|item| *item >= from);
            let found = first_from(last, find, |item| skipped.contains(&item));
            assert_eq!(found, expected, "{items:?} from {last}, without {skipped:?}");
        };
        check(0, &[], &[], None);
        check(0, &[3, 5], &[], Some(3));
        check(3, &[3, 5], &[3], Some(5));
        check(5, &[3, 5], &[5], Some(3));
        check(5, &[3, 5], &[3, 5], None);
        check(u64::MAX, &[3, u64::MAX], &[u64::MAX], Some(3));
    }
}
