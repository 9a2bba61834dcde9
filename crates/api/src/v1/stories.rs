//! Telling, reading and deleting stories, and who has seen them.
//!
//! The application sees every live story. With `as` it asks in somebody's name and is shown what
//! that person may see: their own stories and those of their friends.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use feed::{Command, Done, Lifetime, PostText, Refusal, Span, StoryId, UserId, UserRef, limits};
use node::Node;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{Input, Once, OneStory, OneUser, given};
use crate::page::{As, Asked, AskedAs, json};
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::follows::{Person, page_of_people};
use crate::v1::posts::Author;
use crate::v1::timelines::{read_home, read_page};
use crate::v1::users::{created, mark_replay, rfc3339};

/// Stories on a page of a stories home unless the caller says.
const HOME_DEFAULT: usize = 10;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/users/{user}/stories", Entry::Plain, tell);
    routes.on("GET", "/v1/users/{user}/stories", Entry::Query, stories);
    routes.on("GET", "/v1/users/{user}/stories/home", Entry::Query, home);
    routes.on("GET", "/v1/stories/{id}", Entry::Query, show);
    routes.on("DELETE", "/v1/stories/{id}", Entry::Plain, delete);
    routes.on("POST", "/v1/stories/{id}/views", Entry::Query, view);
    routes.on("GET", "/v1/stories/{id}/views", Entry::Query, views);
}

/// A story to be told.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStory {
    /// 1 to 500 characters after trimming.
    #[schema(example = "back in five minutes")]
    text: String,
    /// Seconds until it vanishes: 1 to 604800 (7 days), by default what the server is set to.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = 86_400)]
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
    #[schema(example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// From this instant on nobody sees it.
    #[schema(example = "2026-11-22T09:30:00.123Z")]
    expires_at: String,
    /// Whether the reader has seen it; only if it is read in somebody's name.
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

/// Somebody who has seen a story.
#[derive(Serialize, ToSchema)]
pub(crate) struct Viewer {
    #[serde(flatten)]
    person: Person,
    /// When they first did.
    #[schema(example = "2026-11-21T09:30:00.123Z")]
    seen_at: String,
}

/// A page of those who have seen a story.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct ViewerPage {
    items: Vec<Viewer>,
    /// Path of the next page.
    next: Option<String>,
    /// Path of the page before.
    prev: Option<String>,
}

