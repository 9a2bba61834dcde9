//! The channels of streams, by their names in Mastodon.

use feed::accounts::AccessScope;

/// What a client subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    /// Home and notifications.
    User,
    /// Notifications alone.
    Notifications,
    /// The posts of all users.
    Public(&'static str),
    /// One on which nothing is sent: of other servers, hashtags, lists and conversations.
    Silent(&'static str),
}

impl Channel {
    /// The channel of this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        [
            Self::User,
            Self::Notifications,
            Self::Public("public"),
            Self::Public("public:local"),
            Self::Silent("public:media"),
            Self::Silent("public:local:media"),
            Self::Silent("public:remote"),
            Self::Silent("public:remote:media"),
            Self::Silent("hashtag"),
            Self::Silent("hashtag:local"),
            Self::Silent("list"),
            Self::Silent("direct"),
        ]
        .into_iter()
        .find(|channel| channel.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Notifications => "user:notification",
            Self::Public(name) | Self::Silent(name) => name,
        }
    }

    /// The scope that a token needs.
    pub(super) fn scope(self) -> AccessScope {
        match self {
            Self::Notifications => AccessScope::ReadNotifications,
            Self::User | Self::Public(_) | Self::Silent(_) => AccessScope::ReadStatuses,
        }
    }

    /// Whether its events are those of the user.
    pub(super) fn is_of_user(self) -> bool {
        matches!(self, Self::User | Self::Notifications)
    }

    pub(super) fn is_public(self) -> bool {
        matches!(self, Self::Public(_))
    }
}
