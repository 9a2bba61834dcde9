//! Submission of commands: one method for each command that returns a value.

use std::iter::repeat;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use feed::{
    Bio, Command, Conditional, Done, Draft, Handle, Lifetime, Name, Patch, PostId, PostText,
    Refusal, Revision, Sample, SampleId, StoryId, UserEdit, UserId, UserRef,
};
use node::{Node, Request};

use crate::conditions::{OnlyIf, add_tag, opaque};
use crate::error::ApiError;
use crate::idempotency::{Key, users_of};
use crate::page::json;
use crate::results::Made;
use crate::state::AppState;

/// Header of responses that repeat the result of an earlier request with the same key.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Result of a command.
pub(crate) struct Changed<T> {
    pub(crate) value: T,
    /// Whether an earlier request with the same idempotency key had this result.
    pub(crate) replayed: bool,
    /// Change and its key; `None` without an idempotency key.
    made: Option<Made>,
}

impl<T> Changed<T> {
    /// Marks a response that repeats an earlier result.
    pub(crate) fn mark(&self, mut response: Response) -> Response {
        if self.replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

/// Response with only the id of the created or changed item.
fn only_id(id: u64) -> Response {
    json(format!("{{\"id\":\"{id}\"}}"))
}

impl AppState {
    pub(crate) async fn submit_registration(
        &self,
        handle: Handle,
        name: Name,
        bio: Bio,
        key: Option<Key>,
    ) -> Result<Changed<UserId>, ApiError> {
        let command = Command::Register { handle, name, bio };
        let registered = |done| if let Done::Registered(user) = done { Some(user) } else { None };
        self.submit(command, key, registered).await
    }

    pub(crate) async fn submit_edit(
        &self,
        edit: UserEdit,
        only_if: OnlyIf,
        key: Option<Key>,
    ) -> Result<Changed<UserId>, ApiError> {
        let command = only_if.on(None, Conditional::EditUser(Box::new(edit)));
        let edited = |done| if let Done::Edited(user) = done { Some(user) } else { None };
        self.submit(command, key, edited).await
    }

    pub(crate) async fn submit_post(
        &self,
        draft: Draft,
        key: Option<Key>,
    ) -> Result<Changed<PostId>, ApiError> {
        let posted = |done| if let Done::Posted(post) = done { Some(post) } else { None };
        self.submit(Command::Publish(Box::new(draft)), key, posted).await
    }

    pub(crate) async fn submit_post_edit(
        &self,
        author: UserRef,
        (post, patch): (PostId, Patch),
        only_if: OnlyIf,
        key: Option<Key>,
    ) -> Result<Changed<()>, ApiError> {
        let command = only_if.on(Some(author), Conditional::Edit { post, patch: Box::new(patch) });
        self.submit(command, key, |_| Some(())).await
    }

    /// Makes the response to a change: the result of `render`, or only the id if the item was deleted or the client may
    /// not read.
    pub(crate) async fn respond<T>(
        &self,
        changed: &Changed<T>,
        id: u64,
        may_read: bool,
        render: impl Future<Output = Result<Option<Vec<u8>>, ApiError>>,
    ) -> Result<Response, ApiError> {
        let body = if may_read { self.first_body(changed, render).await? } else { None };
        Ok(changed.mark(body.map_or_else(|| only_id(id), json)))
    }

    /// Makes the response to an edit as [`AppState::respond`] does, and adds the tag of the item. `render` returns a
    /// revision that is not newer than the body.
    pub(crate) async fn respond_tagged<T>(
        &self,
        changed: &Changed<T>,
        id: u64,
        may_read: bool,
        render: impl Future<Output = Result<Option<(Revision, Vec<u8>)>, ApiError>>,
    ) -> Result<Response, ApiError> {
        let mut tag = None;
        let body = async {
            Ok(render.await?.map(|(revision, body)| {
                tag = Some(opaque(revision, &body));
                body
            }))
        };
        let mut response = self.respond(changed, id, may_read, body).await?;
        // A repeated response may be older than the revision. With its tag, a client could overwrite a later edit.
        if let Some(tag) = tag.filter(|_| !changed.replayed) {
            add_tag(&mut response, &tag);
        }
        Ok(response)
    }

    /// Returns the body of the first response to a change, or the result of `render` if that body is no longer stored.
    /// `None` if the item is gone: no response contains what was deleted or has expired.
    pub(crate) async fn first_body<T>(
        &self,
        changed: &Changed<T>,
        render: impl Future<Output = Result<Option<Vec<u8>>, ApiError>>,
    ) -> Result<Option<Bytes>, ApiError> {
        // The body gets no spare capacity, because it may be stored for long.
        let body = render.await?.map(|body| Bytes::from(body.into_boxed_slice()));
        let Some((made, body)) = changed.made.zip(body.clone()) else { return Ok(body) };
        if changed.replayed {
            return Ok(Some(self.results.get(&made).unwrap_or(body)));
        }
        self.results.keep(made, body.clone());
        Ok(Some(body))
    }

    pub(crate) async fn submit_story(
        &self,
        author: UserRef,
        text: PostText,
        life: Lifetime,
        key: Option<Key>,
    ) -> Result<Changed<StoryId>, ApiError> {
        let command = Command::PostStory { author, text, life };
        let posted =
            |done| if let Done::StoryPosted { story, .. } = done { Some(story) } else { None };
        self.submit(command, key, posted).await
    }

    pub(crate) async fn submit_sample(
        &self,
        sample: Sample,
        key: Option<Key>,
    ) -> Result<Changed<SampleId>, ApiError> {
        let added =
            |done| if let Done::SampleAdded { sample } = done { Some(sample) } else { None };
        self.submit(adding(sample), key, added).await
    }

    /// Submits a command without a result, and responds with 204.
    pub(crate) async fn carry_out(
        &self,
        command: Command,
        key: Option<Key>,
    ) -> Result<Response, ApiError> {
        let done = self.submit(command, key, |_| Some(())).await?;
        Ok(done.mark(StatusCode::NO_CONTENT.into_response()))
    }

    pub(crate) async fn submit<T>(
        &self,
        mut command: Command,
        key: Option<Key>,
        value: impl FnOnce(Done) -> Option<T>,
    ) -> Result<Changed<T>, ApiError> {
        let mut idempotency = None;
        if let Some(key) = key {
            self.resolve_users(&mut command).await?;
            idempotency = Some(key.digest(&command));
        }
        let reply = self.node.submit(Request { command, idempotency }).await?;
        let done = reply.outcome?;
        let Some(value) = value(done) else {
            unreachable!("the outcome of a command is one of its kind");
        };
        let made = idempotency.map(|once| Made { once, done });
        Ok(Changed { value, replayed: reply.replayed, made })
    }

    /// Replaces handles by ids without reading from disk. Returns false if an id is not in memory.
    pub(crate) fn try_resolve_users(&self, command: &mut Command) -> bool {
        users_of(command).into_iter().all(|user| {
            let UserRef::Handle(_) = user else { return true };
            let found = self.node.try_resolve(user).flatten();
            found.inspect(|id| *user = UserRef::Id(*id)).is_some()
        })
    }

    /// Replaces handles by ids, including those of deleted users: a retry of their deletion returns the first result,
    /// and the rules refuse any other command.
    ///
    /// # Errors
    /// If a user never existed, or too many reads are queued.
    pub(crate) async fn resolve_users(&self, command: &mut Command) -> Result<(), ApiError> {
        if self.try_resolve_users(command) {
            return Ok(());
        }
        let unknown = [Refusal::UserNotFound].into_iter().chain(repeat(Refusal::OtherNotFound));
        for (user, unknown) in users_of(command).into_iter().zip(unknown) {
            let named = user.clone();
            let find = move |node: &Node| {
                node.resolve(&named).or_else(|| node.facts().resolve_with_deleted(&named))
            };
            let found = self.read(find).await?;
            *user = UserRef::Id(found.ok_or(unknown)?);
        }
        Ok(())
    }
}

/// The command that adds a sample.
pub(crate) fn adding(sample: Sample) -> Command {
    let Sample { set, label, bits } = sample;
    Command::AddSample { set, label, bits: Box::new(bits) }
}
