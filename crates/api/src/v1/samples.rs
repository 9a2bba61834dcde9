//! Samples of the recognizer: add, show, delete.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, Label, Refusal, Sample, SampleId, SetName};
use knn::Bits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::input::{Input, OneSample, given};
use crate::page::json;
use crate::route::Route;
use crate::state::AppState;
use crate::v1::recognitions::{Drawing, Given};
use crate::v1::users::created;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/samples", add)
            .named("create_sample", "Add a sample")
            .text("From the response on, drawings are compared with the sample.")
            .creates::<SampleView>("The new sample", "Path of the sample")
            .errors(&[
                "bad_sample",
                "bad_label",
                "bad_set",
                "set_full",
                "too_many_labels",
                "too_many_sets",
                "samples_full",
            ]),
        Route::get("/v1/samples/{id}", show)
            .named("get_sample", "Show a sample")
            .text("Both added and built-in samples.")
            .shows::<SampleView>("The sample"),
        Route::delete("/v1/samples/{id}", delete)
            .named("delete_sample", "Delete a sample")
            .answers(204, "The sample is deleted")
            .errors(&["sample_built_in"]),
    ]
}

/// A sample to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSample {
    /// Label of the drawing: 1 to 32 bytes.
    #[schema(example = "7")]
    label: String,
    #[schema(value_type = Drawing)]
    sample: Given,
    /// Name of the set: 1 to 64 of `a-z A-Z 0-9 _ -` (default: `digits`). The first sample creates the set.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "letters")]
    set: Option<String>,
}

/// A sample.
#[derive(Serialize, ToSchema)]
pub(crate) struct SampleView {
    #[schema(example = "381482917519855616")]
    id: String,
    #[schema(example = "letters")]
    set: String,
    #[schema(example = "7")]
    label: String,
    /// Drawing as 256 hexadecimal digits.
    sample: String,
}

/// Converts a request to a sample.
pub(crate) fn checked(
    set: Option<&str>,
    label: &str,
    Given(bits): Given,
) -> Result<Sample, ApiError> {
    let set = set.map(SetName::parse).transpose()?.unwrap_or_else(SetName::digits);
    let label = Label::parse(label)?;
    Ok(Sample {
        set,
        label,
        bits: bits.map_err(|why| ApiError::bad_sample(why).at("sample"))?.to_bytes().into(),
    })
}

pub(crate) async fn add(
    State(state): State<Arc<AppState>>,
    Input { body: NewSample { label, sample, set }, key, .. }: Input<NewSample>,
) -> Result<Response, ApiError> {
    let sample = checked(set.as_deref(), &label, sample)?;
    let added = state.submit_sample(sample.clone(), key).await?;
    let response = added.mark(json(rendered(added.value, &sample)?));
    Ok(created(response, format!("/v1/samples/{}", added.value.0)))
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OneSample(id): OneSample,
) -> Result<Response, ApiError> {
    let sample = state.read(move |node| node.sample(id)).await?;
    Ok(json(rendered(id, &sample.ok_or(Refusal::SampleNotFound)?)?))
}

changes! {
    delete: OneSample(sample) => Command::DeleteSample { sample };
}

fn rendered(id: SampleId, sample: &Sample) -> Result<Vec<u8>, ApiError> {
    let view = SampleView {
        id: id.0.to_string(),
        set: sample.set.as_str().to_owned(),
        label: sample.label.as_str().to_owned(),
        sample: format!("{:x}", Bits::from_bytes(&sample.bits.into())),
    };
    serde_json::to_vec(&view).map_err(|error| ApiError::fault(&error))
}
