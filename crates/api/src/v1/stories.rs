//! Stories: create, read, delete, and list viewers.
//!
//! The application sees every live story. On behalf of a user, who is first in the path, it sees only the
//! stories that this user may see: their own and those of their friends.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use feed::{Command, Lifetime, PostText, Refusal, ShownItems, Span, StoryId, UserId, UserRef};
use node::Node;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::changes::only_id;
use crate::error::{ApiError, ErrorBody};
use crate::guard::RouteKind;
use crate::idempotency::Once;
use crate::input::{Input, OneStory, OneUser, TwoUsers, UserAnd, given};
use crate::page::{Asked, json};
use crate::params::{IdPath, KeyHeader, OtherPath, PageQuery, UserPath};
use crate::routes::Routes;
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::follows::{Listed, page_of_users};
use crate::v1::posts::Author;
use crate::v1::timelines::{read_home, read_page};
use crate::v1::users::created;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/users/{user}/stories", RouteKind::Plain, create);
    routes.on("GET", "/v1/users/{user}/stories", RouteKind::Query, stories);
    routes.on("GET", "/v1/users/{user}/stories/{id}/views", RouteKind::Query, views);
    routes.on("GET", "/v1/users/{user}/friends/{other}/stories", RouteKind::Query, of_friend);
    routes.on("GET", "/v1/users/{user}/timeline/stories", RouteKind::Query, home);
    routes.on("GET", "/v1/users/{user}/timeline/stories/{id}", RouteKind::Plain, show_to);
    routes.on("PUT", "/v1/users/{user}/viewed_stories/{id}", RouteKind::Plain, view);
    routes.on("GET", "/v1/stories/{id}", RouteKind::Plain, show);
    routes.on("DELETE", "/v1/stories/{id}", RouteKind::Plain, delete);
}

/// A story to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStory {
    /// 1 to 500 characters after trimming.
    #[schema(example = "back in five minutes")]
    text: String,
    /// Seconds until it expires: 1 to 604800 (7 days). The default is an option of the server.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 1, maximum = 604_800, example = 86_400)]
    ttl_s: Option<u64>,
}

/// A story.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct StoryView {
    #[schema(example = "381482917519855616")]
    id: String,
    author: Author,
    text: String,
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// Time of expiry.
    #[schema(format = DateTime, example = "2026-11-22T09:30:00.123Z")]
    expires_at: String,
    /// Whether the user has seen it; absent if it is not read on behalf of a user.
    #[schema(nullable = false)]
    seen: Option<bool>,
}

/// A page of stories, newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct StoryPage {
    items: Vec<StoryView>,
    /// Path of the page of older stories.
    next: Option<String>,
    /// Path of the page of newer stories.
    prev: Option<String>,
}

/// A user who has seen a story.
#[derive(Serialize, ToSchema)]
pub(crate) struct Viewer {
    #[serde(flatten)]
    user: Listed,
    /// Time of the first view.
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    seen_at: String,
}

/// A page of users who have seen a story.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct ViewerPage {
    items: Vec<Viewer>,
    /// Path of the next page.
    next: Option<String>,
    /// Path of the previous page.
    prev: Option<String>,
}

