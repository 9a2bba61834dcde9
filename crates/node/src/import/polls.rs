//! Import of polls with their votes, and of scheduled posts.

use feed::limits::{POLL_SECS_MAX, SCHEDULED_MAX};
use feed::media::MediaUse;
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::schedule::ScheduledPost;
use feed::{
    Draft, Poll, PollChoices, PollCounts, PollId, PostId, Refusal, ScheduledId, UserId, UserRef,
    write,
};
use hashbrown::{HashMap, HashSet};
use store::Loader;

use super::Wrong;
use super::ids::Ids;
use super::media::Pictures;
use super::users::Users;
use crate::export::lines::Id;
use crate::export::poll_lines::{self, Scheduled, Vote};

fn options(line: &poll_lines::Poll<'_>) -> Result<PollOptions, Wrong> {
    Ok(PollOptions::parse(line.options.iter().map(|option| &**option))?)
}

/// Checks the poll of a post. If it had not ended at the export, it ends normally and its voters are notified.
pub(super) fn poll(
    ids: &mut Ids,
    post: PostId,
    line: &poll_lines::Poll<'_>,
) -> Result<Poll, Wrong> {
    let id = ids.used(line.id.unwrap_or(Id(post.0)))?;
    let ends_ms = line.ends.ok_or("the poll of a post must have a time at which it ends")?.0;
    let life_ms = ends_ms.checked_sub(id.unix_ms());
    if id.0 < post.0 || life_ms.is_none_or(|ms| ms > 2 * POLL_SECS_MAX * 1_000) {
        return Err(Refusal::BadPollTime.into());
    }
    if line.lasts.is_some() {
        return Err("only the poll of a scheduled post can have a duration in lasts".into());
    }
    let (multiple, hide_totals) = (line.multiple, line.hide_totals);
    let id = PollId(id.0);
    Ok(Poll { id, options: options(line)?, multiple, hide_totals, ends_ms })
}

/// Votes of the last poll that were read.
pub(super) struct Votes {
    author: UserId,
    poll: Poll,
    counts: PollCounts,
    voters: HashSet<UserId>,
}

impl Votes {
    pub(super) fn new(author: UserId, poll: Poll) -> Self {
        Self { author, poll, counts: PollCounts::default(), voters: HashSet::new() }
    }

    pub(super) fn add(
        &mut self,
        loader: &mut Loader,
        users: &Users,
        line: &Vote,
    ) -> Result<(), Wrong> {
        let user = users.find(&line.user)?;
        let choices = PollChoices::new(line.choices.iter().copied())?;
        if user == self.author {
            return Err(Refusal::OwnPoll.into());
        }
        choices.check(&self.poll)?;
        if !self.voters.insert(user) {
            return Err(Refusal::AlreadyVoted.into());
        }
        self.counts.voters += 1;
        for (option, votes) in self.counts.votes.iter_mut().enumerate() {
            *votes += u32::from(choices.has(option));
        }
        write::vote(loader, self.poll.id, user, Some(choices));
        Ok(())
    }

    /// Writes the counts of votes.
    pub(super) fn finish(&self, loader: &mut Loader) {
        write::poll_counts(loader, self.poll.id, &self.counts);
    }
}

/// Number of scheduled posts of each user that were read.
#[derive(Default)]
pub(super) struct ScheduledPosts(HashMap<UserId, usize>);

impl ScheduledPosts {
    pub(super) fn add(
        &mut self,
        loader: &mut Loader,
        (users, ids, pictures): (&Users, &mut Ids, &mut Pictures),
        line: &Scheduled<'_>,
    ) -> Result<(), Wrong> {
        let author = users.find(&line.author)?;
        let id = ScheduledId(ids.used(line.id)?.0);
        let count = self.0.entry(author).or_default();
        *count += 1;
        if *count > SCHEDULED_MAX {
            return Err(Refusal::TooManyScheduled.into());
        }
        let used = MediaUse::Scheduled(id);
        let media = pictures.of_post(loader, ids, (author, used), &line.media)?;
        let draft = Draft {
            author: UserRef::Id(author),
            content: line.content.with(media)?,
            parent: line.in_reply_to.map(|parent| PostId(parent.0)),
            opens_reply: line.opens_reply,
            visibility: line.visibility,
            poll: line.poll.as_ref().map(new_poll).transpose()?,
            quote: line.quote.map(|quoted| PostId(quoted.0)),
            quote_policy: line.quote_policy,
        };
        draft.check()?;
        write::scheduled(loader, author, id, &ScheduledPost { draft, due_ms: line.due.0 });
        Ok(())
    }
}

fn new_poll(line: &poll_lines::Poll<'_>) -> Result<NewPoll, Wrong> {
    if line.id.is_some() || line.ends.is_some() {
        return Err("the poll of a scheduled post cannot have an id or an end".into());
    }
    let lasts = line.lasts.ok_or("the poll of a scheduled post must have a duration in lasts")?;
    let time = PollTime::from_secs(lasts)?;
    let (multiple, hide_totals) = (line.multiple, line.hide_totals);
    Ok(NewPoll { options: options(line)?, multiple, hide_totals, time })
}
