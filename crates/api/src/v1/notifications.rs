//! Notifications: mentions, reactions to the user's posts, follows, follow requests.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, NoticeKind, Notification, NotificationFilter, NotificationId, Refusal};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::error::ApiError;
use crate::input::{OneUser, UserAnd};
use crate::page::{Asked, Reading, to_json};
use crate::route::Route;
use crate::rule::May::Own;
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::follows::UserSummary;
use crate::v1::timelines::read_page;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/users/{user}/notifications", notifications)
            .named("list_notifications", "List notifications")
            .users(Own)
            .text(
                "Mentions, favourites, boosts and quotes of posts by the user, follows and \
                 follow requests, ends of polls, edits of boosted and quoted posts, and posts of \
                 users for whom an app requested notifications. Blocks and mutes hide \
                 notifications. Posts, and mentions that a post had from the beginning, are all \
                 kept; of the others, the newest 1,000.",
            )
            .lists::<NotificationView>("A page of notifications"),
        Route::delete("/v1/users/{user}/notifications", clear)
            .named("clear_notifications", "Clear all notifications")
            .users(Own)
            .text(
                "Removes all existing notifications from the list. Mentions stay in the list of \
                 mentions. Idempotent.",
            )
            .answers(204, "The notifications are not listed any more"),
        Route::delete("/v1/users/{user}/notifications/{id}", dismiss)
            .named("dismiss_notification", "Dismiss a notification")
            .users(Own)
            .answers(204, "The notification is not listed any more"),
    ]
}

/// Schema of the kind of event that caused a notification.
fn kinds() -> ObjectBuilder {
    let names = NoticeKind::ALL.map(NoticeKind::name);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names))
}

/// A notification.
#[derive(Serialize, ToSchema)]
pub(crate) struct NotificationView {
    #[schema(example = "381482917519855616")]
    id: String,
    #[schema(schema_with = kinds)]
    kind: &'static str,
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// User who caused the notification.
    user: UserSummary,
    /// Post that the notification is about; null for a follow.
    #[serde(skip)]
    #[schema(value_type = Option<crate::v1::posts::PostView>)]
    post: Option<Vec<u8>>,
}

pub(crate) async fn notifications(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    let page = asked.of(Reading::Down);
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let viewer = node.viewer(Some(node.resolve(&user).ok_or(Refusal::UserNotFound)?));
        let all = NotificationFilter::default();
        let found = viewer.notifications(&page, &all);
        let ends = found.ends(&page);
        let mut is_first = true;
        for item in found.items.into_iter().filter_map(|found| view(node, found)) {
            out.extend((!is_first).then_some(b','));
            is_first = false;
            append(&item, out);
        }
        Ok(ends)
    };
    read_page(&state, &asked, read).await
}

fn view(node: &Node, found: Notification) -> Option<NotificationView> {
    let rendered = found.notice.post().map(|post| {
        let mut json = Vec::new();
        node.post(post, &mut json).then_some(json)
    });
    Some(NotificationView {
        id: found.id.0.to_string(),
        kind: found.notice.kind().name(),
        created_at: rfc3339(found.id.unix_ms()),
        user: UserSummary::read(node, found.actor)?,
        // A mention or boost whose post was deleted meanwhile is skipped.
        post: rendered.map_or(Some(None), |post| post.map(Some))?,
    })
}

/// Appends a notification with its post, which is already JSON.
fn append(item: &NotificationView, out: &mut Vec<u8>) {
    let mut json = to_json(item);
    json.pop();
    out.extend_from_slice(&json);
    out.extend_from_slice(b",\"post\":");
    out.extend_from_slice(item.post.as_deref().unwrap_or(b"null"));
    out.push(b'}');
}

changes! {
    clear: OneUser(user) => Command::ClearNotifications { user };
    dismiss: UserAnd<NotificationId>(user, notification) => Command::DismissNotification { user, notification };
}
