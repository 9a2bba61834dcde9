//! Lines of posts and stories.

use std::borrow::Cow;

use feed::PostVersion;
use feed::polls::PollOptions;
use feed::quotes::QuotePolicy;
use serde::{Deserialize, Serialize};

use super::lines::{Id, Time, Who};
use super::media_lines::Picture;
use super::poll_lines::Poll;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Post<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Time>,
    pub(crate) author: Who,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_reply_to: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<Who>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mentions: Option<Vec<Who>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Time>,
    /// Visibility as in the API; missing for a public post.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) visibility: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sensitive: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<Cow<'a, str>>,
    /// Pictures in their order. A post with pictures may have an empty text.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<Picture<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) poll: Option<Poll<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quote: Option<Quote>,
    /// Users who may quote the post, named as in the API; missing if everybody may quote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quote_policy: Option<QuotePolicy>,
    /// First post of the conversation, for a direct reply to a direct post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<Id>,
    /// First post of the thread, for a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<Id>,
    /// Earlier versions, oldest first.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) versions: Vec<Version<'a>>,
}

/// The quote in a post.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quote {
    /// The quoted post, which may be deleted.
    pub(crate) post: Id,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) revoked: bool,
}

impl From<feed::quotes::Quote> for Quote {
    fn from(quote: feed::quotes::Quote) -> Self {
        Self { post: Id(quote.post.0), revoked: quote.is_revoked }
    }
}

/// Quote policy of a post, unless it is the default.
pub(crate) fn quote_policy(policy: QuotePolicy) -> Option<QuotePolicy> {
    Some(policy).filter(|policy| *policy != QuotePolicy::default())
}

/// Content of a post from a time on.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Version<'a> {
    pub(crate) since: Id,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub(crate) warning: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sensitive: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<Cow<'a, str>>,
    /// Ids of the pictures, which may be deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<Id>,
    /// Options of the poll.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) poll: Vec<Cow<'a, str>>,
}

impl From<PostVersion> for Version<'_> {
    fn from(version: PostVersion) -> Self {
        let options = version.poll.iter().flat_map(PollOptions::as_slice);
        Self {
            since: Id(version.since.0),
            text: version.text.as_str().to_owned().into(),
            warning: version.warning.as_str().to_owned().into(),
            sensitive: version.sensitive,
            language: version.language.map(|language| language.as_str().to_owned().into()),
            media: version.media.iter().map(|media| Id(media.0)).collect(),
            poll: options.map(|option| option.as_str().to_owned().into()).collect(),
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Story<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Time>,
    pub(crate) author: Who,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<Time>,
}

/// First view by a user of the preceding story.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct View {
    pub(crate) user: Who,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Time>,
}

/// Reaction to the preceding post.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reaction<'a> {
    pub(crate) user: Who,
    /// `favourite`, `bookmark`, `pin` or `boost`.
    #[serde(borrow)]
    pub(crate) kind: Cow<'a, str>,
    /// Id, which is greater than that of the post and different for each reaction of a user; the id of a boost also
    /// differs from those of all posts.
    pub(crate) id: Id,
    /// Users who boosted the post shortly before this boost, most recent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<Who>,
}
