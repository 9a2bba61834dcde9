//! Import of posts and stories.

use std::collections::{BTreeSet, HashMap, HashSet};

use feed::limits::{
    EARLIER_BOOSTS_MAX, PINS_MAX, POST_MENTIONS_MAX, STORY_SECS_DEFAULT, STORY_SECS_MAX,
    STORY_SECS_MIN,
};
use feed::media::MediaUse;
use feed::quotes::Quote;
use feed::whole::POST_VERSIONS;
use feed::{
    Boost, Poll, PollId, PostCounts, PostId, PostText, Reaction, Refusal, StoryId, UserId,
    Visibility, write,
};
use rows::{Stamp, Totals};
use store::Loader;

use super::Wrong;
use super::ids::{Ids, Rising};
use super::media::Pictures;
use super::polls::{self, Votes};
use super::users::Users;
use super::versions::edits;
use crate::export::poll_lines::{self, Vote};
use crate::export::post_lines::{Post, Quote as QuoteLine, Reaction as ReactionLine, Story, View};

/// Ids of the posts that were read, and the last post.
#[derive(Default)]
pub(super) struct Posts {
    ids: Rising,
    last: Option<LastPost>,
    /// Number of pins of each user who has any.
    pins: HashMap<UserId, usize>,
    /// Number of boosts, which are posts too.
    boosts: u64,
    /// Polls that edits added; each belongs to one post.
    edited_polls: HashSet<PollId>,
}

/// Post to which the following reactions belong.
struct LastPost {
    id: PostId,
    author: UserId,
    visibility: Visibility,
    reply_to: Option<UserId>,
    counts: PostCounts,
    /// Last boosts with their users, most recent first.
    last_boosts: Vec<(u64, UserId)>,
    votes: Option<Votes>,
}

impl Posts {
    pub(super) fn add(
        &mut self,
        loader: &mut Loader,
        (users, ids, pictures): (&mut Users, &mut Ids, &mut Pictures),
        line: &Post<'_>,
    ) -> Result<(), Wrong> {
        let id = PostId(ids.next(&mut self.ids, line.id, line.time)?);
        let author = users.find(&line.author)?;
        let mut content = line.content.with(Vec::new())?;
        let Parents { in_reply_to, conversation, thread } = parents(ids, id, line)?;
        let reply_to = line.reply_to.as_ref().map(|user| users.find_any(user)).transpose()?;
        if in_reply_to.is_some() && reply_to.is_none() {
            return Err("reply_to must be the author of the post in in_reply_to".into());
        }
        let mentions = match &line.mentions {
            Some(mentions) => {
                mentions.iter().map(|user| users.find_any(user)).collect::<Result<Vec<_>, _>>()?
            }
            None => {
                let by_handle = |handle: &_| users.by_handle(handle);
                feed::mentioned(&content.text, author, in_reply_to.and(reply_to), by_handle)
            }
        };
        let distinct: BTreeSet<_> = mentions.iter().collect();
        if distinct.len() < mentions.len() || mentions.len() > POST_MENTIONS_MAX {
            return Err(
                format!("a post may mention at most {POST_MENTIONS_MAX} users, each once").into()
            );
        }
        let (edited, versions) = edits(ids, id, line)?;
        let visibility = line.visibility;
        users.count_post(author, visibility)?;
        self.flush(loader);
        let used = MediaUse::Post(id);
        content.media = pictures.of_post(loader, ids, (author, used), &line.media)?;
        let poll = match &line.poll {
            Some(line) => Some(self.poll(ids, id, line)?),
            None => None,
        };
        content.check(poll.is_some())?;
        let quote = line.quote.as_ref().map(|line| quote(ids, id, line));
        let post = feed::Post {
            author,
            content,
            reply_to,
            mentions,
            in_reply_to,
            edited,
            visibility,
            boost: None,
            poll,
            quote: quote.transpose()?,
            quote_policy: line.quote_policy,
            conversation,
            thread,
        };
        write::post(loader, id, &post, ids.last_ms(), |user| users.is_deleted(user));
        if !versions.is_empty() {
            POST_VERSIONS.put(loader, id, &versions);
        }
        let counts = PostCounts::default();
        let last_boosts = Vec::new();
        let votes = post.poll.clone().map(|poll| Votes::new(author, poll));
        self.last = Some(LastPost { id, author, visibility, reply_to, counts, last_boosts, votes });
        Ok(())
    }
}

