//! Favourites, bookmarks, pins, boosts, and posts of which users want to see less.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use feed::{Command, PostId, Reaction, Refusal, UserRef, limits};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::idempotency::Once;
use crate::input::{OnePost, OneUser, UserAnd, decimal, post_number};
use crate::page::{Asked, AskedFor, Reading, answer, opened_with};
use crate::query::Query;
use crate::route::{Inputs, Reads, Route};
use crate::rule::May::{Own, See};
use crate::state::AppState;
use crate::v1::follows::{UserSummary, on_behalf_of, page_of_users, viewer};
use crate::v1::posts::PostView;
use crate::v1::timelines::read_page;

pub(crate) fn routes() -> Vec<Route> {
    let react = |reaction, on| {
        move |State(state): State<Arc<AppState>>,
              UserAnd(user, post): UserAnd<PostId>,
              Once(key): Once| async move {
            state.carry_out(Command::React { user, post, reaction, on }, key).await
        }
    };
    vec![
        Route::put("/v1/users/{user}/favourites/{id}", react(Reaction::Favourite, true))
            .named("favourite_post", "Favourite a post")
            .users(Own)
            .text("Notifies the author. Idempotent.")
            .answers(204, "The post is a favourite of the user"),
        Route::delete("/v1/users/{user}/favourites/{id}", react(Reaction::Favourite, false))
            .named("unfavourite_post", "Remove a favourite")
            .users(Own)
            .text("Idempotent.")
            .answers(204, "The post is not a favourite of the user"),
        Route::put("/v1/users/{user}/bookmarks/{id}", react(Reaction::Bookmark, true))
            .named("bookmark_post", "Bookmark a post")
            .users(Own)
            .text("Only the user sees the bookmark. Idempotent.")
            .answers(204, "The post is bookmarked"),
        Route::delete("/v1/users/{user}/bookmarks/{id}", react(Reaction::Bookmark, false))
            .named("unbookmark_post", "Remove a bookmark")
            .users(Own)
            .text("Idempotent.")
            .answers(204, "The post is not bookmarked"),
        Route::put("/v1/users/{user}/less/{id}", react(Reaction::Less, true))
            .named("show_less_like_post", "Show less like a post")
            .users(Own)
            .text(
                "Ranked feeds of the user no longer have the post, and have less by its author \
                 and with its hashtags. Only the user sees this. Idempotent.",
            )
            .answers(204, "Ranked feeds show less like the post"),
        Route::delete("/v1/users/{user}/less/{id}", react(Reaction::Less, false))
            .named("undo_show_less_like_post", "Undo \"show less like a post\"")
            .users(Own)
            .text("Idempotent.")
            .answers(204, "Ranked feeds may show the post"),
        Route::put("/v1/users/{user}/pins/{id}", react(Reaction::Pin, true))
            .named("pin_post", "Pin a post")
            .users(Own)
            .text("Shows a post of the user on their profile. Idempotent.")
            .answers(204, "The post is pinned")
            .errors(&["pin_not_own", "pin_direct", "too_many_pins"]),
        Route::delete("/v1/users/{user}/pins/{id}", react(Reaction::Pin, false))
            .named("unpin_post", "Unpin a post")
            .users(Own)
            .text("Idempotent.")
            .answers(204, "The post is not pinned"),
        Route::put("/v1/users/{user}/boosts/{id}", react(Reaction::Boost, true))
            .named("boost_post", "Boost a post")
            .users(Own)
            .posting()
            .text(
                "Creates a post of the user with the boosted post in `boost_of`, which followers \
                 of the user see at home. Notifies the author. Idempotent.",
            )
            .answers(204, "The post is boosted")
            .errors(&["boost_not_open", "too_many_posts"]),
        Route::delete("/v1/users/{user}/boosts/{id}", react(Reaction::Boost, false))
            .named("unboost_post", "Remove a boost")
            .users(Own)
            .text("`id` is the id of the boosted post. Idempotent.")
            .answers(204, "The post is not boosted"),
    ]
}

pub(crate) fn lists() -> Vec<Route> {
    vec![
        Route::get("/v1/users/{user}/favourites", favourites)
            .named("list_favourites", "List the favourites of a user")
            .users(Own)
            .text("Most recent favourite first. Omits posts that the user may no longer see.")
            .lists::<PostView>("A page of posts"),
        Route::get("/v1/users/{user}/bookmarks", bookmarks)
            .named("list_bookmarks", "List the bookmarks of a user")
            .users(Own)
            .text("Most recent bookmark first. Omits posts that the user may no longer see.")
            .lists::<PostView>("A page of posts"),
        Route::get("/v1/users/{user}/less", less)
            .named("list_less", "List the posts of which a user wants to see less")
            .users(Own)
            .text("Most recent first. Omits posts that the user may no longer see.")
            .lists::<PostView>("A page of posts"),
        Route::get("/v1/users/{user}/pins", pins)
            .named("list_pins", "List the pinned posts of a user")
            .users(See)
            .text("Most recent pin first.")
            .lists::<PostView>("A page of posts"),
        Route::get("/v1/users/{user}/reactions", reactions)
            .named("get_reactions", "Show the reactions to posts")
            .users(Own)
            .text(
                "In the order of the query. Omits posts that do not exist or that the user may \
                 not see.",
            )
            .lists::<Reacted>("The reactions, on one page"),
        Route::get("/v1/posts/{id}/favourites", favourited_by)
            .named("list_post_favourites", "List the users who favourited a post")
            .users(See)
            .lists::<UserSummary>("A page of users"),
        Route::get("/v1/posts/{id}/boosts", boosted_by)
            .named("list_post_boosts", "List the users who boosted a post")
            .users(See)
            .lists::<UserSummary>("A page of users"),
    ]
}

