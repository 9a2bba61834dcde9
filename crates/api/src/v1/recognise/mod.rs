//! What a drawing is, by its nearest neighbours among the samples.

mod answer;
mod given;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use feed::SetName;
use knn::K;
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::read_body;
use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::decimal;
use crate::memory::ANSWER_BYTES_FREE;
use crate::page::json;
use crate::routes::Routes;
use crate::state::Edge;
use answer::{answer, bytes_max};
pub(crate) use given::Given;
use given::{Asked, Kind};

/// Most bytes of a body here: 1,000 samples as arrays with spaces take 3 MB.
const LARGE_BODY_BYTES_MAX: usize = 4 << 20;
/// Bodies of up to so many bytes are parsed where they arrive, which takes microseconds.
const INLINE_BYTES: usize = 4 << 10;
/// What a label takes in the overview while it is made: as it is, and as JSON.
const LABEL_BYTES: usize = 256;
/// Up to so many comparisons are made there too: about 0.1 ms with vector instructions.
const INLINE_COMPARISONS: usize = 32_768;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/recognise", Entry::Query, recognise);
    routes.on("GET", "/v1/recognise", Entry::Plain, overview);
}

/// What to recognise: `sample` or `samples`, 1 to 1,000 of them.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the body, which `given` reads")]
pub(crate) struct Drawings {
    #[schema(nullable = false)]
    sample: Option<Drawing>,
    #[schema(nullable = false)]
    samples: Option<Vec<Drawing>>,
}

/// 32 rows of 32 pixels, 1 for ink: 1,024 digits 0 and 1, 256 hexadecimal digits or 128 bytes in base64,
/// all with the first pixel in the highest bit; or an array of 1,024 numbers. White space in strings
/// is ignored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `Given` reads")]
pub(crate) enum Drawing {
    #[schema(rename = "text")]
    Text(String),
    #[schema(rename = "numbers")]
    Numbers(Vec<u8>),
}

/// What a drawing is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct Recognised {
    #[schema(example = "7")]
    label: String,
    /// The share of the neighbours that have this label.
    #[schema(example = 0.9333)]
    confidence: f64,
    /// The votes for each label, the winner first.
    votes: Vec<Votes>,
    /// The K nearest samples, the nearest first; fewer if the set has fewer.
    neighbours: Vec<NearSample>,
    /// What an image became, as 256 hexadecimal digits; not there unless it was one.
    #[schema(nullable = false)]
    bits: Option<String>,
}

/// How many of the neighbours have a label. Of labels with as many votes the one whose nearest sample
/// is nearer comes first, then the one with the smaller sum of distances, then the smaller label.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct Votes {
    label: String,
    votes: u32,
}

/// A sample near to the drawing.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct NearSample {
    #[schema(example = "1234")]
    id: String,
    label: String,
    /// In how many of the 1,024 pixels they differ.
    distance: u32,
}

/// What there is to recognise with.
#[derive(Serialize, ToSchema)]
pub(crate) struct Overview {
    /// Neighbours that vote unless the caller says.
    #[schema(example = 15)]
    k: usize,
    /// The most neighbours that can be asked for.
    #[schema(example = 100)]
    k_max: usize,
    /// The processor's instructions that distances are computed with.
    #[schema(example = "avx512")]
    instruction_set: String,
    sets: Vec<SetOverview>,
}

/// A set of samples.
#[derive(Serialize, ToSchema)]
pub(crate) struct SetOverview {
    #[schema(example = "digits")]
    set: String,
    samples: usize,
    labels: Vec<LabelOverview>,
}

/// A label of a set.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelOverview {
    #[schema(example = "7")]
    label: String,
    samples: usize,
}

/// Where and how it is asked.
pub(crate) struct Question {
    set: SetName,
    k: K,
}

impl<S: Send + Sync> FromRequestParts<S> for Question {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::parse(parts.uri.query().unwrap_or(""))
    }
}

impl Question {
    fn parse(query: &str) -> Result<Self, Problem> {
        let (mut set, mut k) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let again = match &*name {
                "set" => set.replace(SetName::parse(&value)?).is_some(),
                "k" => k.replace(neighbours(&value)?).is_some(),
                _ => return Err(Problem::bad_request("known parameters are k and set")),
            };
            if again {
                return Err(Problem::bad_request("a query parameter is given twice"));
            }
        }
        Ok(Self { set: set.unwrap_or_else(SetName::digits), k: k.unwrap_or(K::DEFAULT) })
    }
}

fn neighbours(text: &str) -> Result<K, Problem> {
    let count = decimal(text).and_then(|count| usize::try_from(count).ok());
    count
        .and_then(K::new)
        .ok_or_else(|| Problem::bad_request(format!("k is a number from 1 to {}", K::MAX.count())))
}

