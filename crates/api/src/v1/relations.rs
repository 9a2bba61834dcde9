//! Relation of two users, as one of them sees it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Refusal, UserRef};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::input::TwoUsers;
use crate::page::{json, to_json};
use crate::route::Route;
use crate::rule::May::Own;
use crate::state::AppState;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/users/{user}/relations/{other}", relation)
            .named("get_relation", "Show the relation of two users")
            .users(Own)
            .text(
                "The relation as `user` sees it. 404 if `other` blocks `user`, unless `user` \
                 also blocks `other`.",
            )
            .shows::<Relation>("The relation"),
    ]
}

/// Relation of `user` to `other`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Relation {
    /// Whether `user` follows `other`.
    following: bool,
    /// Whether a follow request from `user` to `other` is pending.
    requested: bool,
    followed_by: bool,
    friends: bool,
    /// Whether `user` blocks `other`.
    blocking: bool,
    /// Whether `user` mutes `other`.
    muting: bool,
}

pub(crate) async fn relation(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
) -> Result<Response, ApiError> {
    let found = state.read(move |node| Relation::read(node, &user, &other));
    Ok(json(to_json(&found.await??)))
}

impl Relation {
    /// Reads a relation. May block.
    pub(crate) fn read(node: &Node, user: &UserRef, other: &UserRef) -> Result<Self, Refusal> {
        let user = node.resolve(user).ok_or(Refusal::UserNotFound)?;
        let other = node.resolve(other).ok_or(Refusal::OtherNotFound)?;
        let facts = node.facts();
        let blocking = facts.blocks(user, other);
        if !blocking && !node.viewer(Some(user)).visible_user(other) {
            return Err(Refusal::OtherNotFound);
        }
        Ok(Self {
            following: facts.follows(user, other),
            requested: facts.requests(user, other),
            followed_by: facts.follows(other, user),
            friends: facts.are_friends(user, other),
            blocking,
            muting: facts.mute(user, other).is_some(),
        })
    }
}
