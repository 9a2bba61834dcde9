//! Lines of posts and stories.

use std::borrow::Cow;

use feed::media::MediaId;
use feed::polls::PollOptions;
use feed::quotes::QuotePolicy;
use feed::{Language, PostText, PostVersion, Refusal, Visibility, Warning};
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
    #[serde(borrow, flatten)]
    pub(crate) content: Content<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_reply_to: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<Who>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mentions: Option<Vec<Who>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Time>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) visibility: Visibility,
    /// Pictures in their order. A post with pictures may have an empty text.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<Picture<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) poll: Option<Poll<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quote: Option<Quote>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) quote_policy: QuotePolicy,
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

/// Content of a post, a scheduled post or an earlier version of a post, without its pictures.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Content<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    warning: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sensitive: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    language: Option<Cow<'a, str>>,
}

impl<'a> From<&'a feed::Content> for Content<'a> {
    fn from(content: &'a feed::Content) -> Self {
        // Each line has the pictures in its own form.
        let feed::Content { text, warning, sensitive, language, media: _ } = content;
        Self {
            text: text.as_str().into(),
            warning: warning.as_str().into(),
            sensitive: *sensitive,
            language: language.as_ref().map(|language| language.as_str().into()),
        }
    }
}

impl Content<'_> {
    /// Checks the fields, and adds the pictures of the line.
    pub(crate) fn with(&self, media: Vec<MediaId>) -> Result<feed::Content, Refusal> {
        let text = match &*self.text {
            "" => PostText::none(),
            text => PostText::parse(text)?,
        };
        Ok(feed::Content {
            text,
            warning: Warning::parse(&self.warning)?,
            sensitive: self.sensitive,
            language: self.language.as_deref().map(Language::parse).transpose()?,
            media,
        })
    }
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

/// Whether a field has the value that it has when it is missing.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Content of a post from a time on.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Version<'a> {
    pub(crate) since: Id,
    #[serde(borrow, flatten)]
    pub(crate) content: Content<'a>,
    /// Ids of the pictures, which may be deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<Id>,
    /// Options of the poll.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) poll: Vec<Cow<'a, str>>,
}

impl<'a> From<&'a PostVersion> for Version<'a> {
    fn from(version: &'a PostVersion) -> Self {
        let options = version.poll.iter().flat_map(PollOptions::as_slice);
        Self {
            since: Id(version.since.0),
            content: (&version.content).into(),
            media: version.content.media.iter().map(|media| Id(media.0)).collect(),
            poll: options.map(|option| option.as_str().into()).collect(),
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
