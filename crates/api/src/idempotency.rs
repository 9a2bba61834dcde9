//! `Idempotency-Key`: retries of a change with the same key return the first result.
//!
//! A key is valid for one kind of change to one resource, whether the path has the handle or the id of the resource.
//! The same key with another resource is another key. For a registration, which has no resource, the same key of
//! another application is another key. A request with a used key and other content is refused. A key in a line of a
//! batch is the same key as in a header. **Invariant:** users are resolved to their ids before a key is digested.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use edge::only;
use feed::{Command, Condition, Conditional, Idempotency, UserRef};
use node::IdempotencyKey;
use smallvec::{SmallVec, smallvec};

use crate::current_session::current;
use crate::error::ApiError;
use crate::unsent::Client;

/// Header with an idempotency key.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Valid key with its sender. A change by an application is never a retry of a change by a user, nor the reverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    key: IdempotencyKey,
    client: Client,
    is_of_user: bool,
}

impl Key {
    /// Parses a key.
    ///
    /// # Errors
    /// `bad_idempotency_key`
    pub(crate) fn parse(key: &[u8]) -> Result<Self, ApiError> {
        let key = IdempotencyKey::parse(key).ok_or_else(ApiError::bad_idempotency_key)?;
        Ok(Self { key, client: Client::default(), is_of_user: false })
    }

    /// Sets the application that sends the key.
    pub(crate) fn of_client(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// Parses the key in the header, if present.
    pub(crate) fn of(parts: &Parts) -> Result<Option<Self>, ApiError> {
        let key = only(&parts.headers, &IDEMPOTENCY_KEY);
        let key = key.map_err(|_| ApiError::bad_idempotency_key())?;
        let key = key.map(|key| Self::parse(key.as_bytes())).transpose()?;
        Ok(key.map(|key| Self { is_of_user: current(parts).is_some(), ..key }))
    }

    /// Key and digest with which a command is logged. The users of the command must be resolved.
    pub(crate) fn digest(&self, command: &Command) -> Idempotency {
        let scope = scope(command, self.client);
        let scope = if self.is_of_user { format!("of_user {scope}") } else { scope };
        self.key.digest(&scope, command)
    }
}

/// Kind of a change and its resource, as text.
fn scope(command: &Command, client: Client) -> String {
    let id = |user: &UserRef| match user {
        UserRef::Id(id) => id.0.to_string(),
        UserRef::Handle(handle) => format!("@{}", handle.as_str()),
    };
    match command {
        Command::Register { .. } => format!("register {client:?}"),
        Command::EditUser(edit) => format!("edit_profile {}", id(&edit.user)),
        Command::Follow { user, other } => format!("follow {} {}", id(user), id(other)),
        // The users to follow belong to the content of the command, not to its resource.
        Command::FollowMany { user, .. } => format!("follow_many {}", id(user)),
        Command::Unfollow { user, other } => format!("unfollow {} {}", id(user), id(other)),
        Command::Befriend { user, other } => format!("befriend {} {}", id(user), id(other)),
        Command::Unfriend { user, other } => format!("unfriend {} {}", id(user), id(other)),
        Command::Publish(draft) => format!("post {}", id(&draft.author)),
        Command::Edit { post, .. } => format!("edit_post {}", post.0),
        Command::DeletePost { post } => format!("delete_post {}", post.0),
        Command::PostStory { author, .. } => format!("post_story {}", id(author)),
        Command::DeleteStory { story } => format!("delete_story {}", story.0),
        Command::ViewStory { story, viewer } => format!("view_story {} {}", id(viewer), story.0),
        Command::AddSample { set, .. } => format!("add_sample {}", set.as_str()),
        Command::DeleteSample { sample } => format!("delete_sample {}", sample.0),
        Command::DeleteUser { user } => format!("delete_user {}", id(user)),
        Command::Block { user, other } => format!("block {} {}", id(user), id(other)),
        Command::Unblock { user, other } => format!("unblock {} {}", id(user), id(other)),
        Command::Mute { user, other, .. } => format!("mute {} {}", id(user), id(other)),
        Command::Unmute { user, other } => format!("unmute {} {}", id(user), id(other)),
        Command::NotInterested { user, other, on } => {
            format!("not_interested {} {} {on}", id(user), id(other))
        }
        Command::React { user, post, reaction, on } => {
            format!("react {} {} {reaction:?} {on}", id(user), post.0)
        }
        Command::ClearNotifications { user } => format!("clear_notifications {}", id(user)),
        Command::DismissNotification { user, notification } => {
            format!("dismiss_notification {} {}", id(user), notification.0)
        }
        Command::FeatureTag { user, tag, .. } => {
            format!("feature_tag {} {}", id(user), tag.as_str())
        }
        Command::FollowTag { user, tag, .. } => format!("follow_tag {} {}", id(user), tag.as_str()),
        Command::SetNote { user, other, .. } => format!("set_note {} {}", id(user), id(other)),
        Command::AnswerRequest { user, other, accept } => {
            format!("answer_request {} {} {accept}", id(user), id(other))
        }
        Command::SetMarkers(update) => format!("set_markers {}", id(&update.user)),
        // The author is part of the scope, so that no user learns that another user has changed the post with this key.
        Command::If(condition) => {
            let author = condition.author.as_ref().map(id).unwrap_or_default();
            format!("{} {author}", scope(&condition.command(), client))
        }
        Command::DoDue(_)
        | Command::EraseUser { .. }
        | Command::Account(_)
        | Command::Media(_)
        | Command::Vote { .. }
        | Command::Schedule(_)
        | Command::List(_)
        | Command::Filter(_)
        | Command::Conversation(_)
        | Command::UnreadConversation { .. }
        | Command::FollowWith(_)
        | Command::SetFeed { .. }
        | Command::MuteThread { .. } => {
            unreachable!("commands without an idempotency key")
        }
    }
}

/// Users that a command names.
pub(crate) fn users_of(command: &mut Command) -> SmallVec<[&mut UserRef; 2]> {
    match command {
        Command::DeleteUser { user }
        | Command::React { user, .. }
        | Command::ClearNotifications { user }
        | Command::DismissNotification { user, .. } => smallvec![user],
        Command::PostStory { author, .. } => smallvec![author],
        Command::Publish(draft) => smallvec![&mut draft.author],
        Command::EditUser(edit) => smallvec![&mut edit.user],
        Command::SetMarkers(update) => smallvec![&mut update.user],
        Command::Filter(command) => smallvec![&mut command.user],
        Command::Conversation(update) => smallvec![&mut update.user],
        Command::List(command) => smallvec![&mut command.user],
        Command::FeatureTag { user, .. }
        | Command::FollowTag { user, .. }
        | Command::UnreadConversation { user, .. }
        | Command::MuteThread { user, .. } => smallvec![user],
        Command::FollowWith(with) => smallvec![&mut with.user, &mut with.other],
        Command::ViewStory { viewer, .. } => smallvec![viewer],
        Command::Follow { user, other }
        | Command::Unfollow { user, other }
        | Command::Befriend { user, other }
        | Command::Unfriend { user, other }
        | Command::Block { user, other }
        | Command::Unblock { user, other }
        | Command::Mute { user, other, .. }
        | Command::NotInterested { user, other, .. }
        | Command::SetNote { user, other, .. }
        | Command::AnswerRequest { user, other, .. }
        | Command::Unmute { user, other } => smallvec![user, other],
        Command::FollowMany { user, others } => std::iter::once(user).chain(others).collect(),
        Command::If(condition) => {
            let Condition { author, change, .. } = &mut **condition;
            let user = match change {
                Conditional::EditUser(edit) => Some(&mut edit.user),
                Conditional::DeleteUser { user } => Some(user),
                Conditional::Edit { .. }
                | Conditional::DeletePost { .. }
                | Conditional::DeleteStory { .. } => None,
            };
            author.iter_mut().chain(user).collect()
        }
        Command::Register { .. }
        | Command::Edit { .. }
        | Command::DeletePost { .. }
        | Command::DeleteStory { .. }
        | Command::AddSample { .. }
        | Command::DeleteSample { .. }
        | Command::EraseUser { .. }
        | Command::Account(_)
        | Command::Media(_)
        | Command::Vote { .. }
        | Command::Schedule(_)
        | Command::SetFeed { .. }
        | Command::DoDue(_) => smallvec![],
    }
}

/// Idempotency key of a request without a body.
pub(crate) struct Once(pub(crate) Option<Key>);

impl<S: Send + Sync> FromRequestParts<S> for Once {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Key::of(parts).map(Self)
    }
}

