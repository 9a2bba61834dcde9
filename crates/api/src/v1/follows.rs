//! Follows: follow, unfollow, list; and requests to follow users who are locked.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, Facts, Refusal, Rows, SetTable, ShownItems, Span, UserId, UserRef, Viewer};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::guard::RouteKind;
use crate::idempotency::Once;
use crate::input::{OneUser, TwoUsers};
use crate::page::{self, Asked, AskedFor, Reading};
use crate::params::{KeyHeader, OtherPath, PageQuery, UserPath, ViewerQuery};
use crate::routes::Routes;
use crate::state::AppState;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("PUT", "/v1/users/{user}/following/{other}", RouteKind::Plain, follow);
    routes.on("DELETE", "/v1/users/{user}/following/{other}", RouteKind::Plain, unfollow);
    routes.on("GET", "/v1/users/{user}/followers", RouteKind::Query, followers);
    routes.on("GET", "/v1/users/{user}/following", RouteKind::Query, following);
    routes.on("GET", "/v1/users/{user}/follow_requests", RouteKind::Query, requests);
    routes.on("PUT", "/v1/users/{user}/follow_requests/{other}", RouteKind::Plain, accept);
    routes.on("DELETE", "/v1/users/{user}/follow_requests/{other}", RouteKind::Plain, reject);
}

/// A user in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct Listed {
    #[schema(example = "0")]
    id: String,
    #[schema(example = "ada")]
    handle: String,
    name: String,
}

impl Listed {
    /// Reads a user. May block.
    pub(crate) fn read<R: Rows + ?Sized>(facts: Facts<'_, R>, id: UserId) -> Option<Self> {
        let user = facts.user(id)?;
        let (handle, name) = (user.handle.as_str().to_owned(), user.name.as_str().to_owned());
        Some(Self { id: id.0.to_string(), handle, name })
    }

    /// Reads a page of users whom the viewer may see, of a list that `ids` reads. May block.
    pub(crate) fn visible<R: Rows + ?Sized>(
        viewer: &Viewer<'_, R>,
        span: Option<Span>,
        ids: impl FnMut(Span) -> Vec<UserId>,
    ) -> ShownItems<(UserId, Self)> {
        let shown = |id: &UserId| viewer.visible_user(*id) && viewer.facts().exists(*id);
        shown_users(span, ids, shown, |id| Self::read(viewer.facts(), id))
    }
}

/// A page of users, of a list that `ids` reads, whom `is_shown` accepts.
pub(crate) fn shown_users<T>(
    span: Option<Span>,
    ids: impl FnMut(Span) -> Vec<UserId>,
    is_shown: impl Fn(&UserId) -> bool,
    view: impl Fn(UserId) -> Option<T>,
) -> ShownItems<(UserId, T)> {
    let wanted = span.map_or(0, |span| span.limit);
    let ShownItems { items, end } = ShownItems::read(span, wanted, ids, |id| id.0.into(), is_shown);
    let items = items.into_iter().filter_map(|id| Some((id, view(id)?))).collect();
    ShownItems { items, end }
}

/// A page of users.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct UserPage {
    items: Vec<Listed>,
    /// Path of the next page.
    next: Option<String>,
    /// Path of the previous page.
    prev: Option<String>,
}

/// Follow a user
///
/// If `other` is locked, `user` asks to follow, and follows once `other` accepts. Idempotent.
#[utoipa::path(
    put, path = "/v1/users/{user}/following/{other}", operation_id = "follow_user", tag = "users",
    params(UserPath, OtherPath, KeyHeader),
    responses(
        (status = 204, description = "`user` follows `other`, or asks to"),
        (status = 404, description = "`user_not_found`, also if `other` blocks `user`", body = ErrorBody),
        (status = 422, description = "`self_follow`, `too_many_follows`, `blocked`", body = ErrorBody),
    )
)]
pub(crate) async fn follow(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::Follow { user, other }, key).await
}

