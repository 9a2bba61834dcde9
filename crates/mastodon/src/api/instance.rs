//! Self-description of the server, and the documents by which other programs find its users.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::accounts::{handle, list};
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::{Entities, html, instance, languages, time};
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{self, Reader};
use crate::paging::limit;
use crate::state::{Server, Shared};

/// Adds the routes of the instance.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/api/v1/directory", Needs::ANYONE_ACCOUNTS, directory);
    table.get("/api/v1/instance", Needs::Nothing, version_1);
    table.get("/api/v2/instance", Needs::Nothing, version_2);
    table.get("/api/v1/instance/extended_description", Needs::Nothing, extended_description);
    table.get("/api/v1/instance/rules", Needs::Nothing, rules);
    table.get("/api/v1/instance/languages", Needs::Nothing, all_languages);
    table.get("/.well-known/nodeinfo", Needs::Nothing, nodeinfo_links);
    table.get("/.well-known/host-meta", Needs::Nothing, host_meta);
    table.get("/nodeinfo/2.0", Needs::Nothing, nodeinfo);
    // Like other reads, this one needs no token if the operator allows anonymous reads.
    table.get("/.well-known/webfinger", Needs::ANYONE_ACCOUNTS, webfinger);
    table.get("/health", Needs::Nothing, health);
}

/// Maximum number of users from whom the directory is chosen: the newest. Others are found by handle.
const DIRECTORY_READ_MAX: usize = 8_192;

impl Server {
    /// Account of the operator, if any.
    async fn contact(&self) -> Result<Option<Value>, ApiError> {
        let Some(handle) = self.options.about.contact.clone() else { return Ok(None) };
        let read = move |_: &_, entities: &mut Entities<'_>| {
            let user = entities.facts().by_handle(&handle)?;
            entities.is_visible(user).then(|| entities.account(user)).flatten()
        };
        Ok(self.entities(None, read).await?.map(crate::entities::json::Json::into_value))
    }
}

pub(crate) async fn version_1(State(state): State<Shared>) -> Result<Json<Value>, ApiError> {
    let contact = state.contact().await?;
    Ok(Json(instance::version_1(&state.node, &state.options, contact.as_ref())))
}

pub(crate) async fn version_2(State(state): State<Shared>) -> Result<Json<Value>, ApiError> {
    let contact = state.contact().await?;
    Ok(Json(instance::version_2(&state.node, &state.options, contact.as_ref())))
}

pub(crate) async fn rules(State(state): State<Shared>) -> Json<Value> {
    Json(instance::rules(&state.options.about).into())
}

pub(crate) async fn picture(State(state): State<Shared>) -> Result<Response, ApiError> {
    let picture = state.options.about.picture.as_ref().ok_or_else(ApiError::not_found)?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(picture.kind)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, picture.bytes.clone()).into_response())
}

pub(crate) async fn nodeinfo(State(state): State<Shared>) -> Json<Value> {
    Json(instance::nodeinfo(state.node.facts(), &state.options))
}

pub(crate) async fn nodeinfo_links(State(state): State<Shared>) -> Json<Value> {
    let href = format!("{}/nodeinfo/2.0", state.options.base);
    let rel = "http://nodeinfo.diaspora.software/ns/schema/2.0";
    Json(json!({"links": [{"rel": rel, "href": href}]}))
}

/// Responds with the URL of [`webfinger`].
pub(crate) async fn host_meta(State(state): State<Shared>) -> Response {
    // The base is an origin, so it needs no escaping.
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\">\n  \
         <Link rel=\"lrdd\" template=\"{}/.well-known/webfinger?resource={{uri}}\"/>\n</XRD>\n",
        state.options.base
    );
    ([(CONTENT_TYPE, "application/xrd+xml; charset=utf-8")], body).into_response()
}

pub(crate) async fn webfinger(
    State(state): State<Shared>,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let resource = fields.need("resource")?;
    let base = state.options.base.clone();
    let of_path = || {
        let path = resource.strip_prefix(&base)?;
        path.strip_prefix("/@").or_else(|| path.strip_prefix("/users/"))
    };
    let name = match resource.split_once(':') {
        Some(("acct", name)) => Some(name),
        Some(("http" | "https", _)) => of_path(),
        _ if resource.contains('@') => Some(resource),
        _ => return Err(ApiError::invalid_request("resource must be acct:NAME@HOST or a URL")),
    };
    let name = name.and_then(|name| handle(name, &base)).ok_or_else(ApiError::not_found)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let user = entities.facts().by_handle(&name).filter(|user| entities.is_visible(*user))?;
        let user = entities.facts().user(user)?;
        let handle = user.handle.as_str();
        let page = format!("{base}/@{handle}");
        let rel = "http://webfinger.net/rel/profile-page";
        Some(json!({
            "subject": format!("acct:{handle}@{}", crate::domain(&base)),
            "aliases": [page, format!("{base}/users/{handle}")],
            "links": [{"rel": rel, "type": "text/html", "href": page}],
        }))
    };
    let found = state.entities(None, read).await?;
    let mut response = answers::entity(found)?;
    let jrd = HeaderValue::from_static("application/jrd+json; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, jrd);
    Ok(response)
}

pub(crate) async fn extended_description(State(state): State<Shared>) -> Json<Value> {
    let about = &state.options.about;
    let content = html::content(&about.text, &state.options.base, |_| None);
    Json(json!({"content": content, "updated_at": time::time(about.text_ms)}))
}

/// Responds with the languages that posts can have, by code.
pub(crate) async fn all_languages() -> Json<Value> {
    let language = |(code, name): &(&str, &str)| json!({"code": code, "name": name});
    Json(languages::ALL.iter().map(language).collect())
}

/// Responds with accounts, newest first whatever order is requested. Users can exclude themselves from this directory
/// by a setting.
pub(crate) async fn directory(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let limit = limit(&fields, 40, 80)?;
    let offset = fields.one("offset")?.and_then(input::number).unwrap_or(0);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let users = entities.facts().totals().users;
        let ids = (0..users).rev().take(DIRECTORY_READ_MAX).map(feed::UserId);
        let listed = |user| entities.facts().user(user).is_some_and(|user| !user.undiscoverable);
        let ids = ids.take_while(|_| !entities.is_abandoned());
        let seen = ids.filter(|user| entities.is_visible(*user) && listed(*user));
        let seen: Vec<_> = seen.skip(offset).take(limit).collect();
        list(seen.into_iter(), |user| entities.account(user))
    };
    let found = state.entities_long(reader, read).await?;
    Ok(answers::json(found))
}

pub(crate) async fn health() -> &'static str {
    "OK"
}
