//! API description, generated from the code: OpenAPI 3.1 and Swagger UI.

pub(crate) mod openapi;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Redirect, Response};
use edge::StaticFile;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::OnceCell;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::Config;

use crate::error::ApiError;
use crate::files::Name;
use crate::route::{Route, inline};
use crate::state::AppState;

const OPENAPI: &str = "/v1/openapi.json";
/// Tag that Swagger UI's page lacks. Without the tag, phones show the page at desktop width.
const VIEWPORT: &str = r#"<meta name="viewport" content="width=device-width, initial-scale=1">"#;
/// Colors with more contrast than those of Swagger UI.
const CONTRAST: &str = include_str!("docs/contrast.css");

pub(crate) fn routes(document: fn() -> OpenApi) -> Vec<Route> {
    let description = move |State(state): State<Arc<AppState>>, headers: HeaderMap| {
        description(state, headers, document)
    };
    let index = |State(state): State<Arc<AppState>>, headers: HeaderMap| {
        page(state, String::from("index.html"), headers)
    };
    let file = |State(state): State<Arc<AppState>>, Name(name): Name, headers: HeaderMap| {
        page(state, name, headers)
    };
    vec![
        Route::public(OPENAPI, description)
            .named("get_openapi", "Show the OpenAPI document")
            .answers_with("OpenAPI 3.1", "application/json", inline::<Value>)
            .answers(304, "Not modified"),
        Route::file("/docs", || async { Redirect::permanent("/docs/") }),
        Route::file("/docs/", index),
        Route::file("/docs/{*file}", file),
    ]
}

async fn description(
    state: Arc<AppState>,
    headers: HeaderMap,
    document: fn() -> OpenApi,
) -> Result<Response, ApiError> {
    static JSON: OnceCell<StaticFile> = OnceCell::const_new();
    let make = || {
        state.reads.run(move || {
            let json = document().to_json().unwrap_or_default();
            StaticFile::new("application/json", None, json.into())
        })
    };
    Ok(JSON.get_or_try_init(make).await?.answer(&headers).map(Body::from))
}

/// Responds with an embedded file of Swagger UI. Each file is prepared at its first request; unknown names are not
/// cached.
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
    let file = found.map_err(|error| ApiError::fault(&error))?.ok_or_else(ApiError::not_found)?;
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
