//! Responses of missing features: an empty value in the expected form, no such record, or a refusal that names the
//! feature.

use axum::response::Response;

use crate::answers;
use crate::error::ApiError;

/// Response of a route whose feature the server lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// `[]`
    List,
    /// `{}`
    Object,
    /// This JSON.
    Json(&'static str),
    /// 404: no records of this kind exist.
    Record,
    /// 422: the server does not have this feature.
    Refused(&'static str),
}

impl Absent {
    /// Responds to a request.
    pub(crate) fn answer(self) -> Result<Response, ApiError> {
        let json = |text: &str| Ok(answers::json(text.into()));
        match self {
            Self::List => json("[]"),
            Self::Object => json("{}"),
            Self::Json(text) => json(text),
            Self::Record => Err(ApiError::not_found()),
            Self::Refused(what) => Err(ApiError::not_supported(what)),
        }
    }
}
