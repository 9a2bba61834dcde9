//! The URLs in entities lead to the pages of this server.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use feed::Handle;

use crate::error::ApiError;
use crate::input;

/// `GET /@{handle}` and `/users/{handle}`
pub(crate) async fn profile(Path(handle): Path<String>) -> Response {
    match Handle::parse(&handle) {
        Ok(handle) => Redirect::to(&format!("/#/@{}", handle.as_str())).into_response(),
        Err(_) => ApiError::not_found().into_response(),
    }
}

/// `GET /@{handle}/{id}` and `/users/{handle}/statuses/{id}`
pub(crate) async fn status(Path((handle, id)): Path<(String, String)>) -> Response {
    match (Handle::parse(&handle), input::post(&id)) {
        (Ok(_), Some(post)) => Redirect::to(&format!("/#/post/{}", post.0)).into_response(),
        _ => ApiError::not_found().into_response(),
    }
}

/// `GET /tags/{tag}`: there is no page of a hashtag.
pub(crate) async fn tag() -> Redirect {
    Redirect::to("/")
}
