//! Statuses: publishing, reading, editing and deleting; and threads.

use std::collections::BTreeSet;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use feed::media::MediaCommand;
use feed::quotes::QuotePolicy;
use feed::schedule::{ScheduleCommand, ScheduleDone, ScheduledPost};
use feed::text::{Language, Warning};
use feed::{
    Command, Done, Draft, Patch, Post, PostId, PostText, Refusal, Reply, UserId, UserRef, thread,
};
use node::Request;
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
use crate::input::{self, InPath, Me, Once, Reader};
use crate::limiter::What;
use crate::paging;
use crate::state::{Server, Shared};

/// Adds the routes of statuses.
pub(crate) fn routes(table: &mut Endpoints) {
    table.post("/api/v1/statuses", Needs::WRITE_STATUSES, create);
    table.get("/api/v1/statuses", Needs::ANYONE_STATUSES, many);
    table.get("/api/v1/statuses/{id}", Needs::ANYONE_STATUSES, show);
    table.put("/api/v1/statuses/{id}", Needs::WRITE_STATUSES, edit);
    table.delete("/api/v1/statuses/{id}", Needs::WRITE_STATUSES, delete);
    table.get("/api/v1/statuses/{id}/context", Needs::ANYONE_STATUSES, context);
    table.get("/api/v1/statuses/{id}/source", Needs::MY_STATUSES, source);
    table.get("/api/v1/statuses/{id}/history", Needs::ANYONE_STATUSES, history);
    table.get("/api/v1/statuses/{id}/quotes", Needs::ANYONE_STATUSES, quotes);
    let revoke = "/api/v1/statuses/{id}/quotes/{quoting}/revoke";
    table.post(revoke, Needs::WRITE_STATUSES, revoke_quote);
    let policy = "/api/v1/statuses/{id}/interaction_policy";
    table.put(policy, Needs::WRITE_STATUSES, interaction_policy);
}

/// Maximum number of replies shown with a status.
const DESCENDANTS_MAX: usize = 100;
/// Maximum number of pages of replies that are read to show [`DESCENDANTS_MAX`]. Each page costs a read, and some
/// replies are hidden from the reader.
const DESCENDANT_PAGES_MAX: usize = 10;

impl Server {
    /// Responds with a status that the reader may see.
    async fn status(&self, reader: Option<UserId>, post: PostId) -> Result<Response, ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| entities.status(post);
        let status = self.entities(reader, read).await?;
        answers::entity(status)
    }

    /// The status that the user has just published, made from memory only. `None` if that is impossible, or if the
    /// status was published before `began_ms`, as for a retry.
    fn new_status(&self, me: UserId, post: PostId, began_ms: u64) -> Option<Json> {
        // The account in the entity has the day of its last status, so the status must be of today.
        let is_new = post.unix_ms() >= began_ms && day(post.unix_ms()) == day(self.node.now_ms());
        let mut entities = Entities::of_new(&self.renderer, me, post).filter(|_| is_new)?;
        entities.status(post).filter(|_| !entities.lacks_something())
    }

    /// Responds to a change of a status.
    async fn changed_status(&self, me: UserId, post: PostId) -> Result<Response, ApiError> {
        let status = self.entities_done(me, move |entities| entities.status(post)).await?;
        answers::entity(status)
    }

    /// Sets missing parts of a user's new status to the user's defaults.
    async fn fill_in(
        &self,
        me: UserId,
        draft: &mut Draft,
        fields: &Fields,
    ) -> Result<(), ApiError> {
        let defaults = self.defaults(me).await?.ok_or_else(ApiError::not_found)?;
        if fields.one("visibility")?.is_none() {
            draft.visibility = defaults.visibility;
        }
        if fields.flag("sensitive")?.is_none() {
            draft.content.sensitive |= defaults.sensitive;
        }
        if fields.one("language")?.is_none() {
            draft.content.language = defaults.language;
        }
        if fields.one(QUOTE_POLICY)?.is_none() {
            draft.quote_policy = defaults.quote_policy;
        }
        Ok(())
    }

    /// Response to an app that lists the users whom a new status should mention, if the text mentions other users.
    /// Contains the accounts of these others, so that the app can ask its user.
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

    /// Checks that a status belongs to the user.
    async fn own(&self, me: UserId, post: PostId) -> Result<Post, ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| {
            entities.visible_post(post).filter(|post| post.author == me)
        };
        self.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)
    }
}

