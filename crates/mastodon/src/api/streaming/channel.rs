//! The channels of streams, by their names in Mastodon.

use feed::Tag;
use feed::accounts::AccessScope;

use crate::streams::Published;

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
    /// One on which nothing is sent: of other servers, lists and conversations.
    Silent(&'static str),
}

impl Channel {
    /// The channel of this name; that of a hashtag needs one.
    pub(super) fn parse(name: &str, tag: Option<&str>) -> Option<Self> {
        let tag = |name| Some(Self::Hashtag(name, Tag::parse(tag?).ok()?));
        match name {
            "hashtag" => return tag("hashtag"),
            "hashtag:local" => return tag("hashtag:local"),
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
            Self::Silent("list"),
            Self::Silent("direct"),
        ]
        .into_iter()
        .find(|channel| channel.name() == name)
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Notifications => "user:notification",
            Self::Public(name) | Self::Hashtag(name, _) | Self::Silent(name) => name,
        }
    }

    /// The hashtag of its posts.
    pub(super) fn tag(&self) -> Option<&Tag> {
        match self {
            Self::Hashtag(_, tag) => Some(tag),
            _ => None,
        }
    }

    /// Whether a post that any user may see is one of this channel.
    pub(super) fn has(&self, published: &Published) -> bool {
        match self {
            Self::Public(_) => !published.is_reply,
            Self::Hashtag(_, tag) => published.tags.contains(tag),
            Self::User | Self::Notifications | Self::Silent(_) => false,
        }
    }

    /// The scope that a token needs.
    pub(super) fn scope(&self) -> AccessScope {
        match self {
            Self::Notifications => AccessScope::ReadNotifications,
            Self::User | Self::Public(_) | Self::Hashtag(..) | Self::Silent(_) => {
                AccessScope::ReadStatuses
            }
        }
    }

    /// Whether its events are those of the user.
    pub(super) fn is_of_user(&self) -> bool {
        matches!(self, Self::User | Self::Notifications)
    }

    /// Whether its events are posts that any user may see.
    pub(super) fn is_public(&self) -> bool {
        matches!(self, Self::Public(_) | Self::Hashtag(..))
    }
}