/// Create a story
///
/// The user's friends see it until it expires or is deleted. A key without the scope `read` gets the `id` alone.
#[utoipa::path(
    post, path = "/v1/users/{user}/stories", operation_id = "create_story", tag = "stories",
    request_body = NewStory, params(UserPath, KeyHeader),
    responses(
        (status = 201, description = "The new story", body = StoryView,
         headers(("Location" = String, description = "Path of the story"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_text`, `bad_ttl`, `idempotency_key_reused`", body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    OneUser(author): OneUser,
    Input { body, key, may_read, .. }: Input<NewStory>,
) -> Result<Response, ApiError> {
    let text = PostText::written(&body.text, &state.domain)?;
    let life = body.ttl_s.map(Lifetime::from_secs).transpose()?.unwrap_or(state.story_life);
    let story = state.submit_story(author, text, life, key).await?;
    let (id, path) = (story.value, format!("/v1/stories/{}", story.value.0));
    if !may_read {
        return Ok(created(only_id(id.0), path, &story));
    }
    match state.read_done(move |node| render(node, id, None)).await? {
        Ok(body) => Ok(created(json(body), path, &story)),
        // It was deleted or has expired since; the same for a replay.
        Err(refusal) => Ok(story.mark(ApiError::from(refusal).into_response())),
    }
}

/// Show a live story
#[utoipa::path(
    get, path = "/v1/stories/{id}", operation_id = "get_story", tag = "stories", params(IdPath),
    responses(
        (status = 200, description = "The story", body = StoryView),
        (status = 404, description = "`story_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OneStory(story): OneStory,
) -> Result<Response, ApiError> {
    Ok(json(state.read(move |node| render(node, story, None)).await??))
}

/// Show a live story to a user
///
/// 404 for users other than its author and their friends.
#[utoipa::path(
    get, path = "/v1/users/{user}/timeline/stories/{id}", operation_id = "get_visible_story", tag = "stories",
    params(UserPath, IdPath),
    responses(
        (status = 200, description = "The story, with `seen`", body = StoryView),
        (status = 404, description = "`story_not_found`, `user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn show_to(
    State(state): State<Arc<AppState>>,
    UserAnd(user, story): UserAnd<StoryId>,
) -> Result<Response, ApiError> {
    Ok(json(state.read(move |node| render(node, story, Some(&user))).await??))
}

/// Delete a live story
#[utoipa::path(
    delete, path = "/v1/stories/{id}", operation_id = "delete_story", tag = "stories",
    params(IdPath, KeyHeader),
    responses(
        (status = 204, description = "The story is deleted"),
        (status = 404, description = "`story_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    OneStory(story): OneStory,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::DeleteStory { story }, key).await
}

/// List the live stories of a user
///
/// All of them, without `seen`.
#[utoipa::path(
    get, path = "/v1/users/{user}/stories", operation_id = "list_stories", tag = "stories",
    params(UserPath, PageQuery),
    responses(
        (status = 200, description = "A page of stories", body = StoryPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn stories(
    State(state): State<Arc<AppState>>,
    OneUser(author): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    let page = asked.of(StoryId);
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let author = node.resolve(&author).ok_or(Refusal::UserNotFound)?;
        Ok(node.stories_by(author, None, &page, out))
    };
    read_page(&state, &asked, read).await
}

/// List the live stories of a friend
///
/// Those of `other` that `user` may see: none if they are not friends.
#[utoipa::path(
    get, path = "/v1/users/{user}/friends/{other}/stories", operation_id = "list_stories_of_friend", tag = "stories",
    params(UserPath, OtherPath, PageQuery),
    responses(
        (status = 200, description = "A page of stories, with `seen`", body = StoryPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn of_friend(
    State(state): State<Arc<AppState>>,
    TwoUsers(user, other): TwoUsers,
    asked: Asked,
) -> Result<Response, ApiError> {
    let page = asked.of(StoryId);
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let author = node.resolve(&other).ok_or(Refusal::OtherNotFound)?;
        let reader = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        Ok(node.stories_by(author, Some(reader), &page, out))
    };
    read_page(&state, &asked, read).await
}

/// Read the home timeline of stories
///
/// The newest live stories of all friends of the user.
#[utoipa::path(
    get, path = "/v1/users/{user}/timeline/stories", operation_id = "list_home_stories", tag = "stories",
    params(UserPath, PageQuery),
    responses(
        (status = 200, description = "A page of stories, with `seen`", body = StoryPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn home(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    let page = asked.of(StoryId);
    read_home(&state, user, &asked, page, Node::try_stories_home, Node::stories_home).await
}

/// View a live story
///
/// Only the first view of each friend counts; views of the author do not count. Idempotent.
#[utoipa::path(
    put, path = "/v1/users/{user}/viewed_stories/{id}", operation_id = "view_story", tag = "stories",
    params(UserPath, IdPath, KeyHeader),
    responses(
        (status = 204, description = "The user has seen it"),
        (status = 404, description = "`story_not_found`, `user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn view(
    State(state): State<Arc<AppState>>,
    UserAnd(viewer, story): UserAnd<StoryId>,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::ViewStory { story, viewer }, key).await
}

/// List the users who have seen a live story
///
/// For its author only: 404 for other users.
#[utoipa::path(
    get, path = "/v1/users/{user}/stories/{id}/views", operation_id = "list_story_views", tag = "stories",
    params(UserPath, IdPath, PageQuery),
    responses(
        (status = 200, description = "A page of users", body = ViewerPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`story_not_found`, `user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn views(
    State(state): State<Arc<AppState>>,
    UserAnd(author, story): UserAnd<StoryId>,
    asked: Asked,
) -> Result<Response, ApiError> {
    // The page is empty, but the story must still exist.
    let span = asked.of_users().unwrap_or(Span { limit: 0, ..Span::ALL });
    let found = state.read(move |node| {
        let author = node.resolve(&author).ok_or(Refusal::UserNotFound)?;
        let none = Span { limit: 0, ..span };
        node.story_views(story, author, none).ok_or(Refusal::StoryNotFound)?;
        let (facts, sees) = (node.facts(), node.viewer(Some(author)));
        let views = |span| node.story_views(story, author, span).unwrap_or_default();
        let shown = |(id, _): &(UserId, u64)| sees.visible_user(*id) && facts.exists(*id);
        let id = |(id, _): &(UserId, u64)| id.0.into();
        let ShownItems { items, end } = ShownItems::read(Some(span), span.limit, views, id, shown);
        let viewer = |(id, seen_ms)| {
            let user = Listed::read(facts, id)?;
            Some((id, Viewer { user, seen_at: rfc3339(seen_ms) }))
        };
        let items = items.into_iter().filter_map(viewer).collect();
        Ok::<_, Refusal>(ShownItems { items, end })
    });
    Ok(page_of_users(&asked, found.await??))
}

fn render(node: &Node, story: StoryId, reader: Option<&UserRef>) -> Result<Vec<u8>, Refusal> {
    let reader =
        reader.map(|reader| node.resolve(reader).ok_or(Refusal::UserNotFound)).transpose()?;
    let mut out = Vec::with_capacity(512);
    node.story(story, reader, &mut out).then_some(out).ok_or(Refusal::StoryNotFound)
}
