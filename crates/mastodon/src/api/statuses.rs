//! Statuses: publishing, reading, editing and deleting them, and threads.

use axum::extract::State;
use axum::response::Response;
use feed::text::{Language, Warning};
use feed::{Command, Done, NewPost, PostEdit, PostId, PostText, UserId, UserRef, thread};
use serde_json::Value;

use super::accounts::{ids, list};
use crate::answers;
use crate::entities::Entities;
use crate::entities::status::visibility;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, Me, Once, Reader, StatusInPath};
use crate::limiter::What;
use crate::state::{Server, Shared};

/// Replies that are shown with a status.
const DESCENDANTS_MAX: usize = 100;
/// Pages of as many replies that are read for them, each of which costs a read: some replies are hidden from the reader.
const DESCENDANT_PAGES_MAX: usize = 10;

impl Server {
    /// The response with a status that the reader may see.
    async fn status(&self, reader: Option<UserId>, post: PostId) -> Result<Response, ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| entities.status(post);
        let status = self.entities(reader, read).await?;
        answers::entity(status)
    }

    /// The response to a change of a status.
    async fn changed_status(&self, me: UserId, post: PostId) -> Result<Response, ApiError> {
        let status = self.entities_done(me, move |entities| entities.status(post)).await?;
        answers::entity(status)
    }

    /// Gives a new status of a user the user's defaults in the place of what was not sent.
    async fn fill_in(
        &self,
        me: UserId,
        new: &mut NewPost,
        fields: &Fields,
    ) -> Result<(), ApiError> {
        let defaults = self.defaults(me).await?.ok_or_else(ApiError::not_found)?;
        if fields.one("visibility")?.is_none() {
            new.visibility = defaults.visibility;
        }
        if fields.flag("sensitive")?.is_none() {
            new.sensitive |= defaults.sensitive;
        }
        if fields.one("language")?.is_none() {
            new.language = defaults.language;
        }
        Ok(())
    }

    /// Checks that a status exists and is the user's own.
    async fn own(&self, me: UserId, post: PostId) -> Result<(), ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| {
            entities.visible_post(post).is_some_and(|post| post.author == me)
        };
        let is_own = self.entities(Some(me), read).await?;
        if is_own { Ok(()) } else { Err(ApiError::not_found()) }
    }
}

/// The text of a new or edited status. What the model lacks is refused, so that no app shows it as done.
fn text(fields: &Fields) -> Result<PostText, ApiError> {
    for (name, what) in [
        ("media_ids", "media"),
        ("poll", "polls"),
        ("scheduled_at", "scheduled statuses"),
        ("quoted_status_id", "quotes"),
        ("quote_id", "quotes"),
    ] {
        if fields.has(name) {
            return Err(ApiError::not_supported(what));
        }
    }
    let text = fields.one("status")?.unwrap_or_default();
    if text.trim().is_empty() {
        return Err(ApiError::invalid("Text can't be blank"));
    }
    Ok(PostText::parse(text)?)
}

/// The warning of a status, and whether it is sensitive: with a warning it always is.
fn warning(fields: &Fields) -> Result<(Warning, bool), ApiError> {
    let warning = Warning::parse(fields.one("spoiler_text")?.unwrap_or_default())?;
    let sensitive = fields.is_true("sensitive")? || !warning.as_str().is_empty();
    Ok((warning, sensitive))
}

fn language(fields: &Fields) -> Result<Option<Language>, ApiError> {
    Ok(fields.one("language")?.map(Language::parse).transpose()?)
}

/// `POST /api/v1/statuses`
pub(crate) async fn create(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let mut new = NewPost::new(UserRef::Id(me), text(&fields)?);
    if let Some(name) = fields.one("visibility")? {
        new.visibility = visibility(name).ok_or_else(|| ApiError::invalid("no such visibility"))?;
    }
    if let Some(id) = fields.one("in_reply_to_id")? {
        new.parent = Some(input::post(id).ok_or_else(ApiError::not_found)?);
    }
    (new.warning, new.sensitive) = warning(&fields)?;
    new.language = language(&fields)?;
    state.limit(What::Posts, u64::from(me.0))?;
    // A retry is recognized by what was sent: the defaults may be others by then.
    let idempotency = once.of(me, &Command::Publish(Box::new(new.clone())));
    state.fill_in(me, &mut new, &fields).await?;
    let command = Command::Publish(Box::new(new));
    match state.change_once(idempotency, command).await? {
        Done::Posted(post) => state.changed_status(me, post).await,
        _ => Err(ApiError::internal()),
    }
}

