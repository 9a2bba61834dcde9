//! Stories: create, read, delete, and list viewers.
//!
//! The application sees every live story. A `viewer`, or the user whose timeline is read, sees their own stories and
//! those of their friends.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{
    Batch, Command, Conditional, Lifetime, PostText, Refusal, Revision, Span, StoryId, UserId,
    UserRef, scan,
};
use node::Node;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::conditions::{OnlyIf, Unless};
use crate::error::ApiError;
use crate::idempotency::Once;
use crate::input::{Input, OneStory, OneUser, UserAnd, given};
use crate::page::{Asked, AskedFor, For, Reading};
use crate::route::Route;
use crate::rule::May::{Own, See};
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::follows::{UserSummary, on_behalf_of, page_of_users, viewer};
use crate::v1::posts::Author;
use crate::v1::timelines::{read_home, read_page};
use crate::v1::users::created;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/users/{user}/stories", create)
            .named("create_story", "Create a story")
            .users(Own)
            .posting()
            .text(
                "Friends of the user see the story until it expires or is deleted. A key without \
                 the scope `read` gets only the `id`.",
            )
            .creates::<StoryView>("The new story", "Path of the story")
            .errors(&["bad_text"])
            .error(Refusal::BadLifetime),
        Route::get("/v1/users/{user}/stories", stories)
            .named("list_stories", "List the live stories of a user")
            .users(See)
            .text("A `viewer` who is neither the user nor a friend gets an empty list.")
            .lists::<StoryView>("A page of stories"),
        Route::get("/v1/users/{user}/stories/{id}/views", views)
            .named("list_story_views", "List the users who have seen a live story")
            .users(Own)
            .text("Only the author of the story may read the list: 404 for other users.")
            .lists::<Viewer>("A page of users"),
        Route::get("/v1/users/{user}/timeline/stories", home)
            .named("list_home_stories", "Read the home timeline of stories")
            .users(Own)
            .text("The newest live stories of all friends of the user.")
            .lists::<StoryView>("A page of stories"),
        Route::put("/v1/users/{user}/viewed_stories/{id}", view)
            .named("view_story", "View a live story")
            .users(Own)
            .text(
                "Only the first view by each friend counts; views by the author do not count. \
                 Idempotent.",
            )
            .answers(204, "The user has seen the story"),
        Route::get("/v1/stories/{id}", show)
            .named("get_story", "Show a live story")
            .users(See)
            .text("404 if `viewer` is neither the author nor a friend of the author.")
            .shows::<StoryView>("The story")
            .tagged(),
        Route::delete("/v1/users/{user}/stories/{id}", delete)
            .named("delete_story", "Delete a live story")
            .users(Own)
            .answers(204, "The story is deleted"),
    ]
}

/// A story to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStory {
    /// Text of 1 to 500 characters after trimming.
    #[schema(example = "back in five minutes")]
    text: String,
    /// Seconds until the story expires: 1 to 604800 (7 days). The server sets the default.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 1, maximum = 604_800, example = 86_400)]
    ttl_s: Option<u64>,
}

/// A story.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the response, which the node renders")]
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
    /// True if the viewer has seen the story; null without a viewer.
    seen: Option<bool>,
}

/// A user who has seen a story.
#[derive(Serialize, ToSchema)]
pub(crate) struct Viewer {
    #[serde(flatten)]
    user: UserSummary,
    /// Time of the first view.
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    seen_at: String,
}

pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    OneUser(author): OneUser,
    Input { body, key, may_read, .. }: Input<NewStory>,
) -> Result<Response, ApiError> {
    let text = PostText::written(&body.text, &state.domain)?;
    let life = body.ttl_s.map(Lifetime::from_secs).transpose()?.unwrap_or(state.story_life);
    let story = state.submit_story(author, text, life, key).await?;
    let id = story.value;
    let render = async {
        // The story may have been deleted or have expired.
        Ok(state.read_done(move |node| render(node, id, None)).await?.ok())
    };
    let response = state.respond(&story, id.0, may_read, render).await?;
    Ok(created(response, format!("/v1/stories/{}", id.0)))
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OneStory(story): OneStory,
    For(viewer): For,
    unless: Unless,
) -> Result<Response, ApiError> {
    let body = state.read(move |node| render(node, story, viewer.as_ref())).await??;
    // A story never changes, so its id is its revision.
    Ok(unless.answer(Revision(story.0), body))
}

pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    UserAnd(author, story): UserAnd<StoryId>,
    only_if: OnlyIf,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(only_if.on(Some(author), Conditional::DeleteStory { story }), key).await
}

pub(crate) async fn stories(
    State(state): State<Arc<AppState>>,
    OneUser(author): OneUser,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    let (page, viewer) = (asked.of(Reading::Down), asked.viewer.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let author = node.resolve(&author).ok_or(Refusal::UserNotFound)?;
        let reader = on_behalf_of(node, viewer.as_ref(), author)?.user();
        Ok(node.stories_by(author, reader, &page, out))
    };
    read_page(&state, &asked, read).await
}

pub(crate) async fn home(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    asked: Asked,
) -> Result<Response, ApiError> {
    read_home(&state, user, &asked, Node::try_stories_home, Node::stories_home).await
}

pub(crate) async fn view(
    State(state): State<Arc<AppState>>,
    UserAnd(viewer, story): UserAnd<StoryId>,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(Command::ViewStory { story, viewer }, key).await
}

pub(crate) async fn views(
    State(state): State<Arc<AppState>>,
    UserAnd(author, story): UserAnd<StoryId>,
    asked: Asked,
) -> Result<Response, ApiError> {
    let page = asked.of(Reading::Up);
    let found = state.read(move |node| {
        let author = node.resolve(&author).ok_or(Refusal::UserNotFound)?;
        let none = Span { limit: 0, ..Span::ALL };
        node.story_views(story, author, none).ok_or(Refusal::StoryNotFound)?;
        let sees = node.viewer(Some(author));
        let views =
            |span| Batch::of(node.story_views(story, author, span).unwrap_or_default(), span);
        let viewer = |(id, seen_ms): (UserId, u64)| {
            let seen = sees.visible_user(id);
            let user = seen.then(|| UserSummary::read(node, id)).flatten()?;
            Some((id, Viewer { user, seen_at: rfc3339(seen_ms) }))
        };
        Ok::<_, Refusal>(scan(&page, views, |view| viewer(view).into()))
    });
    Ok(page_of_users(&asked, &found.await??))
}

fn render(node: &Node, story: StoryId, reader: Option<&UserRef>) -> Result<Vec<u8>, Refusal> {
    let reader = viewer(node, reader)?.user();
    let mut out = Vec::with_capacity(512);
    node.story(story, reader, &mut out).then_some(out).ok_or(Refusal::StoryNotFound)
}
