//! Pages of posts: home timeline, posts of a user, mentions.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Page, PageEnds, Refusal, UserId, UserRef};
use node::Node;

use crate::error::ApiError;
use crate::input::OneUser;
use crate::page::{Asked, AskedFor, Reading, opened};
use crate::route::Route;
use crate::rule::May::{Own, See};
use crate::state::AppState;
use crate::v1::follows::on_behalf_of;
use crate::v1::posts::PostView;

/// Typical maximum size of a post in a response, in bytes: the buffer of a page has this capacity per post.
const POST_BYTES: usize = 384;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/users/{user}/timeline", home)
            .named("list_home_posts", "Read the home timeline")
            .users(Own)
            .text(
                "Newest posts of the user and of the users whom the user follows and does not \
                 mute.",
            )
            .lists::<PostView>("A page of posts"),
        Route::get("/v1/users/{user}/posts", posts)
            .named("list_posts", "List the posts of a user")
            .users(See)
            .lists::<PostView>("A page of posts"),
        Route::get("/v1/users/{user}/mentions", mentions)
            .named("list_mentions", "List posts that mention a user")
            .users(Own)
            .text(
                "Omits the user's own posts, and posts by users whom a block hides or whose \
                 mentions the user mutes.",
            )
            .lists::<PostView>("A page of posts"),
    ]
}

pub(crate) async fn home(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    read_home(&state, user, &asked, Node::try_home, Node::home).await
}

pub(crate) async fn posts(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    let (page, viewer) = (asked.of(Reading::Down), asked.viewer.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let viewer = on_behalf_of(node, viewer.as_ref(), user)?;
        Ok(node.posts_by(&viewer, user, &page, out))
    };
    read_page(&state, &asked, read).await
}

pub(crate) async fn mentions(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    let page = asked.of(Reading::Down);
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        Ok(node.mentions(user, &page, out))
    };
    read_page(&state, &asked, read).await
}

/// Responds with a page of a user's home timeline: from `try_read` if the whole page is in memory, which is usual for
/// active users, otherwise from `read`.
pub(crate) async fn read_home(
    state: &AppState,
    user: UserRef,
    asked: &Asked,
    try_read: impl FnOnce(&Node, UserId, &Page, &mut Vec<u8>) -> Option<PageEnds>,
    read: fn(&Node, UserId, &Page, &mut Vec<u8>) -> PageEnds,
) -> Result<Response, ApiError> {
    let page = asked.of(Reading::Down);
    let mut out = opened(POST_BYTES * asked.limit);
    let at_hand = match state.node.try_resolve(&user) {
        Some(None) => return Err(Refusal::UserNotFound.into()),
        Some(Some(user)) => try_read(&state.node, user, &page, &mut out),
        None => None,
    };
    match at_hand {
        Some(ends) => Ok(asked.answer(Reading::Down, ends, out)),
        None => {
            let read = move |node: &Node, out: &mut Vec<u8>| {
                let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
                Ok(read(node, user, &page, out))
            };
            read_page(state, asked, read).await
        }
    }
}

/// Responds with the page that `read` appends; `read` may block.
pub(crate) async fn read_page(
    state: &AppState,
    asked: &Asked,
    read: impl FnOnce(&Node, &mut Vec<u8>) -> Result<PageEnds, Refusal> + Send + 'static,
) -> Result<Response, ApiError> {
    let mut out = opened(POST_BYTES * asked.limit);
    let found = state.read(move |node| read(node, &mut out).map(|ends| (ends, out)));
    let (ends, out) = found.await??;
    Ok(asked.answer(Reading::Down, ends, out))
}
