//! Statuses: publishing, reading, editing and deleting them, and threads.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use feed::media::{MediaCommand, MediaPostEdit, NewMediaPost};
use feed::poll::{NewPollPost, PollCommand, PollPostEdit};
use feed::schedule::{ScheduleCommand, ScheduleDone, ScheduledPost};
use feed::text::{Language, Warning};
use feed::{Command, Done, NewPost, PostEdit, PostId, PostText, Refusal, UserId, UserRef, thread};
use serde_json::{Value, json};

use super::accounts::{ids, list};
use super::{media, polls, scheduled};
use crate::access::Needs;
use crate::answers;
use crate::domain;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::json::Json;
use crate::entities::status::visibility;
use crate::entities::time::day;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, Me, Once, Reader, StatusInPath};
use crate::limiter::What;
use crate::state::{Server, Shared};

/// Adds the routes.
pub(crate) fn routes(table: &mut Endpoints) {
    table.post("/api/v1/statuses", Needs::WRITE_STATUSES, create);
    table.get("/api/v1/statuses", Needs::ANYONE_STATUSES, many);
    table.get("/api/v1/statuses/{id}", Needs::ANYONE_STATUSES, show);
    table.put("/api/v1/statuses/{id}", Needs::WRITE_STATUSES, edit);
    table.delete("/api/v1/statuses/{id}", Needs::WRITE_STATUSES, delete);
    table.get("/api/v1/statuses/{id}/context", Needs::ANYONE_STATUSES, context);
    table.get("/api/v1/statuses/{id}/source", Needs::MY_STATUSES, source);
    table.get("/api/v1/statuses/{id}/history", Needs::ANYONE_STATUSES, history);
}

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

    /// A status that was published after a time, from memory alone. None if that is not possible: also for a retry, whose
    /// status is older.
    fn new_status(&self, me: UserId, post: PostId, began_ms: u64) -> Option<Json> {
        // The other day is that of an account's last status.
        let is_new = post.unix_ms() >= began_ms && day(post.unix_ms()) == day(self.node.now_ms());
        let mut entities = Entities::of_new(&self.renderer, me, post).filter(|_| is_new)?;
        entities.status(post).filter(|_| !entities.lacks_something())
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

    /// The response to an app that knows whom a new status should mention, if the text mentions others. It lists their
    /// accounts, so that the app can ask its user.
    async fn unexpected(
        &self,
        me: UserId,
        text: &PostText,
        fields: &Fields,
    ) -> Result<Option<Response>, ApiError> {
        let mut allowed = fields.all("allowed_mentions").peekable();
        if allowed.peek().is_none() {
            return Ok(None);
        }
        let allowed: BTreeSet<_> = allowed.filter_map(input::user).collect();
        let text = text.clone();
        let read = move |_: &_, entities: &mut Entities<'_>| {
            let mentioned =
                feed::mentioned(&text, me, None, |handle| entities.facts().by_handle(handle));
            let is_unexpected =
                |user: &UserId| !allowed.contains(user) && entities.viewer().visible_user(*user);
            let unexpected: Vec<_> = mentioned.into_iter().filter(is_unexpected).collect();
            let is_expected = unexpected.is_empty();
            (!is_expected).then(|| list(unexpected.into_iter(), |user| entities.account(user)))
        };
        Ok(self.entities(Some(me), read).await?.map(|accounts| {
            let mut body =
                br#"{"error":"Post would be sent to unexpected accounts","unexpected_accounts":"#
                    .to_vec();
            body.extend_from_slice(&accounts);
            body.push(b'}');
            let mut response = answers::json(body);
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            response
        }))
    }

    /// Whether a status that is the user's own has pictures, and whether it has a poll.
    async fn own(&self, me: UserId, post: PostId) -> Result<(bool, bool), ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| {
            let own = entities.visible_post(post).filter(|post| post.author == me);
            own.map(|post| (!post.media.is_empty(), post.poll.is_some()))
        };
        self.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)
    }
}

/// The text of a new or edited status, which only one with pictures lacks. What the model lacks is refused, so that no app
/// shows it as done.
fn text(fields: &Fields, has_pictures: bool, base: &str) -> Result<PostText, ApiError> {
    for (name, what) in [("quoted_status_id", "quotes"), ("quote_id", "quotes")] {
        if fields.has(name) {
            return Err(ApiError::not_supported(what));
        }
    }
    match fields.one("status")?.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => Ok(PostText::written(text, domain(base))?),
        None if has_pictures => Ok(PostText::none()),
        None => Err(ApiError::invalid("Text can't be blank")),
    }
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

