//! Answers of a server without a feature: nothing in the form that clients expect, no such record, or a refusal that names
//! the feature.

use axum::response::Response;

use crate::answers;
use crate::error::ApiError;

/// The answer of a route whose feature the server does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// `[]`
    List,
    /// `{}`
    Object,
    /// This JSON.
    Json(&'static str),
    /// 404: no record of the kind exists, so none has the id of the path.
    Record,
    /// 422, which says that the server has none of these.
    Refused(&'static str),
}

impl Absent {
    /// The answer to a request.
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
