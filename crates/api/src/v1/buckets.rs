//! Buckets: making, listing and deleting them. What is in them: `v1/keys`.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use kv::limits::NUMBERED_BUCKETS;
use kv::{BucketId, BucketName, KeyAnswer, KeyOp, KeyOps, KeyRefusal};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::path;
use crate::page::json;
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::keys::{ListQuery, page, to_json};

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/v1/buckets", Entry::Query, list);
    routes.on("PUT", "/v1/buckets/{bucket}", Entry::Plain, create);
    routes.on("GET", "/v1/buckets/{bucket}", Entry::Plain, show);
    routes.on("DELETE", "/v1/buckets/{bucket}", Entry::Plain, delete);
}

/// A bucket.
#[derive(Serialize, ToSchema)]
pub(crate) struct BucketView {
    #[schema(example = "drafts")]
    name: String,
    /// Keys; those that expired count until they are swept, which takes a second or two.
    #[schema(example = 3)]
    keys: u64,
    /// Bytes of these keys and their values.
    #[schema(example = 120)]
    bytes: u64,
}

/// A page of buckets in the order of their names.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct BucketPage {
    items: Vec<BucketView>,
    /// Path of the next page.
    next: Option<String>,
}

/// The bucket in the path.
pub(crate) struct OneBucket(pub(super) BucketName);

impl<S: Send + Sync> FromRequestParts<S> for OneBucket {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let name: String = path(parts).await?;
        BucketName::parse(&name).map(Self).ok_or_else(Problem::bad_bucket)
    }
}

/// The id of a bucket that stands.
pub(crate) async fn resolved(edge: &Edge, name: &BucketName) -> Result<BucketId, Problem> {
    if let Some(id) = edge.node.try_bucket_named(name) {
        return Ok(id);
    }
    let name = name.clone();
    let id = edge.read(move |node| node.bucket_named(&name)).await?;
    Ok(id.ok_or(KeyRefusal::BucketNotFound)?)
}

/// Does one operation on keys.
pub(crate) async fn operate(edge: &Edge, op: KeyOp<'_>) -> Result<KeyAnswer, Problem> {
    let ops: KeyOps = [op].into_iter().collect();
    let ops = if edge.node.may_need_disk(&ops) {
        edge.read(move |node| {
            node.load_keys(&ops);
            ops
        })
        .await?
    } else {
        ops
    };
    let mut replies = edge.node.submit_keys(ops, Vec::new()).await?;
    match replies.answers.pop() {
        Some(KeyAnswer::Refused(refusal)) => Err(refusal.into()),
        Some(answer) => Ok(answer),
        None => unreachable!("every operation has an answer"),
    }
}

fn view(node: &Node, name: &BucketName, id: BucketId) -> Option<BucketView> {
    let bucket = node.keys().bucket(id)?;
    Some(BucketView { name: name.as_str().to_owned(), keys: bucket.keys, bytes: bucket.bytes })
}

/// List buckets
///
/// In the order of their names. Buckets `0` to `15` are always there, for clients that choose them by
/// number; they are listed if they hold something.
#[utoipa::path(
    get, path = "/v1/buckets", tag = "buckets",
    params(
        ("limit" = Option<usize>, Query, description = "1 to 100, by default 20"),
        ("after" = Option<String>, Query, description = "only names behind this one"),
    ),
    responses((status = 200, body = BucketPage))
)]
pub(crate) async fn list(
    State(edge): State<Arc<Edge>>,
    query: ListQuery<false>,
) -> Result<Response, Problem> {
    let after =
        query.after.map(String::from_utf8).transpose().map_err(|_| Problem::bad_bucket())?;
    let limit = query.limit;
    let mut views = edge.read(move |node| named(node, after.as_deref(), limit + 1)).await?;
    let more = views.len() > limit;
    views.truncate(limit);
    let last = views.last().filter(|_| more);
    let next = last.map(|last| format!("/v1/buckets?limit={limit}&after={}", last.name));
    Ok(page(&views, next.as_deref()))
}

/// The first buckets behind `after`, at most `limit`.
fn named(node: &Node, after: Option<&str>, limit: usize) -> Vec<BucketView> {
    let numbers = (0..NUMBERED_BUCKETS).filter_map(|number| {
        let name = BucketName::parse(&number.to_string())?;
        view(node, &name, BucketId(number.into())).filter(|view| view.keys > 0)
    });
    let numbers = numbers.filter(|view| after.is_none_or(|after| view.name.as_str() > after));
    let names = node.buckets_after(after, limit).into_iter();
    let mut views: Vec<_> =
        numbers.chain(names.filter_map(|(name, id)| view(node, &name, id))).collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views.truncate(limit);
    views
}

/// Create a bucket
///
/// Creating it again changes nothing.
#[utoipa::path(
    put, path = "/v1/buckets/{bucket}", tag = "buckets",
    params(("bucket" = String, Path, description = "1 to 64 of a-z A-Z 0-9 _ -")),
    responses(
        (status = 201, body = BucketView),
        (status = 200, description = "it was there already", body = BucketView),
        (status = 422, description = "`bad_bucket`", body = ErrorBody),
        (status = 507, description = "`too_many_buckets`", body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(edge): State<Arc<Edge>>,
    OneBucket(name): OneBucket,
) -> Result<Response, Problem> {
    let answer = operate(&edge, KeyOp::Create { name: name.clone() }).await?;
    let found = edge.read_done(move |node| view(node, &name, node.bucket_named(&name)?)).await?;
    // It may have been deleted since.
    let mut response = json(to_json(&found.ok_or(KeyRefusal::BucketNotFound)?));
    if answer != KeyAnswer::Nothing {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

/// Get a bucket
#[utoipa::path(
    get, path = "/v1/buckets/{bucket}", tag = "buckets",
    params(("bucket" = String, Path)),
    responses(
        (status = 200, body = BucketView),
        (status = 404, description = "`bucket_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn show(
    State(edge): State<Arc<Edge>>,
    OneBucket(name): OneBucket,
) -> Result<Response, Problem> {
    let id = resolved(&edge, &name).await?;
    let view = view(&edge.node, &name, id).ok_or(KeyRefusal::BucketNotFound)?;
    Ok(json(to_json(&view)))
}

/// Delete a bucket with all its keys
#[utoipa::path(
    delete, path = "/v1/buckets/{bucket}", tag = "buckets",
    params(("bucket" = String, Path)),
    responses(
        (status = 204),
        (status = 404, description = "`bucket_not_found`", body = ErrorBody),
        (status = 409, description = "`bucket_stays`: 0 to 15 are always there", body = ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(edge): State<Arc<Edge>>,
    OneBucket(name): OneBucket,
) -> Result<Response, Problem> {
    operate(&edge, KeyOp::Drop { name }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
