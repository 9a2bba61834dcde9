//! Recognizer: classifies a drawing by its nearest neighbors among the samples.

mod answer;
mod given;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use edge::{ANSWER_BYTES_FREE, BodyLimits, HeldBody};
use feed::SetName;
use knn::K;
use serde::Serialize;
use utoipa::ToSchema;

use crate::described::Binary;
use crate::error::ApiError;
use crate::page::json;
use crate::query::Query;
use crate::route::{Inputs, Reads, Route, inline, reference};
use crate::state::AppState;
use answer::{answer, bytes_max};
use edge::Scope;
pub(crate) use given::Given;
use given::{Asked, Kind};

/// Maximum size of a body, in bytes: 1,000 samples as arrays with spaces take 3 MB.
const LARGE_BODY_BYTES_MAX: usize = 4 << 20;
/// Maximum size of a body that the async worker parses, in bytes. Parsing takes microseconds.
const INLINE_BYTES: usize = 4 << 10;
/// Memory of a label in the overview while it is created, raw and as JSON, in bytes.
const LABEL_BYTES: usize = 256;
/// Maximum number of comparisons on the async worker. They take about 0.1 ms with vector instructions.
const INLINE_COMPARISONS: usize = 32_768;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/recognitions", recognize)
            .named("recognize", "Recognize drawings")
            .scope(Scope::Read)
            .text(
                "Compares each drawing with all samples of a set; the K nearest vote. The body \
                 is JSON, text, or a PNG or JPEG image. Text has one sample, or several with \
                 empty lines between them. An image has at most 4,096 x 4,096 pixels and one \
                 drawing of any size, dark on light or light on dark.",
            )
            .body(
                Some(LARGE_BODY_BYTES_MAX),
                vec![
                    ("application/json", reference::<Drawings>),
                    ("text/plain", inline::<String>),
                    ("image/png", reference::<Binary>),
                    ("image/jpeg", reference::<Binary>),
                ],
            )
            .shows::<Recognition>("The classification, or `recognitions` for `samples`")
            .errors(&["bad_json", "bad_sample", "bad_image"]),
        Route::get("/v1/recognitions", overview)
            .named("get_recognizer", "Show the recognizer")
            .text("Parameters of the recognizer, and its sets of samples.")
            .shows::<Overview>("The recognizer"),
    ]
}

/// Drawings to recognize: `sample` or `samples`, 1 to 1,000.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the body that `given` reads")]
pub(crate) struct Drawings {
    #[schema(nullable = false)]
    sample: Option<Drawing>,
    #[schema(nullable = false)]
    samples: Option<Vec<Drawing>>,
}

/// Drawing of 32 rows of 32 pixels, 1 for ink: a string of 1,024 digits 0 and 1, of 256 hexadecimal digits, or of 128
/// bytes in base64, with the first pixel in the highest bit; or an array of 1,024 numbers. White space in strings is
/// ignored.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(
    example = "00000000000000000000000000000000000000000000000000000000000000000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000003c0000000000000000000000000000000000000000000000000000000000000000000"
)]
#[expect(dead_code, reason = "schema of the body that `Given` reads")]
pub(crate) enum Drawing {
    Text(String),
    Numbers(Vec<u8>),
}

/// Classification of a drawing.
#[derive(Serialize, ToSchema)]
pub(crate) struct Recognized {
    #[schema(example = "7")]
    label: String,
    /// Share of the neighbors that have this label, 0 to 1.
    #[schema(example = 0.9333)]
    confidence: f64,
    /// Votes for each label, the winner first.
    votes: Vec<Votes>,
    /// The K nearest samples, nearest first; all samples if the set has fewer than K.
    neighbors: Vec<NearSample>,
    /// Drawing found in the image of the request, as 256 hexadecimal digits; null if the request has no image.
    sample: Option<String>,
}

/// Classifications of several drawings, in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecognizedList {
    recognitions: Vec<Recognized>,
}

/// Response for one drawing or for several.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "schema of the response, which is written as bytes")]
pub(crate) enum Recognition {
    One(Recognized),
    Several(RecognizedList),
}

/// Number of neighbors with a label. Labels with equally many votes are ordered by their nearest sample, then by the
/// sum of distances, then by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct Votes {
    label: String,
    vote_count: u32,
}

/// A sample near the drawing.
#[derive(Serialize, ToSchema)]
pub(crate) struct NearSample {
    #[schema(example = "1234")]
    id: String,
    label: String,
    /// Number of different pixels, 0 to 1,024.
    distance: u32,
}

/// The recognizer and its sets of samples.
#[derive(Serialize, ToSchema)]
pub(crate) struct Overview {
    /// Default number of neighbors that vote.
    #[schema(example = 15)]
    k: usize,
    /// Maximum number of neighbors that can be requested.
    #[schema(example = 100)]
    k_max: usize,
    /// Instruction set of the processor that computes distances.
    #[schema(example = "avx512")]
    instruction_set: String,
    sets: Vec<SetOverview>,
}

