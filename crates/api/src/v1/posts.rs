//! Single posts: create, show, delete.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use feed::{Command, PostId, PostText, Refusal};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::guard::Entry;
use crate::idempotency::Once;
use crate::input::{Input, OnePost, OneUser};
use crate::page::json;
use crate::params::{IdPath, KeyHeader, UserPath};
use crate::routes::Routes;
use crate::state::AppState;
use crate::v1::users::created;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/users/{user}/posts", Entry::Plain, create);
    routes.on("GET", "/v1/posts/{id}", Entry::Plain, show);
    routes.on("DELETE", "/v1/posts/{id}", Entry::Plain, delete);
}

/// A post to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPost {
    /// 1 to 500 characters after trimming.
    #[schema(example = "hello")]
    text: String,
}

/// A user named in a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct Mentioned {
    id: String,
    handle: String,
}

/// Who wrote a post or story.
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
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// The user whose handle begins the text.
    reply_to: Option<Mentioned>,
    mentions: Vec<Mentioned>,
}

/// Create a post
///
/// A text that begins with `@handle` is a reply: of the author's followers, those who also follow
/// that user see it in their home timeline.
#[utoipa::path(
    post, path = "/v1/users/{user}/posts", operation_id = "create_post", tag = "posts",
    request_body = NewPost, params(UserPath, KeyHeader),
    responses(
        (status = 201, description = "The new post", body = PostView,
         headers(("Location" = String, description = "Path of the post"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_text`, `too_many_posts`, `idempotency_key_reused`", body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    OneUser(author): OneUser,
    Input { body, key, .. }: Input<NewPost>,
) -> Result<Response, ApiError> {
    let post = state.submit_post(author, PostText::parse(&body.text)?, key).await?;
    let (id, mut body) = (post.value, Vec::with_capacity(512));
    let found = state.node.try_post(id, &mut body);
    let body = match found {
        true => Some(body),
        false => state.read_done(move |node| node.post(id, &mut body).then_some(body)).await?,
    };
    let Some(body) = body else {
        // It has been deleted since; a replay says so too.
        return Ok(post.mark(ApiError::from(Refusal::PostNotFound).into_response()));
    };
    Ok(created(json(body), format!("/v1/posts/{}", id.0), &post))
}

/// Show a post
#[utoipa::path(
    get, path = "/v1/posts/{id}", operation_id = "get_post", tag = "posts", params(IdPath),
    responses(
        (status = 200, description = "The post", body = PostView),
        (status = 404, description = "`post_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
) -> Result<Response, ApiError> {
    let post = rendered(&state, post).await?;
    post.map(json).ok_or(Refusal::PostNotFound.into())
}

/// Delete a post
#[utoipa::path(
    delete, path = "/v1/posts/{id}", operation_id = "delete_post", tag = "posts",
    params(IdPath, KeyHeader),
    responses(
        (status = 204, description = "It is deleted"),
        (status = 404, description = "`post_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::DeletePost { post }, key).await
}

/// A post as JSON, from memory if it is at hand.
async fn rendered(state: &AppState, post: PostId) -> Result<Option<Vec<u8>>, ApiError> {
    let mut out = Vec::with_capacity(512);
    if state.node.try_post(post, &mut out) {
        return Ok(Some(out));
    }
    state.read(move |node| node.post(post, &mut out).then_some(out)).await
}
