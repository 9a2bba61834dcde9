//! Filters in the line of a user: see [`lines`](super::lines).

use std::borrow::Cow;

use feed::filters;
use serde::{Deserialize, Serialize};

use super::lines::{Id, Time};

/// Filter of a user.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    #[serde(borrow)]
    pub(crate) title: Cow<'a, str>,
    /// Contexts: at least one of `home`, `notifications`, `public`, `thread` and `account`.
    #[serde(borrow)]
    pub(crate) contexts: Vec<Cow<'a, str>>,
    /// `warn`, `hide` or `blur`.
    #[serde(borrow)]
    pub(crate) action: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<Time>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) keywords: Vec<Keyword<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) posts: Vec<FilteredPost>,
}

/// Keyword of a filter.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keyword<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) whole_word: bool,
}

/// Post of a filter, which may be deleted.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilteredPost {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    pub(crate) post: Id,
}

impl From<filters::Filter> for Filter<'_> {
    fn from(filter: filters::Filter) -> Self {
        let keyword = |found: filters::FilterKeyword| Keyword {
            id: Some(Id(found.id.0)),
            text: found.keyword.text.as_str().to_owned().into(),
            whole_word: found.keyword.whole_word,
        };
        let post = |found: filters::FilteredPost| FilteredPost {
            id: Some(Id(found.id.0)),
            post: Id(found.post.0),
        };
        Self {
            id: Some(Id(filter.id.0)),
            title: filter.title.as_str().to_owned().into(),
            contexts: filter.contexts.iter().map(|context| context.name().into()).collect(),
            action: filter.action.name().into(),
            expires: filter.expires_ms.map(Time),
            keywords: filter.keywords.into_iter().map(keyword).collect(),
            posts: filter.posts.into_iter().map(post).collect(),
        }
    }
}