/// `GET /api/v1/statuses/{id}`
pub(crate) async fn show(
    State(state): State<Shared>,
    Reader(reader): Reader,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    state.status(reader, post).await
}

/// `GET /api/v1/statuses?id[]=`
pub(crate) async fn many(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let ids = ids(&fields)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        list(ids.iter().filter_map(|id| input::post(id)), |post| entities.status(post))
    };
    let found = state.entities(reader, read).await?;
    Ok(answers::json(found))
}

/// `PUT /api/v1/statuses/{id}`
pub(crate) async fn edit(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let text = text(&fields)?;
    state.own(me, post).await?;
    // As in Mastodon, a warning that is not sent is removed, and a language is kept.
    let (warning, sensitive) = warning(&fields)?;
    let edit = PostEdit {
        post,
        text: Some(text),
        warning: Some(warning),
        sensitive: Some(sensitive),
        language: language(&fields)?.map(Some),
    };
    state.change(me, once, Command::Edit(Box::new(edit))).await?;
    state.changed_status(me, post).await
}

/// `DELETE /api/v1/statuses/{id}`: answers with the status and its source, so that it can be written anew.
pub(crate) async fn delete(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
    once: Once,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let text = entities.visible_post(post).filter(|post| post.author == me)?.text;
        let mut status = entities.status(post)?;
        status.as_object_mut()?.insert("text".to_owned(), text.as_str().into());
        Some(status)
    };
    let status: Option<Value> = state.entities(Some(me), read).await?;
    let status = status.ok_or_else(ApiError::not_found)?;
    state.change(me, once, Command::DeletePost { post }).await?;
    answers::entity(Some(status))
}

/// `GET /api/v1/statuses/{id}/context`
pub(crate) async fn context(
    State(state): State<Shared>,
    Reader(reader): Reader,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let post = entities.boosted(post)?;
        let ancestors = thread::ancestors(entities.viewer(), post);
        let descendants = descendants(entities, post);
        let mut out = b"{\"ancestors\":[".to_vec();
        entities.statuses(&ancestors, &mut out);
        out.extend_from_slice(b"],\"descendants\":[");
        entities.statuses(&descendants, &mut out);
        out.extend_from_slice(b"]}");
        Some(out)
    };
    let found = state.entities(reader, read).await?;
    Ok(answers::json(found.ok_or_else(ApiError::not_found)?))
}

/// The first replies below a post that are shown to the reader.
fn descendants(entities: &Entities<'_>, post: PostId) -> Vec<PostId> {
    let (mut found, mut next) = (Vec::new(), Some(Vec::new()));
    for _ in 0..DESCENDANT_PAGES_MAX {
        let Some(from) = next.filter(|_| found.len() < DESCENDANTS_MAX) else { break };
        let page = thread::descendants(entities.viewer(), post, &from, DESCENDANTS_MAX);
        found.extend(page.posts);
        next = page.next;
    }
    found.truncate(DESCENDANTS_MAX);
    found
}

/// `GET /api/v1/statuses/{id}/source`
pub(crate) async fn source(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.source(post);
    let source = state.entities(Some(me), read).await?;
    answers::entity(source)
}

/// `GET /api/v1/statuses/{id}/history`
pub(crate) async fn history(
    State(state): State<Shared>,
    Reader(reader): Reader,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.history(post);
    let history = state.entities(reader, read).await?;
    answers::entity(history)
}

/// What undoes something that a status cannot have: answers with the status as it is.
pub(crate) async fn unchanged(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    state.status(Some(me), post).await
}