impl Posts {
    /// Adds a reaction to the last post.
    pub(super) fn reaction(
        &mut self,
        loader: &mut Loader,
        (users, ids): (&mut Users, &mut Ids),
        line: &ReactionLine<'_>,
    ) -> Result<(), Wrong> {
        let post = self.last.as_mut().ok_or("there is no earlier post")?;
        let user = users.find(&line.user)?;
        let reaction = Reaction::named(&line.kind).ok_or("there is no such kind of reaction")?;
        let stamp = ids.used(line.id)?.0;
        if stamp <= post.id.0 {
            return Err("the id is not greater than that of the post".into());
        }
        if !line.earlier.is_empty() && reaction != Reaction::Boost {
            return Err("only a boost can have earlier ones".into());
        }
        match reaction {
            Reaction::Boost => {
                let earlier: Result<Vec<_>, _> =
                    line.earlier.iter().map(|user| users.find_any(user)).collect();
                let boost = post.boost(stamp, user, earlier?)?;
                users.count_post(user, boost.visibility)?;
                self.boosts += 1;
                write::post(loader, PostId(stamp), &boost, 0, |user| users.is_deleted(user));
                return Ok(());
            }
            Reaction::Favourite => post.counts.favourites += 1,
            Reaction::Bookmark | Reaction::Less => {}
            Reaction::Pin => {
                let pins = self.pins.entry(user).or_default();
                *pins += 1;
                if post.author != user {
                    return Err(Refusal::PinNotOwn.into());
                } else if post.visibility == Visibility::Direct {
                    return Err(Refusal::PinDirect.into());
                } else if *pins > PINS_MAX {
                    return Err(Refusal::TooManyPins.into());
                }
            }
        }
        write::reaction(loader, (user, post.id), reaction, stamp);
        Ok(())
    }

    /// Checks the poll of a post and that no other post has it.
    fn poll(
        &mut self,
        ids: &mut Ids,
        post: PostId,
        line: &poll_lines::Poll<'_>,
    ) -> Result<Poll, Wrong> {
        let poll = polls::poll(ids, post, line)?;
        let is_edited = poll.id.0 != post.0;
        if self.edited_polls.contains(&poll.id) || is_edited && !self.edited_polls.insert(poll.id) {
            return Err(format!("another post has the poll {}", poll.id.0).into());
        }
        Ok(poll)
    }

    /// Adds a vote in the poll of the last post.
    pub(super) fn vote(
        &mut self,
        loader: &mut Loader,
        users: &Users,
        line: &Vote,
    ) -> Result<(), Wrong> {
        let votes = self.last.as_mut().and_then(|post| post.votes.as_mut());
        votes.ok_or("there is no earlier post with a poll")?.add(loader, users, line)
    }

    /// Writes the counts of the last post.
    pub(super) fn flush(&mut self, loader: &mut Loader) {
        if let Some(post) = self.last.take() {
            post.votes.iter().for_each(|votes| votes.finish(loader));
            let boosters = post.last_boosts.iter().map(|(_, user)| *user).collect();
            write::post_counts(loader, post.id, &PostCounts { boosters, ..post.counts });
        }
    }

    /// Returns the number of boosts that were read.
    pub(super) fn boosts(&self) -> u64 {
        self.boosts
    }
}

impl LastPost {
    /// Adds and counts a boost of the post.
    fn boost(
        &mut self,
        stamp: u64,
        user: UserId,
        earlier: Vec<UserId>,
    ) -> Result<feed::Post, Wrong> {
        if !self.visibility.allows_boost(user == self.author) {
            return Err(Refusal::BoostNotOpen.into());
        }
        let distinct: BTreeSet<_> = earlier.iter().collect();
        if distinct.len() < earlier.len() || earlier.len() > EARLIER_BOOSTS_MAX {
            return Err(format!(
                "a boost may have at most {EARLIER_BOOSTS_MAX} earlier ones, each once"
            )
            .into());
        }
        self.counts.boosts += 1;
        self.last_boosts.push((stamp, user));
        self.last_boosts.sort_unstable_by(|one, other| other.cmp(one));
        self.last_boosts.truncate(EARLIER_BOOSTS_MAX);
        let boost = Boost::new((self.id, self.author, self.reply_to), Stamp(stamp), earlier);
        Ok(feed::Post::of_boost(user, self.visibility, boost))
    }
}

