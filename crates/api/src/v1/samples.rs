//! Samples that are taught: adding, showing and deleting them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, Done, Label, Refusal, Sample, SampleId, SetName};
use knn::Bits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{Input, Once, OneSample, given};
use crate::page::json;
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::recognise::{Drawing, Given};
use crate::v1::users::created;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/recognise/samples", Entry::Plain, teach);
    routes.on("GET", "/v1/recognise/samples/{id}", Entry::Plain, show);
    routes.on("DELETE", "/v1/recognise/samples/{id}", Entry::Plain, forget);
}

/// A sample to be taught.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSample {
    /// What it shows: 1 to 32 bytes.
    #[schema(example = "7")]
    label: String,
    #[schema(value_type = Drawing)]
    bits: Given,
    /// 1 to 64 of `a-z A-Z 0-9 _ -`, by default `digits`. A set begins with its first sample.
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
    /// 256 hexadecimal digits.
    bits: String,
}

/// A sample out of what is given, if it is one.
pub(crate) fn checked(
    set: Option<&str>,
    label: &str,
    Given(bits): Given,
) -> Result<Sample, Problem> {
    let set = set.map(SetName::parse).transpose()?.unwrap_or_else(SetName::digits);
    let label = Label::parse(label)?;
    Ok(Sample { set, label, bits: bits.map_err(Problem::bad_sample)?.to_bytes().into() })
}

/// The command that teaches a sample.
pub(crate) fn teaching(sample: Sample) -> Command {
    let Sample { set, label, bits } = sample;
    Command::Teach { set, label, bits: Box::new(bits) }
}

/// Add a sample
///
/// It counts from the answer on.
#[utoipa::path(
    post, path = "/v1/recognise/samples", tag = "recognizer", request_body = NewSample,
    params(("Idempotency-Key" = Option<String>, Header, description = "retries with the same key return the first result")),
    responses(
        (status = 201, body = SampleView, headers(("Location" = String), ("Idempotent-Replayed" = String))),
        (status = 422, description = "`bad_sample`, `bad_label`, `bad_set`, `idempotency_key_reused`", body = ErrorBody),
        (status = 503, description = "`overloaded`, with Retry-After", body = ErrorBody),
        (status = 507, description = "`set_full`, `too_many_labels`, `too_many_sets`, `samples_full`", body = ErrorBody),
    )
)]
pub(crate) async fn teach(
    State(edge): State<Arc<Edge>>,
    Input { body: NewSample { label, bits, set }, idempotency, .. }: Input<NewSample>,
) -> Result<Response, Problem> {
    let sample = checked(set.as_deref(), &label, bits)?;
    let submitted = edge.submit(teaching(sample.clone()), idempotency).await?;
    let (Done::Taught { sample: id }, replayed) = submitted else {
        unreachable!("teaching teaches");
    };
    let path = format!("/v1/recognise/samples/{}", id.0);
    Ok(created(json(rendered(id, &sample)?), path, replayed))
}

/// Get a sample, added or built in
#[utoipa::path(
    get, path = "/v1/recognise/samples/{id}", tag = "recognizer", params(("id" = String, Path)),
    responses(
        (status = 200, body = SampleView),
        (status = 404, description = "`sample_not_found`", body = ErrorBody),
    )
)]
pub(crate) async fn show(
    State(edge): State<Arc<Edge>>,
    OneSample(id): OneSample,
) -> Result<Response, Problem> {
    let sample = edge.read(move |node| node.sample(id)).await?;
    Ok(json(rendered(id, &sample.ok_or(Refusal::SampleNotFound)?)?))
}

/// Delete a sample
#[utoipa::path(
    delete, path = "/v1/recognise/samples/{id}", tag = "recognizer", params(("id" = String, Path)),
    responses(
        (status = 204),
        (status = 404, description = "`sample_not_found`", body = ErrorBody),
        (status = 409, description = "`sample_built_in`", body = ErrorBody),
    )
)]
pub(crate) async fn forget(
    State(edge): State<Arc<Edge>>,
    OneSample(sample): OneSample,
    Once(key): Once,
) -> Result<Response, Problem> {
    edge.carry_out(Command::ForgetSample { sample }, key).await
}

fn rendered(id: SampleId, sample: &Sample) -> Result<Vec<u8>, Problem> {
    let view = SampleView {
        id: id.0.to_string(),
        set: sample.set.as_str().to_owned(),
        label: sample.label.as_str().to_owned(),
        bits: format!("{:x}", Bits::from_bytes(&sample.bits.into())),
    };
    serde_json::to_vec(&view).map_err(|error| Problem::internal(&error))
}
