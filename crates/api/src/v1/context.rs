//! Threads: the ancestors and the replies of a post.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use feed::thread::ThreadPath;
use feed::{PostId, Refusal, Stamp, UserRef, limits};
use node::Node;
use utoipa::ToSchema;

use crate::described;
use crate::error::ApiError;
use crate::input::{OnePost, decimal};
use crate::page::{answer, cursor, limit, viewer};
use crate::query::Query;
use crate::route::{Inputs, Reads, Route};
use crate::rule::May::See;
use crate::state::AppState;
use crate::v1::posts::PostView;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/posts/{id}/context", context)
            .named("get_thread", "Read a thread")
            .users(See)
            .text(
                "A reply to a deleted post has a null `in_reply_to_id`, and its thread has no \
                 ancestors.",
            )
            .shows::<Context>("The thread"),
    ]
}

/// A thread around a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the response, which is written as bytes")]
pub(crate) struct Context {
    /// Posts above this one, oldest first: at most the nearest 40. There are more if the first one has an
    /// `in_reply_to_id`.
    ancestors: Vec<PostView>,
    /// Replies to the post, at most 20 levels deep, in depth-first order: each reply is followed by all replies to it.
    items: Vec<PostView>,
    /// The cursor of the next page of replies.
    next: Option<String>,
    /// Always null: replies are read in one direction.
    prev: Option<String>,
}

/// The requested page of replies.
pub(super) struct Below {
    limit: usize,
    after: ThreadPath,
    viewer: Option<UserRef>,
}

impl<S: Send + Sync> FromRequestParts<S> for Below {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parse(parts)
    }
}

impl Reads for Below {
    fn describe(inputs: &mut Inputs) {
        described::page(inputs);
        described::viewer(inputs);
    }
}

fn parse(parts: &Parts) -> Result<Below, ApiError> {
    let mut query = Query::parse(&parts.uri, &["limit", "cursor", "viewer"])?;
    let (limit, viewer) = (limit(&mut query)?, viewer(parts, &mut query)?);
    let after = cursor(&mut query, parse_path)?.unwrap_or_default();
    Ok(Below { limit, after, viewer })
}

/// Parses a cursor: the ids of the ancestors of a reply and its own id, joined by dots; `None` if it is invalid.
fn parse_path(path: &str) -> Option<ThreadPath> {
    let id = |id| decimal(id).filter(|id| *id <= Stamp::MAX.0).map(PostId);
    // One id more than the maximum is read, to detect a path that is too long.
    let ids = path.split('.').take(limits::THREAD_DEPTH_MAX + 1).map(id);
    ids.collect::<Option<ThreadPath>>().filter(|path| path.len() <= limits::THREAD_DEPTH_MAX)
}

pub(super) async fn context(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    Below { limit, after, viewer }: Below,
) -> Result<Response, ApiError> {
    let mut out = b"{".to_vec();
    let read = move |node: &Node| {
        let viewer = viewer.map(|user| node.resolve(&user).ok_or(Refusal::ViewerNotFound));
        let next = node.context(viewer.transpose()?, post, &after, limit, &mut out);
        Ok::<_, Refusal>((next.ok_or(Refusal::PostNotFound)?, out))
    };
    let (next, out) = state.read(read).await??;
    let next =
        next.map(|path| path.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join("."));
    Ok(answer(out, next.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_parsed_and_invalid_ones_are_refused() {
        let deepest = vec!["7"; limits::THREAD_DEPTH_MAX].join(".");
        for (query, expect) in [
            ("", Ok((20, 0))),
            ("limit=1", Ok((1, 0))),
            ("limit=100&cursor=5", Ok((100, 1))),
            ("cursor=5.6.7", Ok((20, 3))),
            (&format!("cursor={deepest}"), Ok((20, limits::THREAD_DEPTH_MAX))),
            (&format!("cursor={deepest}.7"), Err("bad_cursor")),
            ("cursor=", Err("bad_cursor")),
            ("cursor=5.", Err("bad_cursor")),
            ("cursor=05", Err("bad_cursor")),
            ("cursor=9223372036854775808", Err("bad_cursor")),
            ("cursor=5&cursor=6", Err("bad_request")),
            ("limit=0", Err("bad_limit")),
            ("limit=101", Err("bad_limit")),
            ("before=5", Err("bad_request")),
        ] {
            let uri = format!("/?{query}");
            let request = axum::http::Request::builder().uri(uri).body(()).unwrap();
            let (parts, ()) = request.into_parts();
            let read = parse(&parts).map(|below| (below.limit, below.after.len()));
            assert_eq!(read.map_err(|problem| problem.code), expect, "{query}");
        }
    }
}