/// Unfollow a user
///
/// Also takes a request to follow back. Idempotent.
#[utoipa::path(
    delete, path = "/v1/users/{user}/following/{other}", operation_id = "unfollow_user", tag = "users",
    params(UserPath, OtherPath, KeyHeader),
    responses(
        (status = 204, description = "`user` does not follow `other`"),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`self_follow`", body = ErrorBody),
    )
)]
pub(crate) async fn unfollow(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::Unfollow { user, other }, key).await
}

/// Accept a request to follow
#[utoipa::path(
    put, path = "/v1/users/{user}/follow_requests/{other}", operation_id = "accept_follow_request", tag = "users",
    params(UserPath, OtherPath, KeyHeader),
    responses(
        (status = 204, description = "`other` follows `user`"),
        (status = 404, description = "`user_not_found`, `request_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn accept(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::AnswerRequest { user, other, accept: true }, key).await
}

/// Reject a request to follow
#[utoipa::path(
    delete, path = "/v1/users/{user}/follow_requests/{other}", operation_id = "reject_follow_request", tag = "users",
    params(UserPath, OtherPath, KeyHeader),
    responses(
        (status = 204, description = "`other` does not ask to follow `user` any more"),
        (status = 404, description = "`user_not_found`, `request_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn reject(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::AnswerRequest { user, other, accept: false }, key).await
}

/// List requests to follow a user
#[utoipa::path(
    get, path = "/v1/users/{user}/follow_requests", operation_id = "list_follow_requests", tag = "users",
    params(UserPath, PageQuery),
    responses(
        (status = 200, description = "A page of the users who ask", body = UserPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn requests(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    users(&state, SetTable::FollowRequests, user, &asked).await
}

/// List followers
#[utoipa::path(
    get, path = "/v1/users/{user}/followers", operation_id = "list_followers", tag = "users",
    params(UserPath, PageQuery, ViewerQuery),
    responses(
        (status = 200, description = "A page of users", body = UserPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn followers(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    users(&state, SetTable::Followers, user, &asked).await
}

/// List followed users
#[utoipa::path(
    get, path = "/v1/users/{user}/following", operation_id = "list_following", tag = "users",
    params(UserPath, PageQuery, ViewerQuery),
    responses(
        (status = 200, description = "A page of users", body = UserPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn following(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    users(&state, SetTable::Following, user, &asked).await
}

/// A page of the users that `table` lists for `user`.
pub(crate) async fn users(
    state: &AppState,
    table: SetTable,
    user: UserRef,
    asked: &Asked,
) -> Result<Response, ApiError> {
    let (span, viewer) = (asked.of_users(), asked.viewer.clone());
    let found = state.read(move |node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let viewer = on_behalf_of(node, viewer.as_ref(), user)?;
        let ids = |span| node.facts().users_in(table, user, span);
        Ok::<_, Refusal>(Listed::visible(&viewer, span, ids))
    });
    Ok(page_of_users(asked, found.await??))
}

/// What a user may see, or the application itself (`None`).
///
/// # Errors
/// If there is no such user.
pub(crate) fn viewer<'a>(
    node: &'a Node,
    named: Option<&UserRef>,
) -> Result<Viewer<'a, impl Rows + use<'a>>, Refusal> {
    let user = named.map(|user| node.resolve(user).ok_or(Refusal::ViewerNotFound)).transpose()?;
    Ok(node.viewer(user))
}

/// What a user may see, or the application itself (`None`), of what `other` has.
///
/// # Errors
/// If there is no such user, or `other` is hidden from them.
pub(crate) fn on_behalf_of<'a>(
    node: &'a Node,
    named: Option<&UserRef>,
    other: UserId,
) -> Result<Viewer<'a, impl Rows + use<'a>>, Refusal> {
    let viewer = viewer(node, named)?;
    viewer.visible_user(other).then_some(viewer).ok_or(Refusal::UserNotFound)
}

/// The response with the users `found` by a scan of [`Asked::of_users`], each with their id.
pub(crate) fn page_of_users<T: Serialize>(
    asked: &Asked,
    found: ShownItems<(UserId, T)>,
) -> Response {
    let (users, ends) = asked.users_found(found);
    let out = page::opened_with(users.iter().map(|(_, user)| user));
    asked.answer(Reading::Up, ends, out)
}
