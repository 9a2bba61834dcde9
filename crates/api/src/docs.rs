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
use utoipa::openapi::path::{Operation, ParameterBuilder};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, OpenApi, RefOr};
use utoipa::{Modify, OpenApi as _};
use utoipa_swagger_ui::Config;

use crate::error::Problem;
use crate::files::Name;
use crate::guard::Entry;
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::{
    batch, buckets, events, follows, friends, keys, posts, recognise, samples, stories, timelines,
    users,
};
use crate::{history, operations};

const OPENAPI: &str = "/v1/openapi.json";
/// Values with which parameters can be tried, by name: two users of the examples, and a key.
const EXAMPLES: [(&str, &str); 4] =
    [("user", "@ada"), ("other", "@bob"), ("bucket", "notes"), ("key", "greeting")];

pub(crate) fn route(routes: &mut Routes<'_>) {
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
        description = "A server for social feeds. Ids are decimal strings. A user in a path is an id or \
            `@handle`. Every error is `{error, message}`; when the server is overloaded it answers 503 with \
            Retry-After.\n\nTo try it on an empty server, register `ada` and `bob`, have ada follow bob, post \
            as bob, and read ada's home timeline: the examples fit together."
    ),
    tags(
        (name = "users", description = "Profiles, follows and friends"),
        (name = "posts", description = "Post, read and delete"),
        (name = "timelines", description = "Home timelines, mentions, and live updates"),
        (name = "stories", description = "Posts for friends that expire"),
        (name = "buckets", description = "Keys and values of any bytes, with optional expiry"),
        (name = "recognizer", description = "What a drawing is, by its nearest samples"),
        (name = "batch", description = "Many commands in one request"),
        (name = "operations", description = "Health and measurements"),
    ),
    paths(
        users::register, users::list, users::profile, users::edit,
        follows::follow, follows::unfollow, follows::following, follows::followers,
        friends::befriend, friends::unfriend, friends::friends,
        posts::publish, posts::show, posts::delete,
        timelines::home, timelines::posts, timelines::mentions, events::events,
        stories::tell, stories::stories, stories::home, stories::show, stories::delete,
        stories::view, stories::views,
        buckets::create, buckets::list, buckets::show, buckets::delete,
        keys::put, keys::list, keys::read, keys::delete,
        recognise::recognise, recognise::overview,
        samples::teach, samples::show, samples::forget,
        batch::batch,
        operations::health, operations::readiness, operations::metrics, history::history,
    ),
    modifiers(&Key, &Examples),
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

/// Gives parameters the values of [`EXAMPLES`].
struct Examples;

impl Modify for Examples {
    fn modify(&self, api: &mut OpenApi) {
        for path in api.paths.paths.values_mut() {
            let operations =
                [&mut path.get, &mut path.put, &mut path.post, &mut path.delete, &mut path.patch];
            operations.into_iter().flatten().for_each(give_examples);
        }
    }
}

fn give_examples(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(known) = parameter else { continue };
        let example = EXAMPLES.iter().find(|(name, _)| *name == known.name);
        if let Some((_, example)) = example {
            let builder = ParameterBuilder::from(std::mem::take(known));
            *known = builder.example(Some((*example).into())).build();
        }
    }
}

async fn description(
    State(edge): State<Arc<Edge>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    static JSON: OnceCell<StaticFile> = OnceCell::const_new();
    let make = || {
        edge.reads.run(|| {
            let json = Description::openapi().to_json().unwrap_or_default();
            StaticFile::new("application/json", None, json.into())
        })
    };
    Ok(JSON.get_or_try_init(make).await?.answer(&headers).map(Body::from))
}

/// A file of the page, all of which are in this program. Each is made when it is first asked for; names
/// that are none are not kept.
async fn page(edge: Arc<Edge>, name: String, headers: HeaderMap) -> Result<Response, Problem> {
    static FILES: RwLock<BTreeMap<String, Arc<StaticFile>>> = RwLock::new(BTreeMap::new());
    let known = FILES.read().get(&name).cloned();
    if let Some(file) = known {
        return Ok(file.answer(&headers).map(Body::from));
    }
    let made = edge.reads.run(move || {
        let file = Arc::new(load(&name)?);
        Ok::<_, Problem>(Arc::clone(FILES.write().entry(name).or_insert(file)))
    });
    Ok(made.await??.answer(&headers).map(Body::from))
}

fn load(name: &str) -> Result<StaticFile, Problem> {
    let config = Config::from(OPENAPI)
        .use_base_layout()
        .try_it_out_enabled(true)
        .default_models_expand_depth(-1);
    let found = utoipa_swagger_ui::serve(name, Arc::new(config));
    let file = found.map_err(|error| Problem::internal(&error))?.ok_or_else(Problem::not_found)?;
    let bytes = if name == "index.html" {
        String::from_utf8_lossy(&file.bytes)
            .replace("<title>Swagger UI<", "<title>roost API<")
            .into()
    } else {
        file.bytes.into_owned().into()
    };
    Ok(StaticFile::new(&file.content_type, None, bytes))
}
