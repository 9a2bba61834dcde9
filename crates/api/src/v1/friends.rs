//! Friends. Friendship is mutual.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, SetTable};

use crate::error::{ApiError, ErrorBody};
use crate::guard::RouteKind;
use crate::idempotency::Once;
use crate::input::{OneUser, TwoUsers};
use crate::page::AskedFor;
use crate::params::{KeyHeader, OtherPath, PageQuery, UserPath, ViewerQuery};
use crate::routes::Routes;
use crate::state::AppState;
use crate::v1::follows::{UserPage, users};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("PUT", "/v1/users/{user}/friends/{other}", RouteKind::Plain, befriend);
    routes.on("DELETE", "/v1/users/{user}/friends/{other}", RouteKind::Plain, unfriend);
    routes.on("GET", "/v1/users/{user}/friends", RouteKind::Query, friends);
}

/// Befriend a user
///
/// Friendship is mutual and needs no confirmation by `other`. Idempotent.
#[utoipa::path(
    put, path = "/v1/users/{user}/friends/{other}", operation_id = "befriend_user", tag = "users",
    params(UserPath, OtherPath, KeyHeader),
    responses(
        (status = 204, description = "They are friends"),
        (status = 404, description = "`user_not_found`, also if `other` blocks `user`", body = ErrorBody),
        (status = 422, description = "`self_friend`, `too_many_friends`, `blocked`", body = ErrorBody),
    )
)]
pub(crate) async fn befriend(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::Befriend { user, other }, key).await
}

/// Unfriend a user
///
/// After this neither sees the stories of the other. Idempotent.
#[utoipa::path(
    delete, path = "/v1/users/{user}/friends/{other}", operation_id = "unfriend_user", tag = "users",
    params(UserPath, OtherPath, KeyHeader),
    responses(
        (status = 204, description = "They are not friends"),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`self_friend`", body = ErrorBody),
    )
)]
pub(crate) async fn unfriend(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::Unfriend { user, other }, key).await
}

/// List friends
#[utoipa::path(
    get, path = "/v1/users/{user}/friends", operation_id = "list_friends", tag = "users",
    params(UserPath, PageQuery, ViewerQuery),
    responses(
        (status = 200, description = "A page of users", body = UserPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn friends(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    users(&state, SetTable::Friends, user, &asked).await
}
