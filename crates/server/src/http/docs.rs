//! The API described by itself, from the code: OpenAPI 3.1 and a page to try it.

use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Redirect, Response};
use bytes::Bytes;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, OpenApi};
use utoipa::{Modify, OpenApi as _};
use utoipa_swagger_ui::Config;

use crate::http::Routes;
use crate::http::error::Problem;
use crate::http::guard::Entry;
use crate::http::input::path;
use crate::http::{
    batch, buckets, events, follows, friends, keys, operations, posts, recognise, samples, stories,
    timelines, users,
};

const OPENAPI: &str = "/v1/openapi.json";

pub(super) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", OPENAPI, Entry::Public, description);
    routes.on("GET", "/docs", Entry::Public, || async { Redirect::permanent("/docs/") });
    routes.on("GET", "/docs/", Entry::Public, || page(String::from("index.html")));
    routes.on("GET", "/docs/{*file}", Entry::Public, |File(file)| page(file));
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "roost",
        description = "Social feeds: people, follows, posts and home timelines; friends and their \
            stories, which vanish; a recogniser of drawings; and buckets of keys with values. Ids are decimal \
            strings. Every error is `{error, message}`. Too much at a time is answered with 503 \
            and Retry-After."
    ),
    paths(
        users::register, users::list, users::profile, users::edit,
        follows::follow, follows::unfollow, follows::followers, follows::following,
        friends::befriend, friends::unfriend, friends::friends,
        posts::publish, posts::show, posts::delete,
        timelines::home, timelines::posts, timelines::mentions,
        stories::tell, stories::show, stories::delete, stories::stories, stories::home,
        stories::view, stories::views,
        recognise::recognise, recognise::overview,
        samples::teach, samples::show, samples::forget,
        buckets::list, buckets::create, buckets::show, buckets::delete,
        keys::list, keys::put, keys::read, keys::delete,
        events::events, batch::batch,
        operations::health, operations::readiness, operations::metrics,
    ),
    modifiers(&Key),
    security(("key" = [])),
)]
struct Description;

/// Says how the key is presented.
struct Key;

impl Modify for Key {
    fn modify(&self, api: &mut OpenApi) {
        let components = api.components.take().unwrap_or_default();
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = ComponentsBuilder::from(components).security_scheme("key", bearer);
        api.components = Some(components.build());
    }
}

async fn description() -> Result<Response, Problem> {
    static JSON: OnceLock<Bytes> = OnceLock::new();
    let json = match JSON.get() {
        Some(json) => json,
        None => {
            let json = Description::openapi().to_json();
            JSON.get_or_init(|| Bytes::from(json.unwrap_or_default()))
        }
    };
    let mut response = json.clone().into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

struct File(String);

impl<S: Send + Sync> FromRequestParts<S> for File {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(path(parts).await?))
    }
}

/// A file of the page, all of which are in this program.
async fn page(file: String) -> Result<Response, Problem> {
    let found = utoipa_swagger_ui::serve(&file, Arc::new(Config::from(OPENAPI)));
    let file = found.map_err(|error| Problem::internal(&error))?.ok_or_else(Problem::not_found)?;
    let mut response = file.bytes.into_owned().into_response();
    if let Ok(media_type) = HeaderValue::try_from(file.content_type) {
        response.headers_mut().insert(CONTENT_TYPE, media_type);
    }
    Ok(response)
}