/// Post a story
///
/// Friends see it until it expires or is deleted.
#[utoipa::path(
    post, path = "/v1/users/{user}/stories", tag = "stories", request_body = NewStory,
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("Idempotency-Key" = Option<String>, Header, description = "retries with the same key return the first result"),
    ),
    responses(
        (status = 201, body = StoryView, headers(("Location" = String), ("Idempotent-Replayed" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_text`, `bad_lifetime`, `idempotency_key_reused`", body = ErrorBody),
        (status = 503, description = "`overloaded`, with Retry-After", body = ErrorBody),
    )
)]
pub(crate) async fn tell(
    State(edge): State<Arc<Edge>>,
    OneUser(author): OneUser,
    Input { body, idempotency, .. }: Input<NewStory>,
) -> Result<Response, Problem> {
    let text = PostText::parse(&body.text)?;
    let life = body.ttl_s.map(Lifetime::from_secs).transpose()?.unwrap_or(edge.story_life);
    let command = Command::TellStory { author, text, life };
    let (Done::StoryTold { story, .. }, replayed) = edge.submit(command, idempotency).await? else {
        unreachable!("telling tells");
    };
    match edge.read_done(move |node| render(node, story, None)).await? {
        Ok(body) => Ok(created(json(body), format!("/v1/stories/{}", story.0), replayed)),
        // It has been deleted or has expired since; a replay says so too.
        Err(refusal) => Ok(mark_replay(Problem::from(refusal).into_response(), replayed)),
    }
}

/// Get a live story
#[utoipa::path(
    get, path = "/v1/stories/{id}", tag = "stories",
    params(
        ("id" = String, Path),
        ("as" = Option<String>, Query, description = "who reads it: number or @handle"),
    ),
    responses(
        (status = 200, body = StoryView),
        (status = 404, description = "`story_not_found`, `user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn show(
    State(edge): State<Arc<Edge>>,
    OneStory(story): OneStory,
    As(reader): As,
) -> Result<Response, Problem> {
    Ok(json(rendered(&edge, story, reader).await??))
}

/// Delete a live story
#[utoipa::path(
    delete, path = "/v1/stories/{id}", tag = "stories", params(("id" = String, Path)),
    responses((status = 204), (status = 404, description = "`story_not_found`", body = ErrorBody))
)]
pub(crate) async fn delete(
    State(edge): State<Arc<Edge>>,
    OneStory(story): OneStory,
    Once(key): Once,
) -> Result<Response, Problem> {
    edge.carry_out(Command::DeleteStory { story }, key).await
}

/// Get a user's live stories
///
/// Read in the name of a stranger the page is empty.
#[utoipa::path(
    get, path = "/v1/users/{user}/stories", tag = "stories",
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("as" = Option<String>, Query, description = "who reads them: number or @handle"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("before" = Option<String>, Query, description = "the newest stories older than this one"),
        ("after" = Option<String>, Query, description = "the oldest stories newer than this one"),
    ),
    responses(
        (status = 200, body = StoryPage, headers(("Link" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn stories(
    State(edge): State<Arc<Edge>>,
    OneUser(author): OneUser,
    AskedAs(asked): AskedAs<{ limits::PAGE_MAX }>,
) -> Result<Response, Problem> {
    let (page, reader) = (asked.of(StoryId), asked.reader.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let (author, reader) = (node.resolve(&author)?, resolve_reader(node, reader.as_ref())?);
        Some(node.stories_by(author, reader, &page, out))
    };
    read_page(&edge, &asked, read).await
}

/// Get the live stories of a user's friends
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/users/{user}/stories/home", tag = "stories",
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 10"),
        ("before" = Option<String>, Query, description = "the newest stories older than this one"),
        ("after" = Option<String>, Query, description = "the oldest stories newer than this one"),
    ),
    responses(
        (status = 200, body = StoryPage, headers(("Link" = String))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn home(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    asked: Asked<{ limits::PAGE_MAX }, HOME_DEFAULT>,
) -> Result<Response, Problem> {
    let page = asked.of(StoryId);
    read_home(&edge, user, &asked, page, Node::try_stories_home, Node::stories_home).await
}

/// View a live story
///
/// A friend's first view counts; an author's own does not.
#[utoipa::path(
    post, path = "/v1/stories/{id}/views", tag = "stories",
    params(
        ("id" = String, Path),
        ("as" = String, Query, description = "who looks: number or @handle"),
    ),
    responses(
        (status = 204),
        (status = 400, description = "`bad_request` without `as`", body = ErrorBody),
        (status = 404, description = "`story_not_found`, `user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn view(
    State(edge): State<Arc<Edge>>,
    OneStory(story): OneStory,
    As(viewer): As,
    Once(key): Once,
) -> Result<Response, Problem> {
    let viewer = As::required(viewer)?;
    edge.carry_out(Command::ViewStory { story, viewer }, key).await
}

/// List who viewed a live story
///
/// For its author only.
#[utoipa::path(
    get, path = "/v1/stories/{id}/views", tag = "stories",
    params(
        ("id" = String, Path),
        ("as" = String, Query, description = "the author: number or @handle"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("after" = Option<String>, Query, description = "people behind this id"),
        ("before" = Option<String>, Query, description = "people in front of this id"),
    ),
    responses(
        (status = 200, body = ViewerPage, headers(("Link" = String))),
        (status = 400, description = "`bad_request` without `as`", body = ErrorBody),
        (status = 404, description = "`story_not_found`, `user_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn views(
    State(edge): State<Arc<Edge>>,
    OneStory(story): OneStory,
    AskedAs(asked): AskedAs<{ limits::PAGE_MAX }>,
) -> Result<Response, Problem> {
    let author = As::required(asked.reader.clone())?;
    // Where nobody can be, whether there is such a story is still the question.
    let span = asked.of_people().unwrap_or(Span { limit: 0, ..Span::ALL });
    let found = edge.read(move |node| {
        let author = node.resolve(&author).ok_or(Refusal::UserNotFound)?;
        let seen = node.story_views(story, author, span).ok_or(Refusal::StoryNotFound)?;
        let facts = node.facts();
        let viewer = |(id, seen_ms)| {
            Some((id, Viewer { person: Person::read(facts, id)?, seen_at: rfc3339(seen_ms) }))
        };
        Ok::<_, Refusal>(seen.into_iter().filter_map(viewer).collect::<Vec<_>>())
    });
    Ok(page_of_people(&asked, found.await??))
}

/// A live story as JSON for `reader`.
async fn rendered(
    edge: &Edge,
    story: StoryId,
    reader: Option<UserRef>,
) -> Result<Result<Vec<u8>, Refusal>, Problem> {
    edge.read(move |node| render(node, story, reader.as_ref())).await
}

fn render(node: &Node, story: StoryId, reader: Option<&UserRef>) -> Result<Vec<u8>, Refusal> {
    let reader = resolve_reader(node, reader).ok_or(Refusal::UserNotFound)?;
    let mut out = Vec::with_capacity(512);
    node.story(story, reader, &mut out).then_some(out).ok_or(Refusal::StoryNotFound)
}

/// Who is meant by `as`: the application itself if it is not given. `None` if there is no such
/// person.
fn resolve_reader(node: &Node, reader: Option<&UserRef>) -> Option<Option<UserId>> {
    match reader {
        None => Some(None),
        Some(reader) => node.resolve(reader).map(Some),
    }
}
