//! Friends. Friendship is mutual.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, SetTable};

use crate::error::ApiError;
use crate::input::{OneUser, TwoUsers};
use crate::page::AskedFor;
use crate::route::Route;
use crate::rule::May::Own;
use crate::state::AppState;
use crate::v1::follows::{UserSummary, users};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::put("/v1/users/{user}/friends/{other}", befriend)
            .named("befriend_user", "Befriend a user")
            .text(
                "Friendship is mutual and needs no confirmation by `other`. 404 if `other` \
                blocks `user`. Idempotent.",
            )
            .answers(204, "The users are friends")
            .errors(&["self_friend", "too_many_friends", "blocked"]),
        Route::delete("/v1/users/{user}/friends/{other}", unfriend)
            .named("unfriend_user", "Unfriend a user")
            .users(Own)
            .text("Neither sees the stories of the other any more. Idempotent.")
            .answers(204, "The users are not friends")
            .errors(&["self_friend"]),
        Route::get("/v1/users/{user}/friends", friends)
            .named("list_friends", "List friends")
            .users(Own)
            .lists::<UserSummary>("A page of users"),
    ]
}

changes! {
    befriend: TwoUsers(user, other) => Command::Befriend { user, other };
    unfriend: TwoUsers(user, other) => Command::Unfriend { user, other };
}

pub(crate) async fn friends(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    users(&state, SetTable::Friends, user, &asked).await
}