/// Parent of a post, and the first posts of its conversation and of its thread.
struct Parents {
    in_reply_to: Option<PostId>,
    conversation: Option<PostId>,
    thread: Option<PostId>,
}

fn parents(ids: &mut Ids, id: PostId, line: &Post<'_>) -> Result<Parents, Wrong> {
    let in_reply_to = line.in_reply_to.map(|parent| PostId(parent.0));
    if in_reply_to.is_some_and(|parent| parent >= id || parent.0 < Stamp::MIN.0) {
        return Err("in_reply_to must be the id of an earlier post".into());
    }
    let conversation = line.conversation.map(|first| ids.used(first)).transpose()?;
    let conversation = conversation.map(|first| PostId(first.0));
    let is_direct = line.visibility == Visibility::Direct;
    if conversation.is_some_and(|first| !is_direct || in_reply_to.is_none_or(|it| first > it)) {
        return Err("conversation must be the id of the first post above a direct reply".into());
    }
    let thread = line.thread.map(|first| ids.used(first)).transpose()?;
    let thread = thread.map(|first| PostId(first.0));
    if thread.is_some_and(|first| in_reply_to.is_none_or(|parent| first > parent)) {
        return Err("thread must be the id of the first post above a reply".into());
    }
    Ok(Parents { in_reply_to, conversation, thread: thread.or(in_reply_to) })
}

/// The quote in a post: what it quotes may be deleted.
fn quote(ids: &mut Ids, post: PostId, line: &QuoteLine) -> Result<Quote, Wrong> {
    let quoted = PostId(ids.used(line.post)?.0);
    if quoted >= post {
        return Err("a quote is of an earlier post".into());
    }
    Ok(Quote { post: quoted, is_revoked: line.revoked })
}

/// Stories that were read. The last one is written when all its views are known.
#[derive(Default)]
pub(super) struct Stories {
    ids: Rising,
    last: Option<(StoryId, feed::Story, PostText)>,
}

impl Stories {
    pub(super) fn add(
        &mut self,
        loader: &mut Loader,
        (users, ids): (&Users, &mut Ids),
        line: &Story<'_>,
    ) -> Result<(), Wrong> {
        self.flush(loader);
        let id = StoryId(ids.next(&mut self.ids, line.id, line.time)?);
        let author = users.find(&line.author)?;
        let text = PostText::parse(&line.text)?;
        let default_ms = id.unix_ms() + STORY_SECS_DEFAULT * 1_000;
        let expires_ms = line.expires.map_or(default_ms, |time| time.0);
        let life_ms = expires_ms.saturating_sub(id.unix_ms());
        if !(STORY_SECS_MIN * 1_000..=STORY_SECS_MAX * 1_000).contains(&life_ms) {
            return Err(Refusal::BadLifetime.into());
        }
        self.last = Some((id, feed::Story { author, expires_ms, views: 0 }, text));
        Ok(())
    }

    pub(super) fn view(
        &mut self,
        loader: &mut Loader,
        (users, ids): (&Users, &mut Ids),
        line: &View,
    ) -> Result<(), Wrong> {
        let (id, story, _) = self.last.as_mut().ok_or("there is no earlier story")?;
        let viewer = users.find(&line.user)?;
        if viewer == story.author {
            return Err("authors cannot view their own stories".into());
        }
        let at_ms = match line.time {
            Some(time) => ids.at(time)?.unix_ms(),
            None => id.unix_ms(),
        };
        if !(id.unix_ms()..story.expires_ms).contains(&at_ms) {
            return Err("the story was not live at that time".into());
        }
        story.views = story.views.checked_add(1).ok_or("it has too many views")?;
        write::view(loader, *id, viewer, at_ms);
        Ok(())
    }

    /// Writes the last story.
    pub(super) fn flush(&mut self, loader: &mut Loader) {
        if let Some((id, story, text)) = self.last.take() {
            write::story(loader, id, &story, &text);
        }
    }

    /// Writes the last story and the counts.
    pub(super) fn finish(mut self, loader: &mut Loader, totals: &mut Totals, stories: u64) {
        self.flush(loader);
        totals.stories = stories;
    }
}
