//! Status codes of refusals of the rules, by class.

use std::fmt::Display;

use axum::http::StatusCode;
use feed::{Refusal, RefusalClass};
use kv::KeyRefusal;

use super::ApiError;

/// Status code of a class of refusals.
pub(crate) const fn status(class: RefusalClass) -> StatusCode {
    match class {
        RefusalClass::NotFound => StatusCode::NOT_FOUND,
        RefusalClass::Conflict => StatusCode::CONFLICT,
        RefusalClass::Precondition => StatusCode::PRECONDITION_FAILED,
        RefusalClass::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        RefusalClass::Full => StatusCode::INSUFFICIENT_STORAGE,
        RefusalClass::Busy => StatusCode::SERVICE_UNAVAILABLE,
        RefusalClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl ApiError {
    fn refused(
        (class, code): (RefusalClass, &'static str),
        field: Option<&'static str>,
        sentence: &dyn Display,
    ) -> Self {
        let error = Self::new(status(class), code, sentence.to_string());
        Self { field: field.map(Into::into), ..error }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::refused((refusal.class(), refusal.code()), refusal.field(), &refusal)
    }
}

impl From<KeyRefusal> for ApiError {
    fn from(refusal: KeyRefusal) -> Self {
        Self::refused((refusal.class(), refusal.code()), refusal.field(), &refusal)
    }
}
