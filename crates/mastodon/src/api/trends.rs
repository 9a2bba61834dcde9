//! Trends: popular hashtags and statuses. Links have no trends. Suggestions of accounts to follow. All come from the
//! node's view for ranked feeds.
//!
//! **Invariant:** trends of hashtags are computed once per [`KEPT_MS`], for any number of requests, as soon as the view
//! is loaded. Before that, it has few posts.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::{Tag, UserId};
use node::Node;

use super::accounts::list;
use super::search::HIDDEN_TAGGED_MAX;
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::json::Json;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{Me, Reader, number};
use crate::paging::limit;
use crate::state::Shared;

/// Adds the routes of trends.
pub(crate) fn routes(table: &mut Endpoints) {
    for path in ["/api/v1/trends", "/api/v1/trends/tags"] {
        table.get(path, Needs::ANYONE_STATUSES, tags);
    }
    table.get("/api/v1/trends/statuses", Needs::ANYONE_STATUSES, statuses);
    table.get("/api/v1/suggestions", Needs::User(&[S::Read]), suggested_accounts);
    table.get("/api/v2/suggestions", Needs::User(&[S::Read]), suggestions);
}

/// Time for which trends are cached, in milliseconds.
const KEPT_MS: u64 = 60_000;
/// Maximum number of trending hashtags.
const TRENDS_MAX: usize = 40;

/// Source of a suggestion, in both forms that clients know.
const SUGGESTION: &[u8] = b"{\"source\":\"global\",\"sources\":[\"most_interactions\"]}";

/// Cached trends, and the time at which they were computed.
#[derive(Default)]
pub(crate) struct Trends(Mutex<Option<(u64, Arc<[Tag]>)>>);

impl Trends {
    /// Cached trends; `None` if the caller must compute them. Of several concurrent callers, only one gets `None`; the
    /// others get the old trends.
    fn current(&self, now_ms: u64) -> Option<Arc<[Tag]>> {
        let mut kept = self.0.lock().ok()?;
        let (found_ms, tags) = kept.as_mut()?;
        if now_ms.abs_diff(*found_ms) < KEPT_MS {
            return Some(Arc::clone(tags));
        }
        *found_ms = now_ms;
        None
    }

    fn keep(&self, now_ms: u64, tags: &Arc<[Tag]>) {
        if let Ok(mut kept) = self.0.lock() {
            *kept = Some((now_ms, Arc::clone(tags)));
        }
    }

    /// Cached trends, computed again if they are too old.
    fn get(&self, node: &Node, now_ms: u64) -> Arc<[Tag]> {
        self.current(now_ms).unwrap_or_else(|| {
            let is_complete = node.knows_popular();
            let found: Arc<[Tag]> = node.popular_tags(TRENDS_MAX).into();
            if is_complete {
                self.keep(now_ms, &found);
            }
            found
        })
    }
}

/// Responds with trending hashtags. Older clients use the path `/api/v1/trends`.
pub(crate) async fn tags(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (limit, offset) = (limit(&fields, 10, 20)?, offset(&fields)?);
    let trends = Arc::clone(&state);
    let read = move |node: &Node, entities: &mut Entities<'_>| {
        let now_ms = node.now_ms();
        let tags = trends.trends.get(node, now_ms);
        // Hashtags whose posts are all hidden from the reader are omitted.
        let mut rest = HIDDEN_TAGGED_MAX;
        let found = tags.iter().filter(|tag| entities.is_used(tag, &mut rest));
        let found = found.skip(offset).take(limit);
        list(found, |tag| Some(entities.tag(tag, now_ms)))
    };
    Ok(answers::json(state.entities_long(reader, read).await?))
}

/// Responds with popular statuses.
pub(crate) async fn statuses(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (limit, offset) = (limit(&fields, 20, 40)?, offset(&fields)?);
    let read = move |node: &Node, entities: &mut Entities<'_>| {
        let posts = node.popular(entities.viewer()).into_iter();
        list(posts.skip(offset).take(limit), |post| entities.status(post))
    };
    Ok(answers::json(state.entities_long(reader, read).await?))
}

/// Responds with suggested accounts, in the form that older clients use.
pub(crate) async fn suggested_accounts(
    State(state): State<Shared>,
    Me(me): Me,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    suggested(&state, me, &fields, Some).await
}

/// Responds with suggestions of accounts to follow.
pub(crate) async fn suggestions(
    State(state): State<Shared>,
    Me(me): Me,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    suggested(&state, me, &fields, |account| {
        let suggestion = Json::written(|out| {
            out.extend_from_slice(SUGGESTION);
            Some(())
        });
        suggestion.map(|suggestion| suggestion.with_entity("account", &account))
    })
    .await
}

async fn suggested(
    state: &Shared,
    me: UserId,
    fields: &Fields,
    entity: fn(Json) -> Option<Json>,
) -> Result<Response, ApiError> {
    let limit = limit(fields, 40, 80)?;
    let read = move |node: &Node, entities: &mut Entities<'_>| {
        list(node.suggested(me, limit).into_iter(), |user| entity(entities.account(user)?))
    };
    Ok(answers::json(state.entities_long(Some(me), read).await?))
}

/// Number of trends to skip.
fn offset(fields: &Fields) -> Result<usize, ApiError> {
    let offset = fields.one("offset")?.and_then(number).unwrap_or(0);
    Ok(usize::try_from(offset).unwrap_or(usize::MAX))
}
