//! The API described by itself, from the code: OpenAPI 3.1 and a page to try it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{Redirect, Response};
use parking_lot::RwLock;
use tokio::sync::OnceCell;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, OpenApi};
use utoipa::{Modify, OpenApi as _};
use utoipa_swagger_ui::Config;

use crate::http::error::Problem;
use crate::http::file::File;
use crate::http::guard::Entry;
use crate::http::input::path;
use crate::http::{
    Edge, Routes, batch, buckets, context, events, follows, friends, keys, operations, posts,
    recognise, samples, stories, timelines, users,
};

const OPENAPI: &str = "/v1/openapi.json";

pub(super) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", OPENAPI, Entry::Public, description);
    routes.on("GET", "/docs", Entry::Public, || async { Redirect::permanent("/docs/") });
    routes.on("GET", "/docs/", Entry::Public, |State(edge), headers| {
        page(edge, String::from("index.html"), headers)
    });
    routes.on("GET", "/docs/{*file}", Entry::Public, |State(edge), Name(name), headers| {
        page(edge, name, headers)
    });
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
        posts::publish, posts::show, posts::edit, posts::delete, context::context,
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

async fn description(
    State(edge): State<Arc<Edge>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    static JSON: OnceCell<File> = OnceCell::const_new();
    let make = || {
        edge.reads.run(|| {
            let json = Description::openapi().to_json().unwrap_or_default();
            File::new("application/json", None, json.into())
        })
    };
    Ok(JSON.get_or_try_init(make).await?.answer(&headers))
}

/// A name below `/docs/`.
struct Name(String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(path(parts).await?))
    }
}

/// A file of the page, all of which are in this program. Each is made when it is first asked for; names
/// that are none are not kept.
async fn page(edge: Arc<Edge>, name: String, headers: HeaderMap) -> Result<Response, Problem> {
    static FILES: RwLock<BTreeMap<String, Arc<File>>> = RwLock::new(BTreeMap::new());
    let known = FILES.read().get(&name).cloned();
    if let Some(file) = known {
        return Ok(file.answer(&headers));
    }
    let made = edge.reads.run(move || {
        let file = Arc::new(load(&name)?);
        Ok::<_, Problem>(Arc::clone(FILES.write().entry(name).or_insert(file)))
    });
    Ok(made.await??.answer(&headers))
}

fn load(name: &str) -> Result<File, Problem> {
    let found = utoipa_swagger_ui::serve(name, Arc::new(Config::from(OPENAPI)));
    let file = found.map_err(|error| Problem::internal(&error))?.ok_or_else(Problem::not_found)?;
    Ok(File::new(&file.content_type, None, file.bytes.into_owned().into()))
}
