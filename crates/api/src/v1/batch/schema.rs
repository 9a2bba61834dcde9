//! OpenAPI schema of a batch.

#![expect(dead_code, reason = "schema of the lines that `line` reads and `batch` writes as bytes")]

use utoipa::ToSchema;

use super::line::Op;
use crate::v1::posts::{QuotePolicyName, VisibilityName};
use crate::v1::recognitions::Drawing;

/// Line of a batch: one change. `op` determines its other fields; an unexpected field is an error.
#[derive(ToSchema)]
#[schema(example = json!({"op": "follow", "user": "0", "other": "1"}))]
pub(crate) struct BatchLine {
    op: Op,
    /// The acting user: an id or `@handle`.
    #[schema(nullable = false)]
    user: Option<String>,
    /// The other user: an id or `@handle`.
    #[schema(nullable = false)]
    other: Option<String>,
    /// Users to follow together, only with `follow` and instead of `other`. If one is refused, none is followed.
    #[schema(nullable = false, min_items = 1, max_items = 1_000)]
    others: Option<Vec<String>>,
    /// Id of a post, story or sample.
    #[schema(nullable = false)]
    id: Option<String>,
    #[schema(nullable = false)]
    handle: Option<String>,
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    bio: Option<String>,
    #[schema(nullable = false)]
    text: Option<String>,
    /// Id of the parent, if the post is a reply.
    #[schema(nullable = false)]
    in_reply_to_id: Option<String>,
    #[schema(nullable = false)]
    visibility: Option<VisibilityName>,
    #[schema(nullable = false)]
    warning: Option<String>,
    #[schema(nullable = false)]
    sensitive: Option<bool>,
    #[schema(nullable = false)]
    language: Option<String>,
    /// Id of the quoted post.
    #[schema(nullable = false)]
    quote_id: Option<String>,
    #[schema(nullable = false)]
    quote_policy: Option<QuotePolicyName>,
    /// Seconds until the story expires.
    #[schema(nullable = false, minimum = 1, maximum = 604_800)]
    ttl_s: Option<u64>,
    #[schema(nullable = false)]
    label: Option<String>,
    #[schema(nullable = false)]
    sample: Option<Drawing>,
    #[schema(nullable = false)]
    set: Option<String>,
    /// Retries with the same key return the first result.
    #[schema(nullable = false)]
    idempotency_key: Option<String>,
}

/// Line of the response: the result of the request's line at the same position.
#[derive(ToSchema)]
#[schema(example = json!({"ok": true}))]
pub(crate) struct BatchResult {
    ok: bool,
    /// Id of the created user, post, story or sample.
    #[schema(nullable = false)]
    id: Option<String>,
    /// Error code.
    #[schema(nullable = false)]
    error: Option<String>,
    #[schema(nullable = false)]
    message: Option<String>,
    #[schema(nullable = false)]
    field: Option<String>,
    /// Number of the line, from 1, if the line is invalid or refused.
    #[schema(nullable = false)]
    line: Option<u64>,
}
