//! Pages of posts: home, a person's own, mentions.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Page, PostId, Refusal, UserId, UserRef, limits};
use node::{Node, PageEnds};
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::OneUser;
use crate::page::{Asked, Reading};
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::posts::PostView;

/// How many bytes a post takes in an answer, roughly: sizes the buffer of a page.
const POST_BYTES: usize = 256;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/v1/users/{user}/timeline", Entry::Query, home);
    routes.on("GET", "/v1/users/{user}/posts", Entry::Query, posts);
    routes.on("GET", "/v1/users/{user}/mentions", Entry::Query, mentions);
}

/// A page of posts, newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct PostPage {
    items: Vec<PostView>,
    /// Path of the page of older posts.
    next: Option<String>,
    /// Path of the page of newer posts.
    prev: Option<String>,
}

/// Get a user's home timeline
///
/// The newest posts by the people they follow now and by themselves.
#[utoipa::path(
    get, path = "/v1/users/{user}/timeline", tag = "timelines",
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("before" = Option<String>, Query, description = "the newest posts older than this one"),
        ("after" = Option<String>, Query, description = "the oldest posts newer than this one"),
    ),
    responses(
        (status = 200, body = PostPage, headers(("Link" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn home(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    asked: Asked<{ limits::PAGE_MAX }>,
) -> Result<Response, Problem> {
    read_home(&edge, user, &asked, asked.of(PostId), Node::try_home, Node::home).await
}

/// Get a user's posts
#[utoipa::path(
    get, path = "/v1/users/{user}/posts", tag = "timelines",
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("before" = Option<String>, Query, description = "the newest posts older than this one"),
        ("after" = Option<String>, Query, description = "the oldest posts newer than this one"),
    ),
    responses(
        (status = 200, body = PostPage, headers(("Link" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn posts(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    asked: Asked<{ limits::PAGE_MAX }>,
) -> Result<Response, Problem> {
    from_facts(&edge, user, &asked, Node::posts_by).await
}

/// Get a user's mentions
#[utoipa::path(
    get, path = "/v1/users/{user}/mentions", tag = "timelines",
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("limit" = Option<u32>, Query, description = "1 to 50, by default 20"),
        ("before" = Option<String>, Query, description = "the newest posts older than this one"),
        ("after" = Option<String>, Query, description = "the oldest posts newer than this one"),
    ),
    responses(
        (status = 200, body = PostPage, headers(("Link" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn mentions(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    asked: Asked<{ limits::MENTIONS_PAGE_MAX }>,
) -> Result<Response, Problem> {
    from_facts(&edge, user, &asked, Node::mentions).await
}

async fn from_facts<const MAX: usize>(
    edge: &Edge,
    user: UserRef,
    asked: &Asked<MAX>,
    read: fn(&Node, UserId, &Page, &mut Vec<u8>) -> PageEnds,
) -> Result<Response, Problem> {
    let page = asked.of(PostId);
    read_page(edge, asked, move |node, out| Some(read(node, node.resolve(&user)?, &page, out)))
        .await
}

/// Answers a page of a person's home by `try_read` if all of it is in memory, which is the rule for
/// people who are active, else by `read`.
pub(crate) async fn read_home<I, const MAX: usize, const DEFAULT: usize>(
    edge: &Edge,
    user: UserRef,
    asked: &Asked<MAX, DEFAULT>,
    page: Page<I>,
    try_read: impl FnOnce(&Node, UserId, &Page<I>, &mut Vec<u8>) -> Option<PageEnds<I>>,
    read: fn(&Node, UserId, &Page<I>, &mut Vec<u8>) -> PageEnds<I>,
) -> Result<Response, Problem>
where
    I: Into<u64> + Send + 'static,
{
    let mut out = opened(asked.limit);
    let at_hand = match edge.node.try_resolve(&user) {
        Some(None) => return Err(Refusal::UserNotFound.into()),
        Some(Some(user)) => try_read(&edge.node, user, &page, &mut out),
        None => None,
    };
    match at_hand {
        Some(ends) => Ok(asked.answer(Reading::Down, ends.into(), out)),
        None => {
            let read = move |node: &Node, out: &mut Vec<u8>| {
                Some(read(node, node.resolve(&user)?, &page, out))
            };
            read_page(edge, asked, read).await
        }
    }
}

/// Answers the page that `read` appends where blocking is allowed; `None` if somebody who is named
/// does not exist.
pub(crate) async fn read_page<I, const MAX: usize, const DEFAULT: usize>(
    edge: &Edge,
    asked: &Asked<MAX, DEFAULT>,
    read: impl FnOnce(&Node, &mut Vec<u8>) -> Option<PageEnds<I>> + Send + 'static,
) -> Result<Response, Problem>
where
    I: Into<u64> + Send + 'static,
{
    let mut out = opened(asked.limit);
    let found = edge.read(move |node| Some((read(node, &mut out)?, out)));
    let (ends, out) = found.await?.ok_or(Refusal::UserNotFound)?;
    Ok(asked.answer(Reading::Down, ends.into(), out))
}

/// A buffer that holds the beginning of a page.
pub(crate) fn opened(posts: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(POST_BYTES * (posts + 1));
    out.extend_from_slice(b"{\"items\":[");
    out
}
