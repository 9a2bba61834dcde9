//! Publishing, reading, editing and deleting single posts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use feed::{Command, Done, PostId, PostText, Refusal};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{Input, Once, OnePost, OneUser, decimal, given, post_number};
use crate::page::json;
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::users::{created, mark_replay};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/users/{user}/posts", Entry::Plain, publish);
    routes.on("GET", "/v1/posts/{id}", Entry::Plain, show);
    routes.on("PATCH", "/v1/posts/{id}", Entry::Plain, edit);
    routes.on("DELETE", "/v1/posts/{id}", Entry::Plain, delete);
}

/// A post to be published.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPost {
    /// 1 to 500 characters after trimming.
    #[schema(example = "hello @bob")]
    text: String,
    /// The post replied to.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "381482917519855616")]
    in_reply_to_id: Option<String>,
}

/// What is to change about a post.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostChange {
    /// 1 to 500 characters after trimming.
    #[schema(example = "hello @bob and @cy")]
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
    /// When the text was last changed.
    #[schema(example = "2026-11-21T09:31:00.123Z")]
    edited_at: Option<String>,
    /// The post replied to; null once that is deleted.
    in_reply_to_id: Option<String>,
    /// Who is replied to: the author of the post replied to, or else whose handle opens the text.
    reply_to: Option<Mentioned>,
    /// Who is mentioned: the author of the post replied to, then those in the text.
    mentions: Vec<Mentioned>,
}

/// Post
///
/// With `in_reply_to_id` it is a reply to that post, and mentions its author. Without, a text that opens
/// with `@handle` is a reply to that user. Of the author's followers, those who also follow whoever is
/// replied to have a reply at home.
#[utoipa::path(
    post, path = "/v1/users/{user}/posts", tag = "posts", request_body = NewPost,
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("Idempotency-Key" = Option<String>, Header, description = "retries with the same key return the first result"),
    ),
    responses(
        (status = 201, body = PostView, headers(("Location" = String), ("Idempotent-Replayed" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (
            status = 422,
            description = "`bad_text`, `idempotency_key_reused`; `in_reply_to_not_found` if the post replied to \
                does not exist or was deleted",
            body = ErrorBody
        ),
        (status = 503, description = "`overloaded`, with Retry-After", body = ErrorBody),
    )
)]
pub(crate) async fn publish(
    State(edge): State<Arc<Edge>>,
    OneUser(author): OneUser,
    Input { body, idempotency, .. }: Input<NewPost>,
) -> Result<Response, Problem> {
    let text = PostText::parse(&body.text)?;
    let command = match body.in_reply_to_id {
        None => Command::Post { author, text },
        Some(parent) => Command::Reply { author, text, parent: post_number(decimal(&parent))? },
    };
    let (Done::Posted(post), replayed) = edge.submit(command, idempotency).await? else {
        unreachable!("posting posts");
    };
    Ok(match rendered_done(&edge, post).await? {
        Some(body) => created(json(body), format!("/v1/posts/{}", post.0), replayed),
        None => gone(replayed),
    })
}

/// A post that was just published or edited, as JSON, if it was not deleted since.
async fn rendered_done(edge: &Edge, post: PostId) -> Result<Option<Vec<u8>>, Problem> {
    let mut body = Vec::with_capacity(512);
    if edge.node.try_post(post, &mut body) {
        return Ok(Some(body));
    }
    edge.read_done(move |node| node.post(post, &mut body).then_some(body)).await
}

/// The answer if the post has been deleted since; a replay says so too.
fn gone(replayed: bool) -> Response {
    mark_replay(Problem::from(Refusal::PostNotFound).into_response(), replayed)
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

/// Edit a post
///
/// Changes the text, and with it whom the text mentions. What the post replies to stays.
#[utoipa::path(
    patch, path = "/v1/posts/{id}", tag = "posts", request_body = PostChange,
    params(
        ("id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "happens at most once a key"),
    ),
    responses(
        (status = 200, body = PostView, headers(("Idempotent-Replayed" = String))),
        (status = 404, description = "`post_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_text`, `idempotency_key_reused`", body = ErrorBody),
        (status = 503, description = "`overloaded`, with Retry-After", body = ErrorBody),
    )
)]
pub(crate) async fn edit(
    State(edge): State<Arc<Edge>>,
    OnePost(post): OnePost,
    Input { body, idempotency, .. }: Input<PostChange>,
) -> Result<Response, Problem> {
    let command = Command::EditPost { post, text: PostText::parse(&body.text)? };
    let (_, replayed) = edge.submit(command, idempotency).await?;
    Ok(match rendered_done(&edge, post).await? {
        Some(body) => mark_replay(json(body), replayed),
        None => gone(replayed),
    })
}

/// Delete a post
///
/// Replies to it stay.
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
