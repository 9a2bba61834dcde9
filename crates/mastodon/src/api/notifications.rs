//! Notifications: the list, single ones, and the number of unread ones.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::{Command, Cursor, NoticeKind, NotificationFilter, NotificationId, Page, UserRef};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, InPath, Me, Once};
use crate::paging;
use crate::state::Shared;

/// Adds the routes of notifications.
pub(crate) fn routes(table: &mut Endpoints) {
    let mine = Needs::User(&[S::ReadNotifications]);
    let write = Needs::User(&[S::WriteNotifications]);
    table.get("/api/v1/notifications", mine, list);
    table.get("/api/v1/notifications/{id}", mine, show);
    table.post("/api/v1/notifications/clear", write, clear);
    table.post("/api/v1/notifications/{id}/dismiss", write, dismiss);
    table.get("/api/v1/notifications/unread_count", mine, unread_count);
}

/// Maximum number of notifications counted as unread.
const UNREAD_MAX: usize = 100;
/// Maximum number of pages read to count them. One page is enough if few notifications are hidden.
const UNREAD_PAGES_MAX: usize = 8;

/// Filter of notifications in a request.
fn filter(fields: &Fields) -> Result<NotificationFilter, ApiError> {
    let by = fields.one("account_id")?;
    let by = by.map(|id| input::user(id).ok_or_else(ApiError::not_found)).transpose()?;
    let has = |list, kind: NoticeKind| fields.all(list).any(|name| name == kind.mastodon_name());
    let all = fields.all("types").next().is_none();
    let named = |list| NoticeKind::ALL.into_iter().filter(move |kind| has(list, *kind));
    let kinds = (!all).then(|| named("types").collect());
    Ok(NotificationFilter { kinds, not: named("exclude_types").collect(), by })
}

pub(crate) async fn list(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::ACCOUNTS)?;
    let filter = filter(&fields)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let found = entities.viewer().notifications(&asked, &filter);
        paging::list(&asked, found, |found| entities.notification(found))
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<NotificationId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let found = entities.viewer().notification(id)?;
        entities.notification(found)
    };
    let found = state.entities(Some(me), read).await?;
    answers::entity(found)
}

pub(crate) async fn clear(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    let user = UserRef::Id(me);
    state.change(me, once, Command::ClearNotifications { user }).await?;
    Ok(Json(json!({})))
}

pub(crate) async fn dismiss(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(notification): InPath<NotificationId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    let user = UserRef::Id(me);
    state.change(me, once, Command::DismissNotification { user, notification }).await?;
    Ok(Json(json!({})))
}

/// Responds with the number of notifications after the user's marker, up to the limit.
pub(crate) async fn unread_count(
    State(state): State<Shared>,
    Me(me): Me,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let limit = paging::limit(&fields, UNREAD_MAX, UNREAD_MAX)?;
    let filter = filter(&fields)?;
    // Only the first page is a short read. Further pages are usually long and contain nothing to count.
    let first = move |_: &_, entities: &mut Entities<'_>| {
        let marker = entities.facts().markers(me).notifications;
        let read = marker.map_or(0, |marker| marker.last_read);
        (count_unread(entities, read, limit, &filter), filter)
    };
    let ((mut count, next), filter) = state.entities(Some(me), first).await?;
    if let Some(next) = next.filter(|_| count < limit) {
        let rest = move |_: &_, entities: &mut Entities<'_>| {
            let (mut count, mut read) = (count, next);
            for _ in 1..UNREAD_PAGES_MAX {
                let (more, next) = count_unread(entities, read, limit - count, &filter);
                count += more;
                read = match next {
                    Some(next) if count < limit => next,
                    _ => break,
                };
            }
            count
        };
        count = state.entities_long(Some(me), rest).await?;
    }
    Ok(Json(json!({"count": count})))
}

/// Number of notifications after `read` on a page of up to `limit`, and the end of the page if more may follow.
fn count_unread(
    entities: &Entities<'_>,
    read: u64,
    limit: usize,
    filter: &NotificationFilter,
) -> (usize, Option<u64>) {
    let page = Page::at(Cursor::After(read), limit);
    let page = entities.viewer().notifications(&page, filter);
    (page.items.len(), page.next)
}
