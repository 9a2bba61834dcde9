//! Lines of votes and scheduled posts, and polls in the lines of posts: see [`lines`](super::lines).

use std::borrow::Cow;

use feed::polls::{NewPoll, PollOption};
use feed::quotes::QuotePolicy;
use feed::schedule::ScheduledPost;
use feed::{Draft, Facts, Rows, ScheduledId, UserId, Visibility};
use serde::{Deserialize, Serialize};

use super::lines::{Id, Time, Who};
use super::media_lines::Picture;
use super::post_lines::{Content, is_default};

/// Poll of a post or of a scheduled post.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Poll<'a> {
    /// Id of a published post's poll: the id of the post, or of the edit that added the poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    #[serde(borrow)]
    pub(crate) options: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) multiple: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hide_totals: bool,
    /// End of a published post's poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ends: Option<Time>,
    /// Duration of a scheduled post's poll, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lasts: Option<u64>,
}

/// Vote in the poll of the preceding post.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vote {
    pub(crate) user: Who,
    /// Chosen options, counted from 0.
    pub(crate) choices: Vec<usize>,
}

/// Scheduled post.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scheduled<'a> {
    pub(crate) author: Who,
    pub(crate) id: Id,
    pub(crate) due: Time,
    #[serde(borrow, flatten)]
    pub(crate) content: Content<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_reply_to: Option<Id>,
    /// Whether the post replies to the user whose mention begins the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) opens_reply: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) visibility: Visibility,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<Picture<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) poll: Option<Poll<'a>>,
    /// The post that it quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quote: Option<Id>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) quote_policy: QuotePolicy,
}

fn options<'a>(options: &[PollOption]) -> Vec<Cow<'a, str>> {
    options.iter().map(|option| option.as_str().to_owned().into()).collect()
}

impl From<&feed::Poll> for Poll<'_> {
    fn from(poll: &feed::Poll) -> Self {
        Self {
            id: Some(Id(poll.id.0)),
            options: options(poll.options.as_slice()),
            multiple: poll.multiple,
            hide_totals: poll.hide_totals,
            ends: Some(Time(poll.ends_ms)),
            lasts: None,
        }
    }
}

impl From<&NewPoll> for Poll<'_> {
    fn from(poll: &NewPoll) -> Self {
        Self {
            id: None,
            options: options(poll.options.as_slice()),
            multiple: poll.multiple,
            hide_totals: poll.hide_totals,
            ends: None,
            lasts: Some(poll.time.secs()),
        }
    }
}

impl<'a> Scheduled<'a> {
    pub(crate) fn new<R: Rows + ?Sized>(
        facts: Facts<'_, R>,
        (author, id): (UserId, ScheduledId),
        ScheduledPost { draft, due_ms }: &'a ScheduledPost,
    ) -> Self {
        let Draft {
            // The author is in the name of the row.
            author: _,
            content,
            parent,
            opens_reply,
            visibility,
            poll,
            quote,
            quote_policy,
        } = draft;
        Self {
            author: author.into(),
            id: Id(id.0),
            due: Time(*due_ms),
            content: content.into(),
            in_reply_to: parent.map(|parent| Id(parent.0)),
            opens_reply: *opens_reply,
            visibility: *visibility,
            media: content.media.iter().filter_map(|media| Picture::of(facts, *media)).collect(),
            poll: poll.as_ref().map(Poll::from),
            quote: quote.map(|quoted| Id(quoted.0)),
            quote_policy: *quote_policy,
        }
    }
}
