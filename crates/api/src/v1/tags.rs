//! Hashtags: pages of public posts with a hashtag.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::Refusal;
use feed::tagged::TagQuery;
use node::Node;

use crate::error::ApiError;
use crate::input::OneTag;
use crate::page::{AskedFor, Reading};
use crate::route::Route;
use crate::rule::May::See;
use crate::state::AppState;
use crate::v1::posts::PostView;
use crate::v1::timelines::read_page;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/tags/{tag}/posts", posts)
            .named("list_tagged_posts", "List the posts with a hashtag")
            .users(See)
            .text(
                "Public posts, including replies. For a viewer, omits posts by users whom a \
                 block hides or whom the viewer mutes.",
            )
            .lists::<PostView>("A page of posts"),
    ]
}

pub(crate) async fn posts(
    State(state): State<Arc<AppState>>,
    OneTag(tag): OneTag,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    let (page, viewer) = (asked.of(Reading::Down), asked.viewer.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let viewer =
            viewer.as_ref().map(|viewer| node.resolve(viewer).ok_or(Refusal::ViewerNotFound));
        Ok(node.append_tagged(viewer.transpose()?, &TagQuery::of(tag), &page, out))
    };
    read_page(&state, &asked, read).await
}
