//! Blocks, mutes, and authors in whom users are not interested.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, MuteTime, Refusal, SetTable};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::input::{Input, OneUser, OrDefault, TwoUsers, given};
use crate::page::{Asked, Reading};
use crate::route::Route;
use crate::rule::May::Own;
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::follows::{UserSummary, page_of_users, shown_users, users};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::put("/v1/users/{user}/blocks/{other}", block)
            .named("block_user", "Block a user")
            .users(Own)
            .text(
                "The two users no longer see each other, nor anything that the other has \
                 published or will publish. Ends follows and friendship in both directions. \
                 Idempotent.",
            )
            .answers(204, "`user` blocks `other`")
            .errors(&["self_block", "too_many_blocks"]),
        Route::delete("/v1/users/{user}/blocks/{other}", unblock)
            .named("unblock_user", "Unblock a user")
            .users(Own)
            .text("Does not restore follows and friendship. Idempotent.")
            .answers(204, "`user` does not block `other`")
            .errors(&["self_block"]),
        Route::get("/v1/users/{user}/blocks", blocks)
            .named("list_blocks", "List blocked users")
            .users(Own)
            .lists::<UserSummary>("A page of users"),
        Route::put("/v1/users/{user}/mutes/{other}", mute)
            .named("mute_user", "Mute a user")
            .users(Own)
            .text(
                "Hides posts and stories of `other`, and replies to them, from the home timeline \
                 and the threads of `user`. `other` is not notified. Replaces an existing mute.",
            )
            .answers(204, "`user` mutes `other`")
            .errors(&["self_mute", "too_many_mutes", "bad_duration"]),
        Route::delete("/v1/users/{user}/mutes/{other}", unmute)
            .named("unmute_user", "Unmute a user")
            .users(Own)
            .text("Idempotent.")
            .answers(204, "`user` does not mute `other`")
            .errors(&["self_mute"]),
        Route::get("/v1/users/{user}/mutes", mutes)
            .named("list_mutes", "List muted users")
            .users(Own)
            .lists::<Muted>("A page of users"),
        Route::put("/v1/users/{user}/not_interested/{other}", not_interested)
            .named("hide_author_in_ranked_feeds", "Hide an author in ranked feeds")
            .users(Own)
            .text(
                "Ranked feeds of `user` have posts by `other` only from the home timeline. Changes \
                 nothing else: to hide an author everywhere, mute them. `other` is not notified. \
                 Idempotent.",
            )
            .answers(204, "`user` is not interested in `other`")
            .errors(&["self_not_interested", "too_many_not_interested"]),
        Route::delete("/v1/users/{user}/not_interested/{other}", interested)
            .named("show_author_in_ranked_feeds", "Show an author in ranked feeds again")
            .users(Own)
            .text("Idempotent.")
            .answers(204, "Ranked feeds may show posts by `other`")
            .errors(&["self_not_interested"]),
        Route::get("/v1/users/{user}/not_interested", list_not_interested)
            .named("list_not_interested", "List the authors whom ranked feeds hide")
            .users(Own)
            .lists::<UserSummary>("A page of users"),
    ]
}

/// A mute to be created, or the new state of an existing one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMute {
    /// Whether mentions by the muted user are hidden too.
    #[serde(default = "yes")]
    #[schema(default = true)]
    mentions: bool,
    /// Seconds until the mute ends, at most 315360000 (10 years). Default: the mute does not end.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 1, maximum = 315_360_000, example = 3_600)]
    ttl_s: Option<u64>,
}

impl Default for NewMute {
    fn default() -> Self {
        Self { mentions: yes(), ttl_s: None }
    }
}

fn yes() -> bool {
    true
}

/// A muted user.
#[derive(Serialize, ToSchema)]
pub(crate) struct Muted {
    #[serde(flatten)]
    user: UserSummary,
    /// Whether mentions by the muted user are hidden too.
    mentions: bool,
    /// Time at which the mute ends; null if it does not end.
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    expires_at: Option<String>,
}

changes! {
    block: TwoUsers(user, other) => Command::Block { user, other };
    unblock: TwoUsers(user, other) => Command::Unblock { user, other };
    unmute: TwoUsers(user, other) => Command::Unmute { user, other };
    not_interested: TwoUsers(user, other) => Command::NotInterested { user, other, on: true };
    interested: TwoUsers(user, other) => Command::NotInterested { user, other, on: false };
}

pub(crate) async fn list_not_interested(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    users(&state, SetTable::NotInterested, user, &asked).await
}

pub(crate) async fn blocks(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    users(&state, SetTable::Blocks, user, &asked).await
}

pub(crate) async fn mute(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    OrDefault(Input { body, key, .. }): OrDefault<NewMute>,
) -> Result<Response, ApiError> {
    let time = body.ttl_s.map(MuteTime::from_secs).transpose()?;
    state.carry_out(Command::Mute { user, other, mentions: body.mentions, time }, key).await
}

pub(crate) async fn mutes(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    let page = asked.of(Reading::Up);
    let found = state.read(move |node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let facts = node.facts();
        let ids = |span| facts.users_in(SetTable::Mutes, user, span);
        let muted = |id| {
            let (mute, user) = (facts.mute(user, id)?, UserSummary::read(node, id)?);
            Some(Muted { user, mentions: mute.mentions, expires_at: mute.ends_ms.map(rfc3339) })
        };
        Ok::<_, Refusal>(shown_users(&page, ids, muted))
    });
    Ok(page_of_users(&asked, &found.await??))
}
