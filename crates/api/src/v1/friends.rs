//! Who is whose friend. Friendship is mutual.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, SetTable};

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{Once, OneUser, TwoUsers};
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::follows::{PeoplePage, PersonPage, people};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("PUT", "/v1/users/{user}/friends/{other}", Entry::Plain, befriend);
    routes.on("DELETE", "/v1/users/{user}/friends/{other}", Entry::Plain, unfriend);
    routes.on("GET", "/v1/users/{user}/friends", Entry::Query, friends);
}

/// Add a friend
///
/// Friendship is mutual. Adding a friend again changes nothing.
#[utoipa::path(
    put, path = "/v1/users/{user}/friends/{other}", tag = "users",
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
    State(edge): State<Arc<Edge>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, Problem> {
    edge.carry_out(Command::Befriend { user, other }, key).await
}

/// Remove a friend
///
/// From then on neither sees the other's stories.
#[utoipa::path(
    delete, path = "/v1/users/{user}/friends/{other}", tag = "users",
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
    State(edge): State<Arc<Edge>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, Problem> {
    edge.carry_out(Command::Unfriend { user, other }, key).await
}

/// List a user's friends
#[utoipa::path(
    get, path = "/v1/users/{user}/friends", tag = "users",
    params(
        ("user" = String, Path, description = "number or @handle"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("after" = Option<String>, Query, description = "people behind this id"),
        ("before" = Option<String>, Query, description = "people in front of this id"),
    ),
    responses((status = 200, body = PersonPage))
)]
pub(crate) async fn friends(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    asked: PeoplePage,
) -> Result<Response, Problem> {
    people(&edge, SetTable::Friends, user, &asked).await
}
