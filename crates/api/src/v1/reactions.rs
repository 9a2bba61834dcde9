//! Favourites, bookmarks, pins and boosts.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use feed::{Command, PostId, Reaction, Refusal, UserRef, limits};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::guard::RouteKind;
use crate::idempotency::{Key, Once};
use crate::input::{OnePost, OneUser, UserAnd, decimal, post_number};
use crate::page::{Asked, AskedFor, json, to_json};
use crate::params::{IdPath, KeyHeader, PageQuery, UserPath, ViewerQuery};
use crate::query::Query;
use crate::routes::Routes;
use crate::state::AppState;
use crate::v1::follows::{Listed, UserPage, on_behalf_of, page_of_users, viewer};
use crate::v1::timelines::{PostPage, read_page};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("PUT", "/v1/users/{user}/favourites/{id}", RouteKind::Plain, favourite);
    routes.on("DELETE", "/v1/users/{user}/favourites/{id}", RouteKind::Plain, unfavourite);
    routes.on("GET", "/v1/users/{user}/favourites", RouteKind::Query, favourites);
    routes.on("PUT", "/v1/users/{user}/bookmarks/{id}", RouteKind::Plain, bookmark);
    routes.on("DELETE", "/v1/users/{user}/bookmarks/{id}", RouteKind::Plain, unbookmark);
    routes.on("GET", "/v1/users/{user}/bookmarks", RouteKind::Query, bookmarks);
    routes.on("PUT", "/v1/users/{user}/pins/{id}", RouteKind::Plain, pin);
    routes.on("DELETE", "/v1/users/{user}/pins/{id}", RouteKind::Plain, unpin);
    routes.on("GET", "/v1/users/{user}/pins", RouteKind::Query, pins);
    routes.on("PUT", "/v1/users/{user}/boosts/{id}", RouteKind::Plain, boost);
    routes.on("DELETE", "/v1/users/{user}/boosts/{id}", RouteKind::Plain, unboost);
    routes.on("GET", "/v1/users/{user}/reactions", RouteKind::Query, reactions);
    routes.on("GET", "/v1/posts/{id}/favourites", RouteKind::Query, favourited_by);
    routes.on("GET", "/v1/posts/{id}/boosts", RouteKind::Query, boosted_by);
}

/// Makes the handlers of one kind of reaction.
macro_rules! reaction {
    ($reaction:ident,
     $(#[$put_doc:meta])* $put:ident = $put_id:tt,
     $(#[$delete_doc:meta])* $delete:ident = $delete_id:tt, $one:tt, $refusals:tt) => {
        $(#[$put_doc])*
        #[utoipa::path(
            put, path = $one, operation_id = $put_id, tag = "posts",
            params(UserPath, IdPath, KeyHeader),
            responses(
                (status = 204, description = "It is one from now on"),
                (status = 404, description = "`user_not_found`, `post_not_found`", body = ErrorBody),
                (status = 422, description = $refusals, body = ErrorBody),
            )
        )]
        pub(crate) async fn $put(
            State(state): State<Arc<AppState>>,
            UserAnd(user, post): UserAnd<PostId>,
            Once(key): Once,
        ) -> Result<Response, ApiError> {
            react(&state, (user, post), (Reaction::$reaction, true), key).await
        }

        $(#[$delete_doc])*
        #[utoipa::path(
            delete, path = $one, operation_id = $delete_id, tag = "posts",
            params(UserPath, IdPath, KeyHeader),
            responses(
                (status = 204, description = "It is none"),
                (status = 404, description = "`user_not_found`, `post_not_found`", body = ErrorBody),
                (status = 422, description = "`idempotency_key_reused`", body = ErrorBody),
            )
        )]
        pub(crate) async fn $delete(
            State(state): State<Arc<AppState>>,
            UserAnd(user, post): UserAnd<PostId>,
            Once(key): Once,
        ) -> Result<Response, ApiError> {
            react(&state, (user, post), (Reaction::$reaction, false), key).await
        }
    };
}

reaction! {
    Favourite,
    /// Favourite a post
    ///
    /// Notifies its author. Idempotent.
    favourite = "favourite_post",
    /// Remove a favourite
    ///
    /// Idempotent.
    unfavourite = "unfavourite_post", "/v1/users/{user}/favourites/{id}", "`idempotency_key_reused`"
}

reaction! {
    Bookmark,
    /// Bookmark a post
    ///
    /// Only the user sees it. Idempotent.
    bookmark = "bookmark_post",
    /// Remove a bookmark
    ///
    /// Idempotent.
    unbookmark = "unbookmark_post", "/v1/users/{user}/bookmarks/{id}", "`idempotency_key_reused`"
}

reaction! {
    Pin,
    /// Pin a post
    ///
    /// To show one of the user's own posts on their profile. Idempotent.
    pin = "pin_post",
    /// Unpin a post
    ///
    /// Idempotent.
    unpin = "unpin_post",
    "/v1/users/{user}/pins/{id}", "`pin_not_own`, `pin_direct`, `too_many_pins`, `idempotency_key_reused`"
}

reaction! {
    Boost,
    /// Boost a post
    ///
    /// Shows it to the followers of the user, as a post of the user with the field `boost_of`. Notifies its author.
    /// Idempotent.
    boost = "boost_post",
    /// Remove a boost
    ///
    /// `id` is that of the boosted post. Idempotent.
    unboost = "unboost_post",
    "/v1/users/{user}/boosts/{id}", "`boost_not_open`, `too_many_posts`, `idempotency_key_reused`"
}

