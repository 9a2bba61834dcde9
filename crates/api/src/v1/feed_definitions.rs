//! Definitions of ranked feeds: those that applications store, and all others to read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use edge::Scope;
use feed::Command;
use feed::feeds::{FeedDefinition, FeedName};
use node::Node;
use rank::Feed;
use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

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

/// Definition of a ranked feed that is not yet checked, so that its errors have a code of their own.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct NewDefinition(serde_json::Value);

impl PartialSchema for NewDefinition {
    fn schema() -> RefOr<Schema> {
        Feed::schema()
    }
}

impl ToSchema for NewDefinition {
    fn name() -> Cow<'static, str> {
        Feed::name()
    }
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
    #[schema(value_type = Option<Feed>)]
    definition: Option<Arc<Feed>>,
}

impl FeedView {
    /// Reads a feed. May block.
    fn read(node: &Node, name: &FeedName) -> Result<Self, ApiError> {
        let source = match () {
            () if node.feeds().of_file(name.as_str()).is_some() => "file",
            () if node.facts().stored_feed(name).is_some() => "stored",
            () => "built_in",
        };
        let definition = match source {
            "stored" => node.stored_feed(name),
            _ => Some(node.feed(name.as_str()).ok_or_else(ApiError::feed_not_found)?),
        };
        Ok(Self { name: name.as_str().to_owned(), source, definition })
    }
}

pub(crate) async fn list(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let read = move |node: &Node| {
        let names = node.feeds().names().filter_map(|name| FeedName::parse(name).ok());
        let names: BTreeSet<_> = names.chain(node.facts().stored_feeds()).collect();
        opened_with(names.iter().filter_map(|name| FeedView::read(node, name).ok()))
    };
    Ok(answer(state.read(read).await?, None))
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OneFeed(name): OneFeed,
) -> Result<Response, ApiError> {
    let read = state.read(move |node| FeedView::read(node, &name));
    Ok(json(to_json(&read.await??)))
}

pub(crate) async fn put(
    State(state): State<Arc<AppState>>,
    OneFeed(name): OneFeed,
    WithoutKey(Input { body, .. }): WithoutKey<NewDefinition>,
) -> Result<Response, ApiError> {
    if state.node.feeds().of_file(name.as_str()).is_some() {
        return Err(ApiError::feed_in_file());
    }
    let feed = Feed::parse_value(body.0).map_err(|error| ApiError::bad_feed(error.to_string()))?;
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
