//! Current and earlier versions of a post.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Content, PostVersion, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::input::OnePost;
use crate::page::{For, answer, opened_with};
use crate::route::Route;
use crate::rule::May::See;
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::follows::viewer;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/posts/{id}/history", history)
            .named("list_post_versions", "List the versions of a post")
            .users(See)
            .text(
                "Oldest first: the original, the versions after each edit, the current one. If \
                 there were more than 100 edits, or the texts exceed 48 KiB, the oldest versions \
                 after the original are missing.",
            )
            .lists::<VersionView>("The versions, on one page"),
    ]
}

/// One version of a post.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionView {
    text: String,
    warning: String,
    sensitive: bool,
    #[schema(example = "en")]
    language: Option<String>,
    /// Ids of the pictures, some of which may be deleted.
    media_ids: Vec<String>,
    /// Time at which this version was written.
    #[schema(format = DateTime, example = "2026-11-21T09:31:00.123Z")]
    created_at: String,
}

impl From<PostVersion> for VersionView {
    fn from(version: PostVersion) -> Self {
        let Content { text, warning, sensitive, language, media } = version.content;
        Self {
            text: text.as_str().to_owned(),
            warning: warning.as_str().to_owned(),
            sensitive,
            language: language.map(|language| language.as_str().to_owned()),
            media_ids: media.iter().map(|media| media.0.to_string()).collect(),
            created_at: rfc3339(version.since.unix_ms()),
        }
    }
}

pub(crate) async fn history(
    State(state): State<Arc<AppState>>,
    OnePost(id): OnePost,
    For(named): For,
) -> Result<Response, ApiError> {
    let found = state.read(move |node| {
        let (viewer, facts) = (viewer(node, named.as_ref())?, node.facts());
        // A boost has the versions of the boosted post.
        let visible = |id| facts.post(id).filter(|post| viewer.visible(post));
        let id = visible(id).ok_or(Refusal::PostNotFound)?.boosted_or(id);
        let post = visible(id).ok_or(Refusal::PostNotFound)?;
        let versions = facts.post_history(id, &post);
        Ok::<_, Refusal>(versions.into_iter().map(VersionView::from).collect::<Vec<_>>())
    });
    Ok(answer(opened_with(found.await??.iter()), None))
}
