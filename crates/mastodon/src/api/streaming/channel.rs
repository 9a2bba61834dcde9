//! The channels of streams, by their names in Mastodon.

use feed::accounts::AccessScope;
use feed::{ListId, Tag};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::input;
use crate::streams::Published;

/// What a request says beside the name of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Of<'a> {
    pub(super) tag: Option<&'a str>,
    pub(super) list: Option<&'a str>,
}

impl<'a> Of<'a> {
    pub(super) fn parse(fields: &'a Fields) -> Result<Self, ApiError> {
        Ok(Self { tag: fields.one("tag")?, list: fields.one("list")? })
    }
}

/// What a client subscribes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// Home and notifications.
    User,
    /// Notifications alone.
    Notifications,
    /// The posts of all users.
    Public(&'static str),
    /// The public posts with a hashtag.
    Hashtag(&'static str, Tag),
    /// The posts of home that are in the timeline of a list.
    List(ListId),
    /// The conversations of the user.
    Direct,
    /// One on which nothing is sent: of other servers and of pictures alone.
    Silent(&'static str),
}

impl Channel {
    /// The channel of this name; that of a hashtag or a list needs one.
    pub(super) fn parse(name: &str, of: Of<'_>) -> Option<Self> {
        let tag = |name| Some(Self::Hashtag(name, Tag::parse(of.tag?).ok()?));
        match name {
            "hashtag" => return tag("hashtag"),
            "hashtag:local" => return tag("hashtag:local"),
            "list" => return Some(Self::List(ListId(input::number(of.list?)?))),
            _ => {}
        }
        [
            Self::User,
            Self::Notifications,
            Self::Public("public"),
            Self::Public("public:local"),
            Self::Silent("public:media"),
            Self::Silent("public:local:media"),
            Self::Silent("public:remote"),
            Self::Silent("public:remote:media"),
            Self::Direct,
        ]
        .into_iter()
        .find(|channel| channel.name() == name)
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Notifications => "user:notification",
            Self::Direct => "direct",
            Self::List(_) => "list",
            Self::Public(name) | Self::Hashtag(name, _) | Self::Silent(name) => name,
        }
    }

    /// The hashtag of its posts, or the id of its list.
    pub(super) fn of(&self) -> Option<String> {
        match self {
            Self::Hashtag(_, tag) => Some(tag.as_str().to_owned()),
            Self::List(list) => Some(list.0.to_string()),
            _ => None,
        }
    }

    /// Its list.
    pub(super) fn list(&self) -> Option<ListId> {
        match self {
            Self::List(list) => Some(*list),
            _ => None,
        }
    }

    /// Whether a post that any user may see is one of this channel.
    pub(super) fn has(&self, published: &Published) -> bool {
        match self {
            Self::Public(_) => !published.is_reply,
            Self::Hashtag(_, tag) => published.tags.contains(tag),
            _ => false,
        }
    }

    /// The scope that a token needs.
    pub(super) fn scope(&self) -> AccessScope {
        match self {
            Self::Notifications => AccessScope::ReadNotifications,
            _ => AccessScope::ReadStatuses,
        }
    }

    /// Whether its events are those of the user.
    pub(super) fn is_of_user(&self) -> bool {
        matches!(self, Self::User | Self::Notifications | Self::List(_) | Self::Direct)
    }

    /// Whether its events are posts that any user may see.
    pub(super) fn is_public(&self) -> bool {
        matches!(self, Self::Public(_) | Self::Hashtag(..))
    }
}
