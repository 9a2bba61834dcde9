//! Publishing, reading and deleting single posts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use feed::{Command, Done, PostId, PostText, Refusal};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{Input, Once, OnePost, OneUser};
use crate::page::json;
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::users::{created, mark_replay};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/users/{user}/posts", Entry::Plain, publish);
    routes.on("GET", "/v1/posts/{id}", Entry::Plain, show);
    routes.on("DELETE", "/v1/posts/{id}", Entry::Plain, delete);
}

/// A post to be published.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPost {
    /// 1 to 500 characters after trimming.
    #[schema(example = "hello @bob")]
    text: String,
}

/// Somebody named in a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct Mentioned {
    id: String,
    handle: String,
}

/// Who wrote a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct Author {
    id: String,
    handle: String,
    name: String,
}

/// A post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct PostView {
    #[schema(example = "381482917519855616")]
    id: String,
    author: Author,
    text: String,
    #[schema(example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// Whose handle opens the text.
    reply_to: Option<Mentioned>,
    mentions: Vec<Mentioned>,
}

/// Post
///
/// A text that opens with `@handle` is a reply: of the author's followers, those who also follow
/// that person see it at home.
#[utoipa::path(
    post, path = "/v1/users/{user}/posts", tag = "posts", request_body = NewPost,
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("Idempotency-Key" = Option<String>, Header, description = "retries with the same key return the first result"),
    ),
    responses(
        (status = 201, body = PostView, headers(("Location" = String), ("Idempotent-Replayed" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_text`, `idempotency_key_reused`", body = ErrorBody),
        (status = 503, description = "`overloaded`, with Retry-After", body = ErrorBody),
    )
)]
pub(crate) async fn publish(
    State(edge): State<Arc<Edge>>,
    OneUser(author): OneUser,
    Input { body, idempotency, .. }: Input<NewPost>,
) -> Result<Response, Problem> {
    let command = Command::Post { author, text: PostText::parse(&body.text)? };
    let (Done::Posted(post), replayed) = edge.submit(command, idempotency).await? else {
        unreachable!("posting posts");
    };
    let mut body = Vec::with_capacity(512);
    let found = edge.node.try_post(post, &mut body);
    let body = match found {
        true => Some(body),
        false => edge.read_done(move |node| node.post(post, &mut body).then_some(body)).await?,
    };
    let Some(body) = body else {
        // It has been deleted since; a replay says so too.
        let gone = Problem::from(Refusal::PostNotFound).into_response();
        return Ok(mark_replay(gone, replayed));
    };
    Ok(created(json(body), format!("/v1/posts/{}", post.0), replayed))
}

/// Get a post
#[utoipa::path(
    get, path = "/v1/posts/{id}", tag = "posts", params(("id" = String, Path)),
    responses((status = 200, body = PostView), (status = 404, description = "`post_not_found`", body = ErrorBody))
)]
pub(crate) async fn show(
    State(edge): State<Arc<Edge>>,
    OnePost(post): OnePost,
) -> Result<Response, Problem> {
    let post = rendered(&edge, post).await?;
    post.map(json).ok_or(Refusal::PostNotFound.into())
}

/// Delete a post
#[utoipa::path(
    delete, path = "/v1/posts/{id}", tag = "posts", params(("id" = String, Path)),
    responses((status = 204), (status = 404, description = "`post_not_found`", body = ErrorBody))
)]
pub(crate) async fn delete(
    State(edge): State<Arc<Edge>>,
    OnePost(post): OnePost,
    Once(key): Once,
) -> Result<Response, Problem> {
    edge.carry_out(Command::DeletePost { post }, key).await
}

/// A post as JSON, from memory if it is at hand.
async fn rendered(edge: &Edge, post: PostId) -> Result<Option<Vec<u8>>, Problem> {
    let mut out = Vec::with_capacity(512);
    if edge.node.try_post(post, &mut out) {
        return Ok(Some(out));
    }
    edge.read(move |node| node.post(post, &mut out).then_some(out)).await
}
