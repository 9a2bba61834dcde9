//! Redirects from URLs in entities to the pages of this server.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use feed::{Handle, Tag};

use crate::error::ApiError;
use crate::input;

pub(crate) async fn profile(Path(handle): Path<String>) -> Response {
    match Handle::parse(&handle) {
        Ok(handle) => Redirect::to(&format!("/#/@{}", handle.as_str())).into_response(),
        Err(_) => ApiError::not_found().into_response(),
    }
}

pub(crate) async fn status(Path((handle, id)): Path<(String, String)>) -> Response {
    match (Handle::parse(&handle), input::post(&id)) {
        (Ok(_), Some(post)) => Redirect::to(&format!("/#/post/{}", post.0)).into_response(),
        _ => ApiError::not_found().into_response(),
    }
}

pub(crate) async fn tag(Path(tag): Path<String>) -> Response {
    let Ok(tag) = Tag::parse(&tag) else { return ApiError::not_found().into_response() };
    let tag: String = form_urlencoded::byte_serialize(tag.as_str().as_bytes()).collect();
    Redirect::to(&format!("/#/tags/{tag}")).into_response()
}

/// Redirects to the page of a profile, which cannot select posts by hashtag.
pub(crate) async fn tagged(Path((handle, _)): Path<(String, String)>) -> Response {
    profile(Path(handle)).await
}
