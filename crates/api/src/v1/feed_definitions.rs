//! Definitions of ranked feeds: those that applications store, and all others to read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use edge::Scope;
use feed::Command;
use feed::feeds::{FeedDefinition, FeedName};
use node::Node;
use rank::{Feed, Feeds};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::idempotency::NoKey;
use crate::input::{Input, WithoutKey, path};
use crate::page::{answer, json, opened_with, to_json};
use crate::route::{Inputs, Reads, Route};
use crate::state::AppState;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/feeds", list)
            .named("list_feeds", "List the ranked feeds")
            .scope(Scope::Admin)
            .text("All feeds by their names, on one page.")
            .lists::<FeedView>("The feeds"),
        Route::get("/v1/feeds/{name}", show)
            .named("get_feed", "Show the definition of a ranked feed")
            .scope(Scope::Admin)
            .shows::<FeedView>("The feed")
            .error(ApiError::feed_not_found()),
        Route::put("/v1/feeds/{name}", put)
            .named("store_feed", "Store the definition of a ranked feed")
            .scope(Scope::Admin)
            .text(
                "All nodes have it, and it survives a restart. Replaces a stored definition, or a \
                 built-in one of this name, from the next ranking on.",
            )
            .answers(204, "The definition is stored")
            .errors(&["bad_feed", "feed_in_file", "too_many_feeds", "feed_too_long"]),
        Route::delete("/v1/feeds/{name}", delete)
            .named("delete_feed", "Delete the stored definition of a ranked feed")
            .scope(Scope::Admin)
            .text("A built-in feed with this name is back. Idempotent.")
            .answers(204, "There is no stored definition with this name"),
    ]
}

/// The feed in the path.
pub(crate) struct OneFeed(FeedName);

impl<S: Send + Sync> FromRequestParts<S> for OneFeed {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let name: String = path(parts).await?;
        Ok(Self(FeedName::parse(&name)?))
    }
}

impl Reads for OneFeed {
    fn describe(inputs: &mut Inputs) {
        inputs.path("name", "Name of the feed: 1 to 32 of `a-z 0-9 -`.", "for-you");
        inputs.errors(&["bad_feed_name"]);
    }
}

/// Definition of a ranked feed; docs/feeds.md describes the fields.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    /// Maximum number of candidates of each source, by the name of the source.
    #[schema(example = json!({"following": 100, "popular": 50}))]
    sources: BTreeMap<String, usize>,
    /// Expression; posts with a higher value come first.
    #[schema(example = "(1 + followed) * log(2 + likes) * decay(age, 12h)")]
    score: String,
    /// Maximum number of posts by one author; 0 for no limit.
    #[serde(default)]
    per_author_max: usize,
    /// Share of the places for new authors, 0 to 0.5.
    #[serde(default)]
    explore: f64,
    /// Whether reasons name users.
    #[serde(default = "yes")]
    #[schema(default = true)]
    names_users: bool,
}

fn yes() -> bool {
    true
}

/// A ranked feed.
#[derive(Serialize, ToSchema)]
pub(crate) struct FeedView {
    #[schema(example = "for-you")]
    name: String,
    /// `file`: the server's file of feeds. `stored`: an application has stored it. `built_in`.
    #[schema(example = "built_in")]
    source: &'static str,
    /// Null if another release has stored the definition, and this one cannot read it.
    definition: Option<Definition>,
}

/// Returns the feed with this name: of the server's file, else a stored one that can be read, else a built-in one. May
/// block.
pub(crate) fn resolved(node: &Node, feeds: &Feeds, name: &str) -> Result<Arc<Feed>, ApiError> {
    let stored = || node.stored_feed(&FeedName::parse(name).ok()?);
    let found = feeds.of_file(name).cloned().or_else(stored);
    found.or_else(|| feeds.named(name).cloned()).ok_or_else(ApiError::feed_not_found)
}

impl FeedView {
    /// Reads a feed. May block.
    fn read(node: &Node, feeds: &Feeds, name: &FeedName) -> Result<Self, ApiError> {
        let source = match () {
            () if feeds.of_file(name.as_str()).is_some() => "file",
            () if node.facts().stored_feed(name).is_some() => "stored",
            () => "built_in",
        };
        let feed = match source {
            "stored" => node.stored_feed(name),
            _ => Some(resolved(node, feeds, name.as_str())?),
        };
        let definition = feed.and_then(|feed| serde_json::from_str(&feed.to_json()).ok());
        Ok(Self { name: name.as_str().to_owned(), source, definition })
    }
}

pub(crate) async fn list(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let feeds = Arc::clone(&state.feeds);
    let read = move |node: &Node| {
        let names = feeds.names().filter_map(|name| FeedName::parse(name).ok());
        let names: BTreeSet<_> = names.chain(node.facts().stored_feeds()).collect();
        opened_with(names.iter().filter_map(|name| FeedView::read(node, &feeds, name).ok()))
    };
    Ok(answer(state.read(read).await?, None))
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OneFeed(name): OneFeed,
) -> Result<Response, ApiError> {
    let feeds = Arc::clone(&state.feeds);
    let read = state.read(move |node| FeedView::read(node, &feeds, &name));
    Ok(json(to_json(&read.await??)))
}

pub(crate) async fn put(
    State(state): State<Arc<AppState>>,
    OneFeed(name): OneFeed,
    WithoutKey(Input { body, .. }): WithoutKey<Definition>,
) -> Result<Response, ApiError> {
    if state.feeds.of_file(name.as_str()).is_some() {
        return Err(ApiError::feed_in_file());
    }
    let text = String::from_utf8(to_json(&body)).unwrap_or_default();
    let feed = Feed::parse_json(&text).map_err(|error| ApiError::bad_feed(error.to_string()))?;
    let definition = Some(FeedDefinition::parse(&feed.to_json())?);
    state.carry_out(Command::SetFeed { name, definition }, None).await
}

pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    OneFeed(name): OneFeed,
    NoKey: NoKey,
) -> Result<Response, ApiError> {
    state.carry_out(Command::SetFeed { name, definition: None }, None).await
}
