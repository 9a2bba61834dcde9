//! Trends: hashtags that several users have used recently. Statuses and links have no trends.
//!
//! **Invariant:** trends are computed once per [`KEPT_MS`], for any number of requests.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::response::Response;
use feed::Tag;

use super::accounts::list;
use super::search::HIDDEN_TAGGED_MAX;
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::trends::TRENDS_MAX;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{Reader, number};
use crate::paging::limit;
use crate::state::Shared;

/// Adds the routes of trends.
pub(crate) fn routes(table: &mut Endpoints) {
    for path in ["/api/v1/trends", "/api/v1/trends/tags"] {
        table.get(path, Needs::ANYONE_STATUSES, tags);
    }
}

/// Time for which trends are cached, in milliseconds.
const KEPT_MS: u64 = 60_000;

/// Cached trends, and the time at which they were computed.
#[derive(Default)]
pub(crate) struct Trends(Mutex<Option<(u64, Arc<[Tag]>)>>);

impl Trends {
    /// Cached trends; `None` if the caller must compute them. Of several concurrent callers only one must; the others
    /// get the old trends.
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
    fn get(&self, entities: &Entities<'_>, now_ms: u64) -> Arc<[Tag]> {
        self.current(now_ms).unwrap_or_else(|| {
            let found: Arc<[Tag]> = entities.trending_tags(now_ms).into();
            self.keep(now_ms, &found);
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
    let limit = limit(&fields, 10, 20)?;
    let offset = fields.one("offset")?.and_then(number).unwrap_or(0);
    let offset = offset.min(TRENDS_MAX as u64) as usize;
    let trends = Arc::clone(&state);
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        let now_ms = node.now_ms();
        let tags = trends.trends.get(entities, now_ms);
        // Hashtags whose posts are all hidden from the reader are omitted.
        let mut rest = HIDDEN_TAGGED_MAX;
        let found = tags.iter().filter(|tag| entities.is_used(tag, &mut rest));
        let found = found.skip(offset).take(limit);
        list(found, |tag| Some(entities.tag(tag, now_ms)))
    };
    Ok(answers::json(state.entities_long(reader, read).await?))
}
