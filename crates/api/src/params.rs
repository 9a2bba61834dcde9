//! Parameters that several routes share, for the description of the API. The examples exist in
//! `roost demo`.

#![expect(dead_code, reason = "describes what extractors read")]

use utoipa::{IntoParams, ToSchema};

/// Raw bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(crate) struct Binary(Vec<u8>);

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct UserPath {
    /// The user: an id or `@handle`.
    #[param(example = "0")]
    user: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OtherPath {
    /// The other user: an id or `@handle`.
    #[param(example = "1")]
    other: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct IdPath {
    /// A decimal number of at most 63 bits.
    #[param(example = "381482917519855616")]
    id: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TagPath {
    /// A hashtag without its `#`, in any case.
    #[param(example = "garden")]
    tag: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct BucketPath {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    #[param(example = "0")]
    bucket: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct KeyPath {
    /// 1 to 65,472 bytes, percent-encoded.
    #[param(example = "greeting")]
    key: String,
}

/// The requested page of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Maximum number of items on the page.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// Items with ids less than this one. Not together with `after`.
    before: Option<String>,
    /// Items with ids greater than this one.
    after: Option<String>,
}

/// The user on whose behalf a route reads.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ViewerQuery {
    /// An id or `@handle`: what is hidden from this user is left out, or is 404. Without it nothing is hidden.
    viewer: Option<String>,
}

/// The requested page of a list that is read in one direction.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AfterQuery {
    /// Maximum number of items on the page.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// From the `next` of the previous page.
    after: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct KeyHeader {
    /// Retries with the same key return the first result. 1 to 255 visible ASCII characters or spaces.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
}