/// List the favourites of a user
///
/// The last one first. Cursors are not ids of posts. Without posts that the user may not see any more.
#[utoipa::path(
    get, path = "/v1/users/{user}/favourites", operation_id = "list_favourites", tag = "posts",
    params(UserPath, PageQuery),
    responses(
        (status = 200, description = "A page of posts", body = PostPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn favourites(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    posts(&state, user, Reaction::Favourite, &asked).await
}

/// List the bookmarks of a user
///
/// The last one first. Cursors are not ids of posts. Without posts that the user may not see any more.
#[utoipa::path(
    get, path = "/v1/users/{user}/bookmarks", operation_id = "list_bookmarks", tag = "posts",
    params(UserPath, PageQuery),
    responses(
        (status = 200, description = "A page of posts", body = PostPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn bookmarks(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    posts(&state, user, Reaction::Bookmark, &asked).await
}

/// List the pinned posts of a user
///
/// The last one first. Cursors are not ids of posts.
#[utoipa::path(
    get, path = "/v1/users/{user}/pins", operation_id = "list_pins", tag = "posts",
    params(UserPath, PageQuery, ViewerQuery),
    responses(
        (status = 200, description = "A page of posts", body = PostPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn pins(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    posts(&state, user, Reaction::Pin, &asked).await
}

async fn react(
    state: &AppState,
    (user, post): (UserRef, PostId),
    (reaction, on): (Reaction, bool),
    key: Option<Key>,
) -> Result<Response, ApiError> {
    state.carry_out(Command::React { user, post, reaction, on }, key).await
}

/// The posts to which a user reacted, on behalf of the viewer of the query, or of the user.
async fn posts(
    state: &AppState,
    user: UserRef,
    reaction: Reaction,
    asked: &Asked,
) -> Result<Response, ApiError> {
    let (page, named) = (asked.of(|stamp| stamp), asked.viewer.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let viewer = named.as_ref().unwrap_or(&user);
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let viewer = on_behalf_of(node, Some(viewer), user)?;
        Ok(node.reacted(&viewer, user, reaction, &page, out))
    };
    read_page(state, asked, read).await
}

/// List the users who favourited a post
#[utoipa::path(
    get, path = "/v1/posts/{id}/favourites", operation_id = "list_post_favourites", tag = "posts",
    params(IdPath, PageQuery, ViewerQuery),
    responses(
        (status = 200, description = "A page of users", body = UserPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`post_not_found`, `user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn favourited_by(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    reacted_by(&state, (post, Reaction::Favourite), asked).await
}

/// List the users who boosted a post
#[utoipa::path(
    get, path = "/v1/posts/{id}/boosts", operation_id = "list_post_boosts", tag = "posts",
    params(IdPath, PageQuery, ViewerQuery),
    responses(
        (status = 200, description = "A page of users", body = UserPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`post_not_found`, `user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
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
    let (span, named) = (asked.of_users(), asked.viewer.clone());
    let found = state.read(move |node| {
        let (viewer, facts) = (viewer(node, named.as_ref())?, node.facts());
        let found = facts.post(post).filter(|post| viewer.visible(post));
        let post = found.ok_or(Refusal::PostNotFound)?.boosted_or(post);
        let ids = |span| facts.reacted_by(post, reaction, span);
        Ok::<_, Refusal>(Listed::visible(&viewer, span, ids))
    });
    Ok(page_of_users(&asked, found.await??))
}

/// Posts in a query.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes what is read from the query")]
struct PostsQuery {
    /// Ids of posts with commas between, 1 to 100.
    #[param(example = "381482917519855616")]
    posts: String,
}

/// The posts in a query, in order.
pub(crate) struct Posts(Vec<PostId>);

impl<S: Send + Sync> FromRequestParts<S> for Posts {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let text = Query::parse(&parts.uri, &["posts"])?.text("posts")?.unwrap_or_default();
        let ids = text.split(',').take(limits::PAGE_MAX + 1);
        let ids: Result<Vec<_>, _> = ids.map(|id| post_number(decimal(id))).collect();
        let ids = ids.ok().filter(|ids| ids.len() <= limits::PAGE_MAX);
        let wrong = || ApiError::bad_request("posts are 1 to 100 ids with commas between");
        ids.map(Self).ok_or_else(|| wrong().at("posts"))
    }
}

/// How a user reacted to a post, and others did.
#[derive(Serialize, ToSchema)]
struct Reacted {
    #[schema(example = "381482917519855616")]
    id: String,
    /// Number of users who favourited it.
    favourite_count: u32,
    /// Whether the user did.
    favourited: bool,
    /// Number of users who boosted it.
    boost_count: u32,
    /// Whether the user did.
    boosted: bool,
    /// Whether the user bookmarked it.
    bookmarked: bool,
    /// Whether the user pins it.
    pinned: bool,
}

/// Reactions to posts.
#[derive(Serialize, ToSchema)]
pub(crate) struct Reactions {
    items: Vec<Reacted>,
}

/// Show the reactions to posts
///
/// In the order of the query, without posts that do not exist or that the user may not see.
#[utoipa::path(
    get, path = "/v1/users/{user}/reactions", operation_id = "get_reactions", tag = "posts",
    params(UserPath, PostsQuery),
    responses(
        (status = 200, description = "The reactions", body = Reactions),
        (status = 400, description = "`bad_request`", body = ErrorBody),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
    )
)]
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
        Ok::<_, Refusal>(Reactions { items: items.collect() })
    });
    Ok(json(to_json(&read.await??)))
}
