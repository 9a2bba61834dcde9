//! The description of the API, generated from the code: OpenAPI 3.1 and Swagger UI.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Redirect, Response};
use edge::StaticFile;
use parking_lot::RwLock;
use tokio::sync::OnceCell;
use utoipa::OpenApi as _;
use utoipa_swagger_ui::Config;

use crate::error::{ApiError, ErrorBody};
use crate::files::Name;
use crate::guard::RouteKind;
use crate::routes::Routes;
use crate::state::AppState;
use crate::v1::{
    batch, blocks, buckets, context, events, follows, friends, history, keys, notifications, posts,
    reactions, recognitions, relations, samples, stories, tags, timelines, users,
};
use crate::{backup, cluster, operations};

use common::Common;

const OPENAPI: &str = "/v1/openapi.json";
/// What the page of Swagger UI lacks: on a phone it would be as wide as on a desk.
const VIEWPORT: &str = r#"<meta name="viewport" content="width=device-width, initial-scale=1">"#;
/// Colors after those of Swagger UI, many of which are too pale to be read.
const CONTRAST: &str = include_str!("docs/contrast.css");

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", OPENAPI, RouteKind::Public, description);
    routes.on("GET", "/docs", RouteKind::Public, || async { Redirect::permanent("/docs/") });
    routes.on("GET", "/docs/", RouteKind::Public, |State(state), headers| {
        page(state, String::from("index.html"), headers)
    });
    routes.on("GET", "/docs/{*file}", RouteKind::Public, |State(state), Name(name), headers| {
        page(state, name, headers)
    });
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "roost",
        description = "Social feeds: users, follows, posts and home timelines; friends and their stories, which \
            expire; buckets of keys and values; and a recognizer of drawings.\n\n\
            Ids are decimal strings, times are RFC 3339 in UTC. The acting user is in the path. Every list is \
            `{items, next, prev}`. Every error is `{error, message, field, request_id}`: 400 if a request cannot \
            be read, 422 if a rule refuses it, 503 with `Retry-After` if the server is overloaded."
    ),
    tags(
        (name = "users", description = "Profiles, follows, friends, blocks and mutes"),
        (name = "posts", description = "Single posts, and reactions to them"),
        (name = "timelines", description = "Lists of posts, notifications, and live events"),
        (name = "stories", description = "Posts for friends that expire"),
        (name = "buckets", description = "Keys and values, shared with Redis clients"),
        (name = "recognizer", description = "Classifying drawings by their nearest neighbors"),
        (name = "batch", description = "Many changes in one request"),
        (name = "operations", description = "Health, readiness, metrics and backups, for operators"),
    ),
    components(schemas(ErrorBody)),
    paths(
        users::register, users::list, users::profile, users::edit, users::delete,
        follows::follow, follows::unfollow, follows::following, follows::followers,
        follows::requests, follows::accept, follows::reject,
        friends::befriend, friends::unfriend, friends::friends,
        blocks::block, blocks::unblock, blocks::blocks, blocks::mute, blocks::unmute, blocks::mutes,
        relations::relation,
        posts::create, posts::show, posts::edit, posts::delete, context::context, history::history,
        reactions::favourite, reactions::unfavourite, reactions::favourites, reactions::bookmark,
        reactions::unbookmark, reactions::bookmarks, reactions::boost, reactions::unboost,
        reactions::boosted_by, reactions::pin, reactions::unpin, reactions::pins,
        reactions::reactions, reactions::favourited_by,
        notifications::notifications, notifications::clear, notifications::dismiss,
        timelines::home, timelines::posts, timelines::mentions, tags::posts, events::events,
        stories::create, stories::show, stories::delete, stories::stories, stories::views,
        stories::home, stories::show_to, stories::of_friend, stories::view,
        buckets::list, buckets::create, buckets::show, buckets::delete,
        keys::list, keys::put, keys::read, keys::delete,
        recognitions::recognize, recognitions::overview,
        samples::add, samples::show, samples::delete,
        batch::batch,
        operations::health, operations::readiness, operations::metrics, operations::history, backup::backup, cluster::cluster, description,
    ),
    modifiers(&Common),
    security(("key" = [])),
)]
struct Description;

/// The OpenAPI document.
pub(crate) fn openapi() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

/// Show the OpenAPI document
#[utoipa::path(
    get, path = "/v1/openapi.json", operation_id = "get_openapi", tag = "operations", security(()),
    responses(
        (status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object),
        (status = 304, description = "Not modified"),
    )
)]
async fn description(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    static JSON: OnceCell<StaticFile> = OnceCell::const_new();
    let make = || {
        state.reads.run(|| {
            let json = openapi().to_json().unwrap_or_default();
            StaticFile::new("application/json", None, json.into())
        })
    };
    Ok(JSON.get_or_try_init(make).await?.answer(&headers).map(Body::from))
}

/// A file of Swagger UI, which is embedded in this program. Each is prepared at its first request; unknown
/// names are not cached.
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
    let config = Config::from(OPENAPI)
        .use_base_layout()
        .try_it_out_enabled(true)
        .default_models_expand_depth(-1);
    let found = utoipa_swagger_ui::serve(name, Arc::new(config));
    let file =
        found.map_err(|error| ApiError::internal(&error))?.ok_or_else(ApiError::not_found)?;
    let text = || String::from_utf8_lossy(&file.bytes);
    let bytes = match name {
        "index.html" => text()
            .replace("<html>", "<html lang=\"en\">")
            .replace("<title>Swagger UI<", "<title>roost API<")
            .replace("</head>", &format!("{VIEWPORT}</head>"))
            .into(),
        "swagger-ui.css" => (text().into_owned() + CONTRAST).into(),
        _ => file.bytes.into_owned().into(),
    };
    Ok(StaticFile::new(&file.content_type, None, bytes))
}