/// Set of samples.
#[derive(Serialize, ToSchema)]
pub(crate) struct SetOverview {
    #[schema(example = "digits")]
    set: String,
    sample_count: usize,
    labels: Vec<LabelOverview>,
}

/// Label of a set.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelOverview {
    #[schema(example = "7")]
    label: String,
    sample_count: usize,
}

/// Parameters of a comparison.
#[derive(Debug)]
pub(crate) struct Question {
    set: SetName,
    k: K,
}

impl<S: Send + Sync> FromRequestParts<S> for Question {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(&parts.uri)
    }
}

impl Reads for Question {
    fn describe(inputs: &mut Inputs) {
        inputs.number("k", "Number of neighbors that vote.", 1..=K::MAX.count() as u64);
        inputs.query("set", "Name of the set of samples (default: `digits`).");
        inputs.error(ApiError::bad_k(K::MAX.count()));
        inputs.errors(&["bad_set", "set_not_found"]);
    }
}

impl Question {
    fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let mut query = Query::parse(uri, &["k", "set"])?;
        let k = match query.number("k")? {
            None => K::DEFAULT,
            Some(k) => usize::try_from(k)
                .ok()
                .and_then(K::new)
                .ok_or_else(|| ApiError::bad_k(K::MAX.count()))?,
        };
        let set = query.text("set")?.as_deref().map(SetName::parse).transpose()?;
        Ok(Self { set: set.unwrap_or_else(SetName::digits), k })
    }
}

pub(super) async fn recognize(
    State(state): State<Arc<AppState>>,
    question: Question,
    request: Request,
) -> Result<Response, ApiError> {
    let kind = Kind::of(request.headers())?;
    let limits = BodyLimits::new(LARGE_BODY_BYTES_MAX);
    let body = HeldBody::read(request.into_body(), limits, &state.memory).await?;
    let asked = match kind {
        Kind::Json | Kind::Text if body.bytes().len() <= INLINE_BYTES => {
            kind.parse(body.bytes(), &state.memory)?
        }
        _ => {
            let memory = state.memory.clone();
            state.reads.compute(move || kind.parse(body.bytes(), &memory)).await??
        }
    };
    answered(&state, &question, asked).await
}

async fn answered(
    state: &AppState,
    question: &Question,
    asked: Asked,
) -> Result<Response, ApiError> {
    let samples = state.node.samples(&question.set)?.ok_or_else(ApiError::set_not_found)?;
    let (comparisons, k) = (asked.all().len() * samples.len(), question.k);
    // This memory is held until the response is complete, and counts as memory of the response.
    let bytes = bytes_max(&asked, k);
    let _held = (bytes > ANSWER_BYTES_FREE).then(|| state.memory.reserve(bytes)).transpose()?;
    let search = move || answer(&samples, &asked, k);
    let found = match comparisons <= INLINE_COMPARISONS {
        true => search(),
        false => state.reads.compute(search).await?,
    };
    Ok(json(found))
}

pub(super) async fn overview(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let memory = state.memory.clone();
    let read = state.read(move |node| {
        let sets = node.sample_sets()?;
        let labels: usize = sets.iter().map(|(_, samples)| samples.counts().count()).sum();
        // This memory is held until the response is sent, and counts as memory of the response.
        let bytes = labels * LABEL_BYTES;
        let _held = (bytes > ANSWER_BYTES_FREE).then(|| memory.reserve(bytes)).transpose()?;
        let instructions = sets.first().map(|(_, samples)| samples.instructions().to_string());
        let overview = Overview {
            k: K::DEFAULT.count(),
            k_max: K::MAX.count(),
            instruction_set: instructions.unwrap_or_default(),
            sets: sets.iter().map(|(name, samples)| set_overview(name, samples)).collect(),
        };
        serde_json::to_vec(&overview).map_err(|error| ApiError::fault(&error))
    });
    Ok(json(read.await??))
}

fn set_overview(name: &SetName, samples: &knn::Samples) -> SetOverview {
    let label = |(label, sample_count): (&str, usize)| LabelOverview {
        label: label.to_owned(),
        sample_count,
    };
    SetOverview {
        set: name.as_str().to_owned(),
        sample_count: samples.len(),
        labels: samples.counts().map(label).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_parameters_are_refused() {
        let check = |query: &str, expect: Result<(&str, usize), &str>| {
            let parsed = Question::parse(&format!("/?{query}").parse().unwrap());
            let parsed = parsed.as_ref().map(|asked| (asked.set.as_str(), asked.k.count()));
            assert_eq!(parsed.map_err(|error| error.code), expect, "{query:?}");
        };
        check("", Ok(("digits", 15)));
        check("k=1", Ok(("digits", 1)));
        check("set=letters&k=100", Ok(("letters", 100)));
        for query in ["k=0", "k=101"] {
            check(query, Err("bad_k"));
        }
        for query in ["k=", "k=x", "k=1&k=1", "set=a&set=a", "limit=5"] {
            check(query, Err("bad_request"));
        }
        check("set=a%20b", Err("bad_set"));
        check("set=", Err("bad_set"));
    }
}