/// Recognise drawings
///
/// Compares each with all samples of a set; the K nearest vote. The body is JSON; or text with one
/// sample, or several with empty lines between them; or a PNG or JPEG image of at most 4,096 x
/// 4,096 pixels with one drawing, dark on light or light on dark, of any size. Several are answered with
/// `{"results":[...]}`.
#[utoipa::path(
    post, path = "/v1/recognise", tag = "recognizer",
    params(
        ("k" = Option<u32>, Query, description = "1 to 100, by default 15"),
        ("set" = Option<String>, Query, description = "a set of samples, by default `digits`"),
    ),
    request_body(content(
        (Drawings = "application/json"), (String = "text/plain"),
        (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"),
    )),
    responses(
        (status = 200, body = Recognised),
        (status = 404, description = "`set_not_found`", body = ErrorBody),
        (status = 415, description = "`unsupported_media_type`", body = ErrorBody),
        (status = 422, description = "`bad_sample`, `bad_image`, `bad_set`", body = ErrorBody),
        (status = 503, description = "`overloaded`, with Retry-After", body = ErrorBody),
    )
)]
pub(super) async fn recognise(
    State(edge): State<Arc<Edge>>,
    question: Question,
    request: Request,
) -> Result<Response, Problem> {
    let kind = Kind::of(request.headers())?;
    let body = read_body(request.into_body(), LARGE_BODY_BYTES_MAX, &edge.memory).await?;
    let asked = match kind {
        Kind::Json | Kind::Text if body.bytes().len() <= INLINE_BYTES => {
            kind.parse(body.bytes(), &edge.memory)?
        }
        _ => {
            let memory = edge.memory.clone();
            edge.reads.run(move || kind.parse(body.bytes(), &memory)).await??
        }
    };
    answered(&edge, &question, asked).await
}

async fn answered(edge: &Edge, question: &Question, asked: Asked) -> Result<Response, Problem> {
    let samples = edge.node.samples(&question.set)?.ok_or_else(Problem::set_not_found)?;
    let (comparisons, k) = (asked.all().len() * samples.len(), question.k);
    // Until the answer is made, and counted as such.
    let bytes = bytes_max(&asked, k);
    let _held = (bytes > ANSWER_BYTES_FREE).then(|| edge.memory.reserve(bytes)).transpose()?;
    let search = move || answer(&samples, &asked, k);
    let found =
        if comparisons <= INLINE_COMPARISONS { search() } else { edge.reads.run(search).await? };
    Ok(json(found))
}

/// List sets of samples
#[utoipa::path(
    get, path = "/v1/recognise", tag = "recognizer",
    responses(
        (status = 200, body = Overview),
        (status = 503, description = "`overloaded`, with Retry-After", body = ErrorBody),
    )
)]
pub(super) async fn overview(State(edge): State<Arc<Edge>>) -> Result<Response, Problem> {
    let memory = edge.memory.clone();
    let read = edge.read(move |node| {
        let sets = node.sample_sets()?;
        let labels: usize = sets.iter().map(|(_, samples)| samples.counts().count()).sum();
        // Until it is sent it is counted as an answer.
        let bytes = labels * LABEL_BYTES;
        let _held = (bytes > ANSWER_BYTES_FREE).then(|| memory.reserve(bytes)).transpose()?;
        let instructions = sets.first().map(|(_, samples)| samples.instructions().to_string());
        let overview = Overview {
            k: K::DEFAULT.count(),
            k_max: K::MAX.count(),
            instruction_set: instructions.unwrap_or_default(),
            sets: sets.iter().map(|(name, samples)| set_overview(name, samples)).collect(),
        };
        serde_json::to_vec(&overview).map_err(|error| Problem::internal(&error))
    });
    Ok(json(read.await??))
}

fn set_overview(name: &SetName, samples: &knn::Samples) -> SetOverview {
    let label =
        |(label, samples): (&str, usize)| LabelOverview { label: label.to_owned(), samples };
    SetOverview {
        set: name.as_str().to_owned(),
        samples: samples.len(),
        labels: samples.counts().map(label).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_strict() {
        let check = |query: &str, expect: Result<(&str, usize), &str>| {
            let parsed = Question::parse(query);
            let parsed = parsed.as_ref().map(|asked| (asked.set.as_str(), asked.k.count()));
            assert_eq!(parsed.map_err(|problem| problem.code), expect, "{query:?}");
        };
        check("", Ok(("digits", 15)));
        check("k=1", Ok(("digits", 1)));
        check("set=letters&k=100", Ok(("letters", 100)));
        for query in ["k=0", "k=101", "k=", "k=x", "k=1&k=1", "set=a&set=a", "limit=5"] {
            check(query, Err("bad_request"));
        }
        check("set=a%20b", Err("bad_set"));
        check("set=", Err("bad_set"));
    }
}