pub(crate) async fn favourites(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    posts(&state, user, Reaction::Favourite, &asked).await
}

pub(crate) async fn bookmarks(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    posts(&state, user, Reaction::Bookmark, &asked).await
}

pub(crate) async fn less(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    posts(&state, user, Reaction::Less, &asked).await
}

pub(crate) async fn pins(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    posts(&state, user, Reaction::Pin, &asked).await
}

/// Responds with the posts to which a user reacted. The viewer is `viewer` of the query, or else the user.
async fn posts(
    state: &AppState,
    user: UserRef,
    reaction: Reaction,
    asked: &Asked,
) -> Result<Response, ApiError> {
    let (page, named) = (asked.of(Reading::Down), asked.viewer.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let viewer = named.as_ref().unwrap_or(&user);
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let viewer = on_behalf_of(node, Some(viewer), user)?;
        Ok(node.reacted(&viewer, user, reaction, &page, out))
    };
    read_page(state, asked, read).await
}

pub(crate) async fn favourited_by(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    reacted_by(&state, (post, Reaction::Favourite), asked).await
}

pub(crate) async fn boosted_by(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    reacted_by(&state, (post, Reaction::Boost), asked).await
}

async fn reacted_by(
    state: &AppState,
    (post, reaction): (PostId, Reaction),
    asked: Asked,
) -> Result<Response, ApiError> {
    let (page, named) = (asked.of(Reading::Up), asked.viewer.clone());
    let found = state.read(move |node| {
        let (viewer, facts) = (viewer(node, named.as_ref())?, node.facts());
        let found = facts.post(post).filter(|post| viewer.visible(post));
        let post = found.ok_or(Refusal::PostNotFound)?.boosted_or(post);
        let ids = |span| facts.reacted_by(post, reaction, span);
        Ok::<_, Refusal>(UserSummary::visible(node, &viewer, &page, ids))
    });
    Ok(page_of_users(&asked, &found.await??))
}

/// Ids of posts in a query, in order.
pub(crate) struct Posts(Vec<PostId>);

impl<S: Send + Sync> FromRequestParts<S> for Posts {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let text = Query::parse(&parts.uri, &["posts"])?.text("posts")?.unwrap_or_default();
        let ids = text.split(',').take(limits::PAGE_MAX + 1);
        let ids: Result<Vec<_>, _> = ids.map(|id| post_number(decimal(id))).collect();
        let ids = ids.ok().filter(|ids| ids.len() <= limits::PAGE_MAX);
        let wrong = || ApiError::bad_request("posts must be 1 to 100 comma-separated ids");
        ids.map(Self).ok_or_else(|| wrong().at("posts"))
    }
}

impl Reads for Posts {
    fn describe(inputs: &mut Inputs) {
        let text = "1 to 100 comma-separated ids of posts.";
        inputs.required("posts", text, "381482917519855616");
    }
}

/// Reactions of a user and of all users to a post.
#[derive(Serialize, ToSchema)]
struct Reacted {
    #[schema(example = "381482917519855616")]
    id: String,
    /// Number of users who favourited the post.
    favourite_count: u32,
    /// Whether the user favourited the post.
    favourited: bool,
    /// Number of users who boosted the post.
    boost_count: u32,
    /// Whether the user boosted the post.
    boosted: bool,
    /// Whether the user bookmarked the post.
    bookmarked: bool,
    /// Whether the user pinned the post.
    pinned: bool,
}

pub(crate) async fn reactions(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    Posts(posts): Posts,
) -> Result<Response, ApiError> {
    let read = state.read(move |node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let (facts, viewer) = (node.facts(), node.viewer(Some(user)));
        let items = posts.into_iter().filter_map(|id| {
            let post = facts.post(id).filter(|post| viewer.visible(post))?.boosted_or(id);
            let has = |reaction| facts.reaction(user, post, reaction).is_some();
            let counts = facts.post_counts(post);
            Some(Reacted {
                id: id.0.to_string(),
                favourite_count: counts.favourites,
                favourited: has(Reaction::Favourite),
                boost_count: counts.boosts,
                boosted: has(Reaction::Boost),
                bookmarked: has(Reaction::Bookmark),
                pinned: has(Reaction::Pin),
            })
        });
        Ok::<_, Refusal>(items.collect::<Vec<_>>())
    });
    Ok(answer(opened_with(read.await??.iter()), None))
}
