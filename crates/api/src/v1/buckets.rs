//! Buckets: create, list, show, delete. Module `keys` handles the keys in them.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::header::IF_NONE_MATCH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use edge::etag::Tags;
use feed::Refusal;
use kv::limits::NUMBERED_BUCKETS;
use kv::{BucketId, BucketName, KeyAnswer, KeyOp, KeyOps, KeyRefusal};
use node::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::described;
use crate::error::ApiError;
use crate::idempotency::NoKey;
use crate::input::path;
use crate::page::{self, json, to_json};
use crate::query::Query;
use crate::route::{Inputs, Reads, Route};
use crate::state::AppState;
use edge::Scope;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/buckets", list)
            .named("list_buckets", "List buckets")
            .text(
                "Sorted by name. Buckets `0` to `15` always exist, for Redis clients, which \
                 select them by number; they are listed if they hold a key.",
            )
            .lists::<BucketView>("A page of buckets"),
        Route::put("/v1/buckets/{bucket}", create)
            .named("create_bucket", "Create a bucket")
            .text(
                "Idempotent. With `If-None-Match: *` the request is refused if the bucket \
                 exists.",
            )
            .reads_header("If-None-Match", "`*`: create only if the bucket does not exist")
            .answers(204, "The bucket exists")
            .errors(&["precondition_failed", "too_many_buckets"]),
        Route::get("/v1/buckets/{bucket}", show)
            .named("get_bucket", "Show a bucket")
            .shows::<BucketView>("The bucket")
            .errors(&["bucket_not_found"]),
        Route::delete("/v1/buckets/{bucket}", delete)
            .named("delete_bucket", "Delete a bucket and all its keys")
            .scope(Scope::Admin)
            .answers(204, "The bucket is deleted")
            .errors(&["bucket_not_found", "bucket_stays"]),
    ]
}

/// A bucket.
#[derive(Serialize, ToSchema)]
pub(crate) struct BucketView {
    #[schema(example = "drafts")]
    name: String,
    /// Number of keys. Expired keys count until they are removed, within 1 to 2 seconds.
    #[schema(example = 3)]
    key_count: u64,
    /// Total size of keys and values.
    #[schema(example = 120)]
    size_bytes: u64,
}

/// The bucket in the path.
pub(crate) struct OneBucket(pub(super) BucketName);

impl<S: Send + Sync> FromRequestParts<S> for OneBucket {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let name: String = path(parts).await?;
        BucketName::parse(&name).map(Self).ok_or_else(ApiError::bad_bucket)
    }
}

impl Reads for OneBucket {
    fn describe(inputs: &mut Inputs) {
        inputs.path("bucket", "Name of the bucket: 1 to 64 of `a-z A-Z 0-9 _ -`.", "0");
        inputs.error(ApiError::bad_bucket());
    }
}

/// Resolves the name of an existing bucket.
pub(crate) async fn resolved(state: &AppState, name: &BucketName) -> Result<BucketId, ApiError> {
    if let Some(id) = state.node.try_bucket_named(name) {
        return Ok(id);
    }
    let name = name.clone();
    let id = state.read(move |node| node.bucket_named(&name)).await?;
    Ok(id.ok_or(KeyRefusal::BucketNotFound)?)
}

/// Runs one operation on keys.
pub(crate) async fn operate(state: &AppState, op: KeyOp<'_>) -> Result<KeyAnswer, ApiError> {
    let ops: KeyOps = [op].into_iter().collect();
    let ops = if state.node.may_need_disk(&ops) {
        state
            .read(move |node| {
                node.load_keys(&ops);
                ops
            })
            .await?
    } else {
        ops
    };
    let mut replies = state.node.submit_keys(ops, Vec::new()).await?;
    match replies.answers.pop() {
        Some(KeyAnswer::Refused(refusal)) => Err(refusal.into()),
        Some(answer) => Ok(answer),
        None => unreachable!("every operation has an answer"),
    }
}

fn view(node: &Node, name: &BucketName, id: BucketId) -> Option<BucketView> {
    let bucket = node.keys().bucket(id)?;
    Some(BucketView {
        name: name.as_str().to_owned(),
        key_count: bucket.keys,
        size_bytes: bucket.bytes,
    })
}

/// The requested page of buckets.
pub(crate) struct Listing {
    /// Name of the last bucket of the previous page.
    after: Option<String>,
    limit: usize,
}

impl<S: Send + Sync> FromRequestParts<S> for Listing {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut query = Query::parse(&parts.uri, &["limit", "cursor"])?;
        let name = |text: &str| BucketName::parse(text).map(|_| text.to_owned());
        Ok(Self { limit: page::limit(&mut query)?, after: page::cursor(&mut query, name)? })
    }
}

impl Reads for Listing {
    fn describe(inputs: &mut Inputs) {
        described::page(inputs);
    }
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    Listing { after, limit }: Listing,
) -> Result<Response, ApiError> {
    let mut views = state.read(move |node| named(node, after.as_deref(), limit + 1)).await?;
    let more = views.len() > limit;
    views.truncate(limit);
    let last = views.last().filter(|_| more);
    let next = last.map(|last| last.name.as_str());
    Ok(page::answer(page::opened_with(views.iter()), next))
}

/// Returns up to `limit` buckets after `after`, sorted by name.
fn named(node: &Node, after: Option<&str>, limit: usize) -> Vec<BucketView> {
    let numbers = (0..NUMBERED_BUCKETS).filter_map(|number| {
        let name = BucketName::parse(&number.to_string())?;
        view(node, &name, BucketId(number.into())).filter(|view| view.key_count > 0)
    });
    let numbers = numbers.filter(|view| after.is_none_or(|after| view.name.as_str() > after));
    let names = node.buckets_after(after, limit).into_iter();
    let mut views: Vec<_> =
        numbers.chain(names.filter_map(|(name, id)| view(node, &name, id))).collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views.truncate(limit);
    views
}

pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    OneBucket(name): OneBucket,
    _: NoKey,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let only_new = match Tags::of(&headers, &IF_NONE_MATCH) {
        Ok(None) => false,
        Ok(Some(Tags::Any)) => true,
        _ => {
            return Err(ApiError::bad_request("a bucket has no ETag: only * is allowed")
                .at("If-None-Match"));
        }
    };
    let existed = operate(&state, KeyOp::Create { name }).await? == KeyAnswer::Nothing;
    if only_new && existed {
        return Err(Refusal::PreconditionFailed.into());
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OneBucket(name): OneBucket,
) -> Result<Response, ApiError> {
    let id = resolved(&state, &name).await?;
    let view = view(&state.node, &name, id).ok_or(KeyRefusal::BucketNotFound)?;
    Ok(json(to_json(&view)))
}

pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    OneBucket(name): OneBucket,
    _: NoKey,
) -> Result<Response, ApiError> {
    operate(&state, KeyOp::Drop { name }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