/// Content of a new or edited status in a request. As in Mastodon, absent text and warning become empty, and a warning
/// makes the status sensitive. If language, pictures or poll are absent, an edit leaves them unchanged, but new
/// pictures replace a poll that the request does not name.
fn said(fields: &Fields, base: &str) -> Result<Patch, ApiError> {
    // Other servers use this name. If it were ignored, the status would be published without the quote.
    if fields.one("quote_id")?.is_some() {
        return Err(ApiError::invalid("quote_id is not supported: use quoted_status_id"));
    }
    let text = match fields.one("status")?.map_or("", str::trim) {
        "" => PostText::none(),
        text => PostText::written(text, domain(base))?,
    };
    let warning = Warning::parse(fields.one("spoiler_text")?.unwrap_or_default())?;
    let sensitive = fields.is_true("sensitive")? || !warning.as_str().is_empty();
    let media = media::named(fields)?;
    let replaces = media.as_ref().is_some_and(|named| !named.is_empty());
    Ok(Patch {
        text: Some(text),
        warning: Some(warning),
        sensitive: Some(sensitive),
        language: fields.one("language")?.map(Language::parse).transpose()?.map(Some),
        media,
        poll: polls::named(fields)?.or(replaces.then_some(None)),
        described: Vec::new(),
        revoke_quote: false,
        quote_policy: quote_policy(fields, QUOTE_POLICY)?,
    })
}

/// Quote policy in a field of a request.
pub(super) fn quote_policy(fields: &Fields, field: &str) -> Result<Option<QuotePolicy>, ApiError> {
    let wrong = || ApiError::invalid(format!("no such {field}"));
    let named = |name| QuotePolicy::named(name).ok_or_else(wrong);
    fields.one(field)?.map(named).transpose()
}

/// Field with the quote policy of a status.
const QUOTE_POLICY: &str = "quote_approval_policy";

/// Error for a refused status. Its text alone was valid, so `BadText` means that the status is blank.
fn without_text(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::BadText => ApiError::invalid("Text can't be blank"),
        refusal => refusal.into(),
    }
}

pub(crate) async fn create(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let began_ms = state.node.now_ms();
    let patch = said(&fields, &state.options.base)?;
    let due_ms = scheduled::due_ms(&fields)?;
    let mut draft = Draft::saying(UserRef::Id(me), patch);
    draft.check().map_err(without_text)?;
    if let Some(name) = fields.one("visibility")? {
        draft.visibility =
            visibility(name).ok_or_else(|| ApiError::invalid("no such visibility"))?;
    }
    if let Some(id) = fields.one("in_reply_to_id")? {
        draft.parent = Some(input::post(id).ok_or_else(ApiError::not_found)?);
    }
    if let Some(id) = fields.one("quoted_status_id")? {
        draft.quote = Some(input::post(id).ok_or_else(ApiError::not_found)?);
    }
    state.limit(What::Posts, u64::from(me.0))?;
    if let Some(refusal) = state.unexpected(me, &draft.content.text, &fields).await? {
        return Ok(refusal);
    }
    // A retry is recognized by the draft before the defaults are filled in, since they may have changed by then.
    let idempotency = once.of(me, &publish(draft.clone(), due_ms));
    state.fill_in(me, &mut draft, &fields).await?;
    match state.change_once(idempotency, publish(draft, due_ms)).await? {
        Done::Posted(post) => match state.new_status(me, post, began_ms) {
            Some(status) => answers::entity(Some(status)),
            None => state.changed_status(me, post).await,
        },
        Done::Schedule(ScheduleDone::Saved(id)) => state.changed_scheduled(me, id).await,
        _ => Err(ApiError::internal()),
    }
}

