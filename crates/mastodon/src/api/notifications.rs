//! Notifications: mentions of the user.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::PostId;
use serde_json::{Value, json};

use crate::entities::Entities;
use crate::entities::status::push;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, Me, StatusInPath};
use crate::paging::{self, Asked, Listed};
use crate::state::Shared;

/// Whether a request asks for notifications of mentions, and by whom.
fn wants_mentions(fields: &Fields) -> bool {
    let mut types = fields.all("types").peekable();
    let is_wanted = types.peek().is_none() || types.any(|name| name == "mention");
    is_wanted && !fields.all("exclude_types").any(|name| name == "mention")
}

/// `GET /api/v1/notifications`
pub(crate) async fn list(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = Asked::parse(&fields, paging::ACCOUNTS)?;
    let by = fields.one("account_id")?;
    let by = by.map(|id| input::user(id).ok_or_else(ApiError::not_found)).transpose()?;
    let is_wanted = wants_mentions(&fields);
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        if !is_wanted {
            return Listed::default();
        }
        let mut page = node.mention_ids(me, &asked.page(PostId));
        asked.cut(&mut page.items, |post| post.0);
        let ends = page.items.first().zip(page.items.last());
        let ends = ends.map(|(first, last)| (first.0, last.0));
        let mut json = vec![b'['];
        for post in &page.items {
            let author = || entities.facts().post(*post).map(|post| post.author);
            if (by.is_none() || by == author())
                && let Some(notification) = entities.mention(*post)
            {
                push(&notification, &mut json);
            }
        }
        Listed { json, ends, more: page.more }
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

/// `GET /api/v1/notifications/{id}`
pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    StatusInPath(post): StatusInPath,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.mention(post);
    let found = state.entities(Some(me), read).await?;
    state.answers.entity(found)
}

/// `GET /api/v1/notifications/unread_count`: without markers, nothing is unread.
pub(crate) async fn unread_count() -> Json<Value> {
    Json(json!({"count": 0}))
}

/// `GET /api/v2/notifications/policy`: nothing is filtered.
pub(crate) async fn policy() -> Json<Value> {
    Json(json!({
        "for_not_following": "accept",
        "for_not_followers": "accept",
        "for_new_accounts": "accept",
        "for_private_mentions": "accept",
        "for_limited_accounts": "accept",
        "summary": {"pending_requests_count": 0, "pending_notifications_count": 0},
    }))
}