pub(crate) async fn create(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let began_ms = state.node.now_ms();
    let media = media::named(&fields)?.unwrap_or_default();
    let text = text(&fields, !media.is_empty(), &state.options.base)?;
    let poll = polls::named(&fields)?.flatten();
    let due_ms = scheduled::due_ms(&fields)?;
    let mut new = NewPost::new(UserRef::Id(me), text);
    if let Some(name) = fields.one("visibility")? {
        new.visibility = visibility(name).ok_or_else(|| ApiError::invalid("no such visibility"))?;
    }
    if let Some(id) = fields.one("in_reply_to_id")? {
        new.parent = Some(input::post(id).ok_or_else(ApiError::not_found)?);
    }
    (new.warning, new.sensitive) = warning(&fields)?;
    new.language = language(&fields)?;
    state.limit(What::Posts, u64::from(me.0))?;
    if let Some(refusal) = state.unexpected(me, &new.text, &fields).await? {
        return Ok(refusal);
    }
    // A retry is recognized by what was sent: the defaults may be others by then.
    let mut new = ScheduledPost { post: new, media, poll, due_ms: 0 };
    let idempotency = once.of(me, &publish(new.clone(), due_ms)?);
    state.fill_in(me, &mut new.post, &fields).await?;
    match state.change_once(idempotency, publish(new, due_ms)?).await? {
        Done::Posted(post) => match state.new_status(me, post, began_ms) {
            Some(status) => answers::entity(Some(status)),
            None => state.changed_status(me, post).await,
        },
        Done::Schedule(ScheduleDone::Saved(id)) => state.changed_scheduled(me, id).await,
        _ => Err(ApiError::internal()),
    }
}

/// The command that publishes a post at once, or then.
fn publish(new: ScheduledPost, due_ms: Option<u64>) -> Result<Command, ApiError> {
    if let Some(due_ms) = due_ms {
        let new = Box::new(ScheduledPost { due_ms, ..new });
        return Ok(Command::Schedule(ScheduleCommand::Create(new)));
    }
    let ScheduledPost { post, media, poll, .. } = new;
    Ok(match (poll, media.is_empty()) {
        (None, true) => Command::Publish(Box::new(post)),
        (None, false) => {
            Command::Media(MediaCommand::Publish(Box::new(NewMediaPost { post, media })))
        }
        (Some(poll), true) => {
            Command::Poll(PollCommand::Publish(Box::new(NewPollPost { post, poll })))
        }
        (Some(_), false) => return Err(Refusal::PollWithMedia.into()),
    })
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Reader(reader): Reader,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    state.status(reader, post).await
}

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

pub(crate) async fn edit(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (pictures, changes) = (media::named(&fields)?, media::changes(&fields)?);
    // Also before anything is read: what is refused in any case says nothing about the status.
    text(&fields, true, &state.options.base)?;
    let poll = polls::named(&fields)?;
    let (has_pictures, has_poll) = state.own(me, post).await?;
    let has_pictures = pictures.as_ref().map_or(has_pictures, |named| !named.is_empty());
    let text = text(&fields, has_pictures, &state.options.base)?;
    state.limit(What::Posts, u64::from(me.0))?;
    // As in Mastodon, a warning that is not sent is removed, and a language is kept.
    let (warning, sensitive) = warning(&fields)?;
    let edit = PostEdit {
        post,
        text: Some(text),
        warning: Some(warning),
        sensitive: Some(sensitive),
        language: language(&fields)?.map(Some),
    };
    // Pictures that are named replace a poll that is not.
    let poll = poll.or_else(|| {
        let replaces = pictures.as_ref().is_some_and(|named| !named.is_empty()) && has_poll;
        replaces.then_some(None)
    });
    let command = match (poll, pictures.is_none() && changes.is_empty()) {
        (Some(poll), _) => {
            let edit = PollPostEdit { edit, poll, media: pictures, changes };
            Command::Poll(PollCommand::Edit(Box::new(edit)))
        }
        (None, true) => Command::Edit(Box::new(edit)),
        (None, false) => {
            let edit = MediaPostEdit { edit, media: pictures, changes };
            Command::Media(MediaCommand::Edit(Box::new(edit)))
        }
    };
    state.change(me, once, command).await?;
    state.changed_status(me, post).await
}

/// Deletes a status, and answers with it and its source, so that it can be written anew.
pub(crate) async fn delete(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let deletes_media = fields.is_true("delete_media")?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let text = entities.visible_post(post).filter(|post| post.author == me)?.text;
        let mut status = entities.status(post)?.into_value();
        let parts = status.as_object_mut()?;
        parts.insert("text".to_owned(), text.as_str().into());
        if deletes_media {
            // No app attaches them to what is written anew.
            parts.insert("media_attachments".to_owned(), json!([]));
        }
        Some(status)
    };
    let status: Option<Value> = state.entities(Some(me), read).await?;
    let status = status.ok_or_else(ApiError::not_found)?;
    let has_media = |status: &Value| status["media_attachments"] != json!([]);
    // Without pictures the two do the same.
    let command = match has_media(&status) {
        true => Command::Media(MediaCommand::Redraft { post }),
        false => Command::DeletePost { post },
    };
    state.change(me, once, command).await?;
    answers::entity(Some(status))
}

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

pub(crate) async fn source(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.source(post);
    let source = state.entities(Some(me), read).await?;
    answers::entity(source)
}

pub(crate) async fn history(
    State(state): State<Shared>,
    Reader(reader): Reader,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.history(post);
    let history: Option<Json> = state.entities(reader, read).await?;
    answers::entity(history)
}
