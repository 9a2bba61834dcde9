//! Answers of a server without a feature: an empty list or object, no such record, or a refusal that names the feature.

use axum::Json;
use serde_json::{Value, json};

use crate::error::ApiError;

/// The answer of a route whose feature the server does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// `[]`
    List,
    /// `{}`
    Object,
    /// 404: no record of the kind exists, so none has the id of the path.
    Record,
    /// 422, which says that the server has none of these.
    Refused(&'static str),
}

impl Absent {
    /// The answer to a request.
    pub(crate) fn answer(self) -> Result<Json<Value>, ApiError> {
        match self {
            Self::List => Ok(Json(json!([]))),
            Self::Object => Ok(Json(json!({}))),
            Self::Record => Err(ApiError::not_found()),
            Self::Refused(what) => Err(ApiError::not_supported(what)),
        }
    }
}
