//! Threads: the ancestors and the replies of a post.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use feed::thread::ThreadPath;
use feed::{PostId, Refusal, Stamp, UserRef, limits};
use node::Node;
use utoipa::ToSchema;

use crate::described::{self, page_after};
use crate::error::ApiError;
use crate::input::{OnePost, decimal};
use crate::page::{json, limit, push_number, push_viewer, viewer};
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
    descendants: Vec<PostView>,
    /// Path of the next page of descendants.
    next: Option<String>,
}

/// The requested page of descendants.
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
        page_after(inputs);
        described::viewer(inputs);
    }
}

fn parse(parts: &Parts) -> Result<Below, ApiError> {
    let mut query = Query::parse(&parts.uri, &["limit", "after", "viewer"])?;
    let (limit, viewer) = (limit(&mut query)?, viewer(parts, &mut query)?);
    let after = query.text("after")?;
    let after = after.map_or(Some(Vec::new()), |path| parse_path(&path));
    let wrong =
        || ApiError::bad_cursor("after must be a cursor from next of an earlier page").at("after");
    Ok(Below { limit, after: after.ok_or_else(wrong)?, viewer })
}

/// Parses ids joined by dots; `None` if the cursor is invalid.
fn parse_path(path: &str) -> Option<ThreadPath> {
    let id = |id| decimal(id).filter(|id| *id <= Stamp::MAX.0).map(PostId);
    // One more than the maximum, to detect a path that is too long.
    let ids = path.split('.').take(limits::THREAD_DEPTH_MAX + 1).map(id);
    ids.collect::<Option<ThreadPath>>().filter(|path| path.len() <= limits::THREAD_DEPTH_MAX)
}

pub(super) async fn context(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    Below { limit, after, viewer }: Below,
) -> Result<Response, ApiError> {
    let mut out = b"{".to_vec();
    let named = viewer.clone();
    let read = move |node: &Node| {
        let viewer = named.map(|user| node.resolve(&user).ok_or(Refusal::ViewerNotFound));
        let next = node.context(viewer.transpose()?, post, &after, limit, &mut out);
        Ok::<_, Refusal>((next.ok_or(Refusal::PostNotFound)?, out))
    };
    let (next, mut out) = state.read(read).await??;
    out.extend_from_slice(b",\"next\":");
    match next {
        None => out.extend_from_slice(b"null"),
        Some(path) => write_next((post, viewer.as_ref()), limit, &path, &mut out),
    }
    out.push(b'}');
    Ok(json(out))
}

fn write_next(
    (post, viewer): (PostId, Option<&UserRef>),
    limit: usize,
    path: &[PostId],
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"\"/v1/posts/");
    push_number(post.0, out);
    out.extend_from_slice(b"/context?limit=");
    push_number(limit as u64, out);
    out.extend_from_slice(b"&after=");
    for (index, post) in path.iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        push_number(post.0, out);
    }
    push_viewer(viewer, out);
    out.push(b'"');
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
            ("limit=100&after=5", Ok((100, 1))),
            ("after=5.6.7", Ok((20, 3))),
            (&format!("after={deepest}"), Ok((20, limits::THREAD_DEPTH_MAX))),
            (&format!("after={deepest}.7"), Err("bad_cursor")),
            ("after=", Err("bad_cursor")),
            ("after=5.", Err("bad_cursor")),
            ("after=05", Err("bad_cursor")),
            ("after=9223372036854775808", Err("bad_cursor")),
            ("after=5&after=6", Err("bad_request")),
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
