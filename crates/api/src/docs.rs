//! The API described by itself, from the code: OpenAPI 3.1 and a page to try it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Redirect, Response};
use edge::StaticFile;
use parking_lot::RwLock;
use tokio::sync::OnceCell;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, OpenApi};
use utoipa::{Modify, OpenApi as _};
use utoipa_swagger_ui::Config;

use crate::error::ApiError;
use crate::files::Name;
use crate::guard::Entry;
use crate::operations;
use crate::routes::Routes;
use crate::state::AppState;
use crate::v1::{
    batch, buckets, events, follows, friends, keys, posts, recognitions, samples, stories,
    timelines, users,
};

const OPENAPI: &str = "/v1/openapi.json";

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", OPENAPI, Entry::Public, description);
    routes.on("GET", "/docs", Entry::Public, || async { Redirect::permanent("/docs/") });
    routes.on("GET", "/docs/", Entry::Public, |State(state), headers| {
        page(state, String::from("index.html"), headers)
    });
    routes.on("GET", "/docs/{*file}", Entry::Public, |State(state), Name(name), headers| {
        page(state, name, headers)
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
        posts::publish, posts::show, posts::delete,
        timelines::home, timelines::posts, timelines::mentions,
        stories::tell, stories::show, stories::delete, stories::stories, stories::home,
        stories::view, stories::views,
        recognitions::recognise, recognise::overview,
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
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    static JSON: OnceCell<StaticFile> = OnceCell::const_new();
    let make = || {
        state.reads.run(|| {
            let json = Description::openapi().to_json().unwrap_or_default();
            StaticFile::new("application/json", None, json.into())
        })
    };
    Ok(JSON.get_or_try_init(make).await?.answer(&headers).map(Body::from))
}

/// A file of the page, all of which are in this program. Each is made when it is first asked for; names
/// that are none are not kept.
async fn page(
    state: Arc<AppState>,
    name: String,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    static FILES: RwLock<BTreeMap<String, Arc<StaticFile>>> = RwLock::new(BTreeMap::new());
    let known = FILES.read().get(&name).cloned();
    if let Some(file) = known {
        return Ok(file.answer(&headers).map(Body::from));
    }
    let made = state.reads.run(move || {
        let file = Arc::new(load(&name)?);
        Ok::<_, ApiError>(Arc::clone(FILES.write().entry(name).or_insert(file)))
    });
    Ok(made.await??.answer(&headers).map(Body::from))
}

fn load(name: &str) -> Result<StaticFile, ApiError> {
    let found = utoipa_swagger_ui::serve(name, Arc::new(Config::from(OPENAPI)));
    let file =
        found.map_err(|error| ApiError::internal(&error))?.ok_or_else(ApiError::not_found)?;
    Ok(StaticFile::new(&file.content_type, None, file.bytes.into_owned().into()))
}
