//! Filters of a user, which mark posts by keywords or one by one. The server never hides a filtered post; apps do.

pub(crate) mod rules;

use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserRef};
use crate::limits;
use crate::names::names;
use crate::refusal::Refusal;
use crate::text::fits;

/// Id of a filter: the [`Stamp`](rows::Stamp) of the command that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FilterId(pub u64);

/// Id of a keyword or post of a filter, unique for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FilterPartId(pub u64);

/// Title or keyword of a filter: 1 to 100 user-perceived characters on one line, trimmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterText(Box<str>);

impl FilterText {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadFilterText`] if nothing is left, it is too long, or it holds control characters.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let plain = !text.is_empty() && !text.chars().any(char::is_control);
        let fits = fits(text, limits::FILTER_TEXT_CHARS_MAX, limits::FILTER_TEXT_BYTES_MAX);
        if plain && fits { Ok(Self(text.into())) } else { Err(Refusal::BadFilterText) }
    }

    /// The checked text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Time until a filter expires: 0 seconds to 10 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterTime(u64);

impl FilterTime {
    /// Checks a number of seconds.
    ///
    /// # Errors
    /// [`Refusal::BadFilterTime`] if it is above 315,360,000.
    pub fn from_secs(secs: u64) -> Result<Self, Refusal> {
        if secs <= limits::FILTER_SECS_MAX { Ok(Self(secs)) } else { Err(Refusal::BadFilterTime) }
    }

    /// Time in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0 * 1_000
    }
}

/// Place where apps apply a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterContext {
    /// The home timeline and lists.
    Home,
    /// Notifications.
    Notifications,
    /// Timelines of all users and of hashtags.
    Public,
    /// A post with its ancestors and replies.
    Thread,
    /// Profiles.
    Account,
}

names!(FilterContext {
    Home = "home",
    Notifications = "notifications",
    Public = "public",
    Thread = "thread",
    Account = "account",
});

/// A non-empty set of contexts: bits in the order of [`FilterContext::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterContexts(u8);

impl FilterContexts {
    /// Creates the set of `contexts`.
    ///
    /// # Errors
    /// [`Refusal::NoFilterContext`] if there are none.
    pub fn new(contexts: impl IntoIterator<Item = FilterContext>) -> Result<Self, Refusal> {
        let bits = contexts.into_iter().fold(0, |bits, context| bits | 1 << context as u8);
        if bits == 0 { Err(Refusal::NoFilterContext) } else { Ok(Self(bits)) }
    }

    /// Contexts of the set, in the order of [`FilterContext::ALL`].
    pub fn iter(self) -> impl Iterator<Item = FilterContext> {
        FilterContext::ALL.into_iter().filter(move |context| self.0 & (1 << *context as u8) != 0)
    }
}

/// Treatment of a filtered post by apps. Stored as the position in the enum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterAction {
    /// Show a warning with the title of the filter.
    #[default]
    Warn,
    /// Hide the post.
    Hide,
    /// Hide the pictures of the post.
    Blur,
}

names!(FilterAction {
    Warn = "warn",
    Hide = "hide",
    Blur = "blur",
});

/// A keyword, without its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyword {
    /// Text to find in posts.
    pub text: FilterText,
    /// Whether the keyword matches whole words only.
    pub whole_word: bool,
}

/// A keyword of a filter, with its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterKeyword {
    /// Id of the keyword.
    pub id: FilterPartId,
    /// Text of the keyword and kind of match.
    pub keyword: Keyword,
}

/// A post of a filter; may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilteredPost {
    /// Id of the post within the filter.
    pub id: FilterPartId,
    /// The post.
    pub post: PostId,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Id of the filter.
    pub id: FilterId,
    /// Title of the filter.
    pub title: FilterText,
    /// Places where apps apply the filter.
    pub contexts: FilterContexts,
    /// Treatment of matching posts by apps.
    pub action: FilterAction,
    /// Time of expiry, in milliseconds since 1970. An expired filter matches nothing until it is changed or deleted.
    pub expires_ms: Option<u64>,
    /// Keywords, in the order of their ids.
    pub keywords: Vec<FilterKeyword>,
    /// Posts, in the order of their ids.
    pub posts: Vec<FilteredPost>,
}

/// A filter to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFilter {
    /// Title of the filter.
    pub title: FilterText,
    /// Places where apps apply the filter.
    pub contexts: FilterContexts,
    /// Treatment of matching posts by apps.
    pub action: FilterAction,
    /// Time until the filter expires; `None` for never.
    pub expires: Option<FilterTime>,
    /// Keywords of the filter.
    pub keywords: Vec<Keyword>,
}