/// Command that publishes a draft now, or at `due_ms`.
fn publish(draft: Draft, due_ms: Option<u64>) -> Command {
    match due_ms {
        Some(due_ms) => {
            let new = Box::new(ScheduledPost { draft, due_ms });
            Command::Schedule(ScheduleCommand::Create(new))
        }
        None => Command::Publish(Box::new(draft)),
    }
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(post): InPath<PostId>,
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
    InPath(post): InPath<PostId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    // The descriptions are checked before the status is read: a request that is always refused reveals nothing about
    // the status.
    let described = media::changes(&fields)?;
    let patch = Patch { described, ..said(&fields, &state.options.base)? };
    let quote = state.own(me, post).await?.quote.map(|quote| quote.post);
    if let Some(id) = fields.one("quoted_status_id")?
        && quote != input::post(id)
    {
        return Err(ApiError::invalid("the quote of a status cannot be changed"));
    }
    state.limit(What::Posts, u64::from(me.0))?;
    let command = Command::edit(post, patch);
    let idempotency = once.of(me, &command);
    let Reply { outcome, .. } = state.node.submit(Request { idempotency, command }).await?;
    outcome.map_err(without_text)?;
    state.changed_status(me, post).await
}

/// Deletes a status, and responds with it and its source, so that it can be written again.
pub(crate) async fn delete(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(post): InPath<PostId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let deletes_media = fields.is_true("delete_media")?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let text = entities.visible_post(post).filter(|post| post.author == me)?.content.text;
        let mut status = entities.status(post)?.into_value();
        let parts = status.as_object_mut()?;
        parts.insert("text".to_owned(), text.as_str().into());
        if deletes_media {
            // The pictures are not returned, so that no app attaches them to the new status.
            parts.insert("media_attachments".to_owned(), json!([]));
        }
        Some(status)
    };
    let status: Option<Value> = state.entities(Some(me), read).await?;
    let status = status.ok_or_else(ApiError::not_found)?;
    let has_media = |status: &Value| status["media_attachments"] != json!([]);
    // For a status without pictures, both commands do the same.
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
    InPath(post): InPath<PostId>,
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

/// First replies below a post that are shown to the reader.
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
    InPath(post): InPath<PostId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.source(post);
    let source = state.entities(Some(me), read).await?;
    answers::entity(source)
}

pub(crate) async fn history(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(post): InPath<PostId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.history(post);
    let history: Option<Json> = state.entities(reader, read).await?;
    answers::entity(history)
}

/// Responds with the quotes of a status, or of the status that it boosts.
pub(crate) async fn quotes(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(post): InPath<PostId>,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let found = entities.viewer().quotes(entities.boosted(post)?, &asked);
        Some(paging::list(&asked, found, |quote| entities.status(quote)))
    };
    let listed = state.entities(reader, read).await?;
    state.listed(uri.path(), &fields, &asked, listed.ok_or_else(ApiError::not_found)?)
}

/// Revokes a quote of the user's status, and responds with the status that contained it.
pub(crate) async fn revoke_quote(
    State(state): State<Shared>,
    Me(me): Me,
    Path((quoted, quoting)): Path<(String, String)>,
    once: Once,
) -> Result<Response, ApiError> {
    let post = input::post(&quoting).ok_or_else(ApiError::not_found)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let found = entities.facts().post(post)?;
        found.quote.filter(|_| entities.viewer().may_revoke(&found))
    };
    let quote = state.entities(Some(me), read).await?;
    if quote.is_none_or(|quote| Some(quote.post) != input::post(&quoted)) {
        return Err(ApiError::not_found());
    }
    let patch = Patch { revoke_quote: true, ..Patch::default() };
    state.change(me, once, Command::edit(post, patch)).await?;
    let read = move |entities: &mut Entities<'_>| entities.status_after_undo(post);
    answers::entity(state.entities_done(me, read).await?)
}

/// Changes which users may quote a status.
pub(crate) async fn interaction_policy(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(post): InPath<PostId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let policy = quote_policy(&fields, QUOTE_POLICY)?.unwrap_or_default();
    state.own(me, post).await?;
    state.limit(What::Posts, u64::from(me.0))?;
    let patch = Patch { quote_policy: Some(policy), ..Patch::default() };
    state.change(me, once, Command::edit(post, patch)).await?;
    state.changed_status(me, post).await
}
