//! Channels of streams, with their names in Mastodon.

use feed::accounts::AccessScope;
use feed::{ListId, Tag};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::input;
use crate::streams::Published;

/// Parameters of a channel: the hashtag or the list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Of<'a> {
    tag: Option<&'a str>,
    list: Option<&'a str>,
    only_media: bool,
}

impl<'a> Of<'a> {
    pub(super) fn parse(fields: &'a Fields) -> Result<Self, ApiError> {
        let only_media = fields.flag("only_media")?.unwrap_or(false);
        Ok(Self { tag: fields.one("tag")?, list: fields.one("list")?, only_media })
    }
}

/// Channel to which a client subscribes.
#[derive(Clone, Debug)]
pub(super) enum Channel {
    /// Home timeline and notifications.
    User,
    /// Notifications only.
    Notifications,
    /// Posts of all users.
    Public(&'static str),
    /// Posts of all users with pictures.
    Media(&'static str),
    /// Public posts with a hashtag, and the hashtag as the client wrote it.
    Hashtag(&'static str, Tag, String),
    /// Posts at home that are in the timeline of a list.
    List(ListId),
    /// Conversations of the user.
    Direct,
    /// Posts of other servers. The channel is empty, because there are no other servers.
    Remote(&'static str),
}

impl Channel {
    /// Parses the name of a channel. Hashtag and list channels need a parameter. `only_media` restricts a channel of
    /// all users' posts to those with pictures; other channels refuse it.
    pub(super) fn parse(name: &str, of: Of<'_>) -> Option<Self> {
        let name = match (name, of.only_media) {
            ("public" | "public:media", true) => "public:media",
            ("public:local" | "public:local:media", true) => "public:local:media",
            ("public:remote" | "public:remote:media", true) => "public:remote:media",
            (_, true) => return None,
            (name, false) => name,
        };
        let hashtag = |name| {
            let tag = of.tag?;
            Some(Self::Hashtag(name, Tag::parse(tag).ok()?, tag.to_owned()))
        };
        match name {
            "hashtag" => return hashtag("hashtag"),
            "hashtag:local" => return hashtag("hashtag:local"),
            "list" => return Some(Self::List(ListId(input::number(of.list?)?))),
            _ => {}
        }
        [
            Self::User,
            Self::Notifications,
            Self::Public("public"),
            Self::Public("public:local"),
            Self::Media("public:media"),
            Self::Media("public:local:media"),
            Self::Remote("public:remote"),
            Self::Remote("public:remote:media"),
            Self::Direct,
        ]
        .into_iter()
        .find(|channel| channel.name() == name)
    }

    /// Whether both channels have the same events. A hashtag may be written in several ways.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let tag = |channel: &Self| match channel {
            Self::Hashtag(_, tag, _) => Some(tag.clone()),
            _ => None,
        };
        self.name() == other.name() && self.list() == other.list() && tag(self) == tag(other)
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Notifications => "user:notification",
            Self::Direct => "direct",
            Self::List(_) => "list",
            Self::Public(name)
            | Self::Media(name)
            | Self::Hashtag(name, ..)
            | Self::Remote(name) => name,
        }
    }

    /// Hashtag of the channel as the client wrote it, or the id of its list.
    pub(super) fn of(&self) -> Option<String> {
        match self {
            Self::Hashtag(_, _, asked) => Some(asked.clone()),
            Self::List(list) => Some(list.0.to_string()),
            _ => None,
        }
    }

    /// List of the channel.
    pub(super) fn list(&self) -> Option<ListId> {
        match self {
            Self::List(list) => Some(*list),
            _ => None,
        }
    }

    /// Whether the channel includes a change of a post that any user may see. A deletion is sent to all channels of
    /// hashtags and pictures, because it is unknown whether they had the post.
    pub(super) fn has(&self, published: &Published) -> bool {
        let (is_reply, is_deletion) = (published.change.is_reply, published.is_deletion());
        match self {
            Self::Public(_) => !is_reply,
            Self::Media(_) => !is_reply && (is_deletion || published.has_media),
            Self::Hashtag(_, tag, _) => is_deletion || published.tags.contains(tag),
            _ => false,
        }
    }

    /// Scope that the channel needs.
    pub(super) fn scope(&self) -> AccessScope {
        match self {
            Self::Notifications => AccessScope::ReadNotifications,
            _ => AccessScope::ReadStatuses,
        }
    }

    /// Whether the channel has events of the user.
    pub(super) fn is_of_user(&self) -> bool {
        matches!(self, Self::User | Self::Notifications | Self::List(_) | Self::Direct)
    }

    /// Whether the channel has posts that any user may see.
    pub(super) fn is_public(&self) -> bool {
        matches!(self, Self::Public(_) | Self::Media(_) | Self::Hashtag(..))
    }
}
