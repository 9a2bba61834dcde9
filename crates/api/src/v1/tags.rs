//! Hashtags: pages of the public posts that have one.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::tagged::TagQuery;
use feed::{PostId, Refusal};
use node::Node;

use crate::error::{ApiError, ErrorBody};
use crate::guard::RouteKind;
use crate::input::OneTag;
use crate::page::AskedFor;
use crate::params::{PageQuery, TagPath, ViewerQuery};
use crate::routes::Routes;
use crate::state::AppState;
use crate::v1::timelines::{PostPage, read_page};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/v1/tags/{tag}/posts", RouteKind::Query, posts);
}

/// List the posts with a hashtag
///
/// Public posts, with replies. For a viewer without those by users whom a block hides or whom the viewer mutes.
#[utoipa::path(
    get, path = "/v1/tags/{tag}/posts", operation_id = "list_tagged_posts", tag = "timelines",
    params(TagPath, PageQuery, ViewerQuery),
    responses(
        (status = 200, description = "A page of posts", body = PostPage, headers(("Link" = String, description = "The neighboring pages"))),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_tag`, `bad_limit`", body = ErrorBody),
    )
)]
pub(crate) async fn posts(
    State(state): State<Arc<AppState>>,
    OneTag(tag): OneTag,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    let (page, viewer) = (asked.of(PostId), asked.viewer.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let viewer =
            viewer.as_ref().map(|viewer| node.resolve(viewer).ok_or(Refusal::ViewerNotFound));
        Ok(node.append_tagged(viewer.transpose()?, &TagQuery::of(tag), &page, out))
    };
    read_page(&state, &asked, read).await
}
