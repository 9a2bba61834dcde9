//! Follows: follow, unfollow, list; and requests to follow locked users.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use feed::{
    Batch, Command, Page, PageOf, Refusal, Rows, SetTable, Span, UserId, UserRef, Viewer, scan,
};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::idempotency::Once;
use crate::input::{MayRead, OneUser, TwoUsers};
use crate::page::{self, Asked, AskedFor, Reading, json, to_json};
use crate::route::Route;
use crate::rule::May::{Own, See};
use crate::state::AppState;
use crate::v1::relations::Relation;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::put("/v1/users/{user}/following/{other}", follow)
            .named("follow_user", "Follow a user")
            .users(Own)
            .text(
                "If `other` is locked, sends a follow request, and `user` follows once `other` \
                 accepts. 404 if `other` blocks `user`. Idempotent.",
            )
            .shows::<Relation>("`user` follows `other` or has requested it: their new relation")
            .answers(204, "Success, for a key or token without the scope `read`")
            .errors(&["self_follow", "too_many_follows", "blocked"]),
        Route::delete("/v1/users/{user}/following/{other}", unfollow)
            .named("unfollow_user", "Unfollow a user")
            .users(Own)
            .text("Also withdraws a follow request. Idempotent.")
            .answers(204, "`user` does not follow `other`")
            .errors(&["self_follow"]),
        Route::get("/v1/users/{user}/followers", followers)
            .named("list_followers", "List followers")
            .users(See)
            .lists::<UserSummary>("A page of users"),
        Route::get("/v1/users/{user}/following", following)
            .named("list_following", "List followed users")
            .users(See)
            .lists::<UserSummary>("A page of users"),
        Route::get("/v1/users/{user}/follow_requests", requests)
            .named("list_follow_requests", "List follow requests to a user")
            .users(Own)
            .lists::<UserSummary>("A page of the users who sent the requests"),
        Route::put("/v1/users/{user}/follow_requests/{other}", accept)
            .named("accept_follow_request", "Accept a follow request")
            .users(Own)
            .answers(204, "`other` follows `user`")
            .errors(&["request_not_found"]),
        Route::delete("/v1/users/{user}/follow_requests/{other}", reject)
            .named("reject_follow_request", "Reject a follow request")
            .users(Own)
            .answers(204, "There is no follow request from `other` to `user`")
            .errors(&["request_not_found"]),
    ]
}

/// A user in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserSummary {
    #[schema(example = "0")]
    id: String,
    #[schema(example = "ada")]
    handle: String,
    name: String,
}

impl UserSummary {
    /// Reads a user. May block.
    pub(crate) fn read(node: &Node, id: UserId) -> Option<Self> {
        let names = node.names(id)?;
        let (handle, name) = (names.handle().to_owned(), names.name().to_owned());
        Some(Self { id: id.0.to_string(), handle, name })
    }

    /// Reads a page of the users whom the viewer may see; `ids` reads the list. May block.
    pub(crate) fn visible<R: Rows + ?Sized>(
        node: &Node,
        viewer: &Viewer<'_, R>,
        page: &Page,
        ids: impl FnMut(Span) -> Vec<UserId>,
    ) -> PageOf<(UserId, Self)> {
        shown_users(page, ids, |id| viewer.visible_user(id).then(|| Self::read(node, id))?)
    }
}

/// Reads a page of the users for whom `view` returns something; `ids` reads the list.
pub(crate) fn shown_users<T>(
    page: &Page,
    mut ids: impl FnMut(Span) -> Vec<UserId>,
    view: impl Fn(UserId) -> Option<T>,
) -> PageOf<(UserId, T)> {
    let read = |span| Batch::of(ids(span), span);
    scan(page, read, |id| view(id).map(|view| (id, view)).into())
}

pub(crate) async fn follow(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
    MayRead(may_read): MayRead,
) -> Result<Response, ApiError> {
    let command = Command::Follow { user: user.clone(), other: other.clone() };
    let followed = state.submit(command, key, |_| Some(())).await?;
    let render = async {
        // One of the users may have been deleted.
        let relation = state.read_done(move |node| Relation::read(node, &user, &other)).await?;
        Ok(relation.ok().as_ref().map(to_json))
    };
    let body = if may_read { state.first_body(&followed, render).await? } else { None };
    Ok(followed.mark(body.map_or_else(|| StatusCode::NO_CONTENT.into_response(), json)))
}

changes! {
    unfollow: TwoUsers(user, other) => Command::Unfollow { user, other };
    accept: TwoUsers(user, other) => Command::AnswerRequest { user, other, accept: true };
    reject: TwoUsers(user, other) => Command::AnswerRequest { user, other, accept: false };
}

pub(crate) async fn requests(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    users(&state, SetTable::FollowRequests, user, &asked).await
}

pub(crate) async fn followers(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    users(&state, SetTable::Followers, user, &asked).await
}

pub(crate) async fn following(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    users(&state, SetTable::Following, user, &asked).await
}

/// Responds with a page of the users that `table` lists for `user`.
pub(crate) async fn users(
    state: &AppState,
    table: SetTable,
    user: UserRef,
    asked: &Asked,
) -> Result<Response, ApiError> {
    let (page, viewer) = (asked.of(Reading::Up), asked.viewer.clone());
    let found = state.read(move |node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let viewer = on_behalf_of(node, viewer.as_ref(), user)?;
        let ids = |span| node.facts().users_in(table, user, span);
        Ok::<_, Refusal>(UserSummary::visible(node, &viewer, &page, ids))
    });
    Ok(page_of_users(asked, &found.await??))
}

/// Viewer for a user, or for the application itself (`None`).
///
/// # Errors
/// `ViewerNotFound` if the user does not exist.
pub(crate) fn viewer<'a>(
    node: &'a Node,
    named: Option<&UserRef>,
) -> Result<Viewer<'a, impl Rows + use<'a>>, Refusal> {
    let user = named.map(|user| node.resolve(user).ok_or(Refusal::ViewerNotFound)).transpose()?;
    Ok(node.viewer(user))
}

/// Viewer of data of `other`: a user, or the application itself (`None`).
///
/// # Errors
/// If the user does not exist, or `other` is hidden from them.
pub(crate) fn on_behalf_of<'a>(
    node: &'a Node,
    named: Option<&UserRef>,
    other: UserId,
) -> Result<Viewer<'a, impl Rows + use<'a>>, Refusal> {
    let viewer = viewer(node, named)?;
    viewer.visible_user(other).then_some(viewer).ok_or(Refusal::UserNotFound)
}

/// Responds with users, by ascending id; each item has its id for the cursor.
pub(crate) fn page_of_users<T: Serialize>(asked: &Asked, found: &PageOf<(UserId, T)>) -> Response {
    let out = page::opened_with(found.items.iter().rev().map(|(_, user)| user));
    asked.answer(Reading::Up, found.ends(&asked.of(Reading::Up)), out)
}