/// A change of a filter. `None` leaves a field unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterEdit {
    /// The filter.
    pub filter: FilterId,
    /// The new title.
    pub title: Option<FilterText>,
    /// The new contexts.
    pub contexts: Option<FilterContexts>,
    /// The new action.
    pub action: Option<FilterAction>,
    /// The new time until expiry; `Some(None)` for never.
    pub expires: Option<Option<FilterTime>>,
    /// Changes of the keywords, applied in order.
    pub keywords: Vec<KeywordChange>,
}

impl FilterEdit {
    /// Creates an empty change.
    #[must_use]
    pub const fn new(filter: FilterId) -> Self {
        let keywords = Vec::new();
        Self { filter, title: None, contexts: None, action: None, expires: None, keywords }
    }
}

/// A change of one keyword in a [`FilterEdit`]. Stored as the position in the enum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeywordChange {
    /// Add a keyword.
    Add(Keyword),
    /// Change a keyword. `None` leaves a field unchanged.
    Edit {
        /// The keyword.
        keyword: FilterPartId,
        /// The new text.
        text: Option<FilterText>,
        /// Whether the keyword matches whole words only.
        whole_word: Option<bool>,
    },
    /// Remove a keyword.
    Remove {
        /// The keyword.
        keyword: FilterPartId,
    },
}

/// A change of the filters of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterCommand {
    /// The owner of the filters.
    pub user: UserRef,
    /// The change.
    pub change: FilterChange,
}

/// A change in a [`FilterCommand`]. Stored as the position in the enum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterChange {
    /// Create a filter.
    Create(NewFilter),
    /// Change a filter and its keywords, all or nothing.
    Edit(FilterEdit),
    /// Delete a filter.
    Delete {
        /// The filter.
        filter: FilterId,
    },
    /// Add a keyword.
    AddKeyword {
        /// The filter.
        filter: FilterId,
        /// The keyword.
        keyword: Keyword,
    },
    /// Add a post that the user may see; for a boost, the boosted post. A post that the filter already has is left
    /// unchanged.
    AddPost {
        /// The filter.
        filter: FilterId,
        /// The post.
        post: PostId,
    },
    /// Remove a post.
    RemovePost {
        /// The filter.
        filter: FilterId,
        /// Id of the post within the filter.
        part: FilterPartId,
    },
}

impl FilterCommand {
    /// Whether the command only removes something.
    #[must_use]
    pub fn removes(&self) -> bool {
        match &self.change {
            FilterChange::Delete { .. } | FilterChange::RemovePost { .. } => true,
            FilterChange::Edit(FilterEdit {
                keywords, title, contexts, action, expires, ..
            }) => {
                let is_kept = title.is_none() && contexts.is_none() && action.is_none();
                let removes = |change| matches!(change, &KeywordChange::Remove { .. });
                is_kept && expires.is_none() && keywords.iter().all(removes)
            }
            FilterChange::Create(_)
            | FilterChange::AddKeyword { .. }
            | FilterChange::AddPost { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_keywords_are_one_short_line() {
        let long = "\u{4e00}".repeat(limits::FILTER_TEXT_CHARS_MAX);
        let marks = format!("a{}", "\u{301}".repeat(limits::FILTER_TEXT_BYTES_MAX / 2));
        for (text, expect) in [
            (" Spoilers ", Some("Spoilers")),
            (long.as_str(), Some(long.as_str())),
            ("#", Some("#")),
            ("", None),
            (" \n", None),
            ("a\nb", None),
            (&format!("{long}x"), None),
            (&marks, None),
        ] {
            let found = FilterText::parse(text).ok();
            assert_eq!(found.as_ref().map(FilterText::as_str), expect, "{text:?}");
        }
    }

    #[test]
    fn contexts_are_a_set_of_at_least_one() {
        use FilterContext::{Account, Home, Thread};
        let names = |contexts: &[FilterContext]| {
            let set = FilterContexts::new(contexts.iter().copied())?;
            Ok(set.iter().map(FilterContext::name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[Account, Home, Thread, Home]), Ok(vec!["home", "thread", "account"]));
        assert_eq!(names(&[]), Err(Refusal::NoFilterContext));
        assert_eq!(names(&FilterContext::ALL).map(|names| names.len()), Ok(5));
    }
}
