//! Who is whose friend. Friendship is mutual.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, SetTable};

use crate::error::{ApiError, ErrorBody};
use crate::guard::Entry;
use crate::input::{Once, OneUser, TwoUsers};
use crate::routes::Routes;
use crate::state::AppState;
use crate::v1::follows::{PeoplePage, PersonPage, people};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("PUT", "/v1/users/{user}/friends/{other}", Entry::Plain, befriend);
    routes.on("DELETE", "/v1/users/{user}/friends/{other}", Entry::Plain, unfriend);
    routes.on("GET", "/v1/users/{user}/friends", Entry::Query, friends);
}

/// Make two people friends
///
/// It counts for both at once. Befriending again changes nothing.
#[utoipa::path(
    put, path = "/v1/users/{user}/friends/{other}", tag = "people",
    params(
        ("user" = String, Path, description = "one of them: number or @handle"),
        ("other" = String, Path, description = "the other: number or @handle"),
    ),
    responses(
        (status = 204),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`self_friend`", body = ErrorBody),
    )
)]
pub(crate) async fn befriend(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::Befriend { user, other }, key).await
}

/// End a friendship
///
/// From then on neither sees the other's stories.
#[utoipa::path(
    delete, path = "/v1/users/{user}/friends/{other}", tag = "people",
    params(
        ("user" = String, Path, description = "one of them: number or @handle"),
        ("other" = String, Path, description = "the other: number or @handle"),
    ),
    responses(
        (status = 204),
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

/// Somebody's friends
#[utoipa::path(
    get, path = "/v1/users/{user}/friends", tag = "people",
    params(
        ("user" = String, Path, description = "number or @handle"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("after" = Option<String>, Query, description = "people behind this id"),
        ("before" = Option<String>, Query, description = "people in front of this id"),
    ),
    responses((status = 200, body = PersonPage))
)]
pub(crate) async fn friends(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: PeoplePage,
) -> Result<Response, ApiError> {
    people(&state, SetTable::Friends, user, &asked).await
}
