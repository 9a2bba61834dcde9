//! Lines of users: see [`lines`](super::lines).

use std::borrow::Cow;

use feed::media::MediaId;
use feed::quotes::QuotePolicy;
use feed::{Facts, Language, Markers, Rows, UserId, Visibility};
use serde::{Deserialize, Serialize};

use super::filter_lines::Filter;
use super::lines::{Id, Time, Who};
use super::media_lines::Picture;
use super::post_lines::is_default;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct User<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<u32>,
    #[serde(borrow)]
    pub(crate) handle: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(crate) name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(crate) bio: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registered: Option<Time>,
    /// Whether the user is deleted. Only the handle of a deleted user remains, so that nobody else can take it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deleted: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<Account<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<Field<'a>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bot: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) discoverable: Option<bool>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) indexable: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) defaults: Option<Defaults<'a>>,
    /// Whether the user approves follow requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) locked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) home_marker: Option<Marker>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) notifications_marker: Option<Marker>,
    /// Hashtags that the profile shows.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) featured_tags: Vec<UserTag<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) followed_tags: Vec<UserTag<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) filters: Vec<Filter<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) conversations: Vec<ConversationMark>,
    /// First posts of the muted threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) muted_threads: Vec<Id>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) avatar: Option<Picture<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<Picture<'a>>,
}

/// Hashtag that a profile shows, or that a user follows.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserTag<'a> {
    #[serde(borrow)]
    pub(crate) tag: Cow<'a, str>,
    /// Id that contains the time at which the hashtag was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
}

/// Position up to which a user has read a conversation.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConversationMark {
    /// First post of the conversation.
    pub(crate) first: Id,
    /// Last read post.
    pub(crate) read: Id,
    /// Whether the user has removed the conversation after that post.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) removed: bool,
}

/// Position up to which a user has read a timeline.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marker {
    pub(crate) last_read: Id,
    #[serde(default)]
    pub(crate) version: u32,
    /// Id that contains the time of the last change; apps see only this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) updated: Option<Id>,
}

/// Note of a user about another one.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note<'a> {
    pub(crate) user: Who,
    pub(crate) about: Who,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
}

/// Field of a profile.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) value: Cow<'a, str>,
}

/// Defaults of new posts of a user.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Defaults<'a> {
    pub(crate) visibility: Visibility,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sensitive: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) quote_policy: QuotePolicy,
}

/// Account of a user.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Account<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<Cow<'a, str>>,
    /// Argon2id hash in PHC string format.
    #[serde(borrow)]
    pub(crate) password: Cow<'a, str>,
    /// `user`, `moderator` or `admin`.
    #[serde(borrow)]
    pub(crate) role: Cow<'a, str>,
    /// `pending`, `active` or `disabled`.
    #[serde(borrow)]
    pub(crate) state: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<Time>,
}

impl<'a> User<'a> {
    /// Creates the line of a user, who may be deleted, with the user's account.
    pub(crate) fn new<R: Rows + ?Sized>(
        facts: Facts<'_, R>,
        (id, user): (UserId, &'a feed::User),
        account: Option<&'a feed::accounts::Account>,
    ) -> Self {
        let fields = user.fields.as_slice().iter();
        let deleted = facts.is_deleted(id);
        // Markers of a deleted user are about to be removed.
        let markers = if deleted { Markers::default() } else { facts.markers(id) };
        let marker = |marker: feed::Marker| Marker {
            last_read: Id(marker.last_read),
            version: marker.version,
            updated: Some(Id(marker.updated.0)),
        };
        let tags = |found: Vec<feed::facts::UserTag>| {
            let found = found.into_iter().filter(|_| !deleted);
            let line = |found: feed::facts::UserTag| UserTag {
                tag: found.tag.as_str().to_owned().into(),
                id: Some(Id(found.since.0)),
            };
            found.map(line).collect()
        };
        let marks = if deleted { Vec::new() } else { facts.conversation_marks(id) };
        let mark = |mark: feed::conversations::ConversationMark| ConversationMark {
            first: Id(mark.first.0),
            read: Id(mark.read.0),
            removed: mark.is_removed,
        };
        let threads = if deleted { Vec::new() } else { facts.muted_threads(id) };
        let filters = if deleted { Vec::new() } else { facts.filters(id) };
        let picture = |media: Option<MediaId>| {
            media.filter(|_| !deleted).and_then(|media| Picture::of(facts, media))
        };
        let defaults = Some(&user.defaults).filter(|defaults| !is_default(*defaults));
        Self {
            id: Some(id.0),
            handle: user.handle.as_str().into(),
            name: user.name.as_str().into(),
            bio: user.bio.as_str().into(),
            registered: Some(Time(user.registered.unix_ms())),
            deleted,
            account: account.map(|account| Account {
                email: account.email.as_ref().map(|email| email.as_str().into()),
                password: account.password.as_str().into(),
                role: account.role.name().into(),
                state: account.state.name().into(),
                created: Some(Time(account.created.unix_ms())),
            }),
            fields: fields
                .map(|field| Field { name: field.name().into(), value: field.value().into() })
                .collect(),
            bot: user.bot,
            discoverable: user.undiscoverable.then_some(false),
            indexable: user.indexable,
            defaults: defaults.map(|defaults| Defaults {
                visibility: defaults.visibility,
                sensitive: defaults.sensitive,
                language: defaults.language.as_ref().map(Language::as_str).map(Into::into),
                quote_policy: defaults.quote_policy,
            }),
            locked: !deleted && facts.is_locked(id),
            home_marker: markers.home.map(marker),
            notifications_marker: markers.notifications.map(marker),
            featured_tags: tags(facts.featured_tags(id)),
            followed_tags: tags(facts.followed_tags(id)),
            filters: filters.into_iter().map(Filter::from).collect(),
            conversations: marks.into_iter().map(mark).collect(),
            muted_threads: threads.into_iter().map(|first| Id(first.0)).collect(),
            avatar: picture(user.avatar),
            header: picture(user.header),
        }
    }
}