/// Extractor of changes that do not support keys: a request with a key is refused.
pub(crate) struct NoKey;

impl<S: Send + Sync> FromRequestParts<S> for NoKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        refuse(
            &parts.headers,
            "this change does not support Idempotency-Key; changes of keys of buckets support If-Match and If-None-Match",
        )?;
        Ok(Self)
    }
}

/// Refuses a request with a key.
///
/// # Errors
/// `idempotency_key_not_supported`
pub(crate) fn refuse(headers: &HeaderMap, why: &'static str) -> Result<(), ApiError> {
    match headers.contains_key(IDEMPOTENCY_KEY) {
        true => Err(ApiError::idempotency_key_not_supported(why)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use feed::{Draft, PostText, UserId};

    use super::*;

    fn post(author: u32, text: &str) -> Command {
        let text = PostText::parse(text).unwrap();
        Command::Publish(Box::new(Draft::new(UserRef::Id(UserId(author)), text)))
    }

    fn follow(user: u32, other: u32) -> Command {
        let [user, other] = [user, other].map(|id| UserRef::Id(UserId(id)));
        Command::Follow { user, other }
    }

    #[test]
    fn a_key_is_valid_for_one_kind_of_change_to_one_resource() {
        let digest = |key: &str, command| Key::parse(key.as_bytes()).unwrap().digest(&command);
        let first = digest("k", post(1, "x"));
        assert_eq!(first, digest("k", post(1, "x")));
        let other_text = digest("k", post(1, "y"));
        assert!(first.key == other_text.key && first.content != other_text.content);
        for other in [digest("k", post(2, "x")), digest("l", post(1, "x"))] {
            assert_ne!(first.key, other.key);
        }
        assert_ne!(digest("k", follow(1, 23)).key, digest("k", follow(12, 3)).key);
        assert_ne!(digest("k", follow(1, 2)).key, digest("k", follow(2, 1)).key);
    }
}
