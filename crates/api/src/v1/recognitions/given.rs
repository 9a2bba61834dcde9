//! Samples in requests: text or numbers in JSON, plain text, images.

use std::borrow::Cow;
use std::fmt;

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use edge::RequestMemory;
use knn::{BITS, BYTES, Bits};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use crate::drawing;
use crate::error::ApiError;
use crate::input::{given, media_type, object};

/// Maximum number of samples of one request.
pub(crate) const SAMPLES_MAX: usize = 1_000;
/// Number of characters of 128 bytes in base64, with padding.
const BASE64_CHARS: usize = BYTES.div_ceil(3) * 4;

/// A sample in JSON. An invalid sample is not a JSON error, so its reason is stored separately.
#[derive(PartialEq)]
pub(crate) struct Given(pub(crate) Result<Bits, Cow<'static, str>>);

/// The drawings of a request.
pub(super) enum Asked {
    One(Bits),
    /// The drawing of an image.
    Drawn(Bits),
    Many(Vec<Bits>),
}

/// Format of a request body.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Json,
    Text,
    Image,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default, deserialize_with = "given")]
    sample: Option<Given>,
    #[serde(default, deserialize_with = "given")]
    samples: Option<List>,
}

/// Samples of a request, or the reason why they are refused.
struct List(Result<Vec<Bits>, Cow<'static, str>>);

impl Asked {
    pub(super) fn all(&self) -> &[Bits] {
        match self {
            Self::One(sample) | Self::Drawn(sample) => std::slice::from_ref(sample),
            Self::Many(samples) => samples,
        }
    }
}

impl Kind {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let given = media_type(headers);
        let is = |known: &str| given.eq_ignore_ascii_case(known);
        if is("application/json") {
            Ok(Self::Json)
        } else if is("text/plain") {
            Ok(Self::Text)
        } else if given.get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case("image/")) {
            // The format is detected from the bytes, because clients do not always know it.
            Ok(Self::Image)
        } else {
            let known = "application/json, text/plain, image/png or image/jpeg";
            Err(ApiError::unsupported_media_type(known))
        }
    }

    /// Parses the drawings in the body. May take long for an image or a large body.
    pub(super) fn parse(self, body: &[u8], memory: &RequestMemory) -> Result<Asked, ApiError> {
        match self {
            Self::Json => json(body),
            Self::Text => text(body),
            Self::Image => image(body, memory).map(Asked::Drawn),
        }
    }
}

fn json(body: &[u8]) -> Result<Asked, ApiError> {
    match object(body)? {
        Body { sample: Some(Given(sample)), samples: None } => {
            sample.map(Asked::One).map_err(|why| ApiError::bad_sample(why).at("sample"))
        }
        Body { sample: None, samples: Some(List(samples)) } => {
            samples.map(Asked::Many).map_err(|why| ApiError::bad_sample(why).at("samples"))
        }
        _ => Err(ApiError::bad_json("give either sample or samples")),
    }
}

/// Parses samples that are separated by empty lines. A single sample is not a list.
fn text(body: &[u8]) -> Result<Asked, ApiError> {
    let body = str::from_utf8(body).map_err(|_| ApiError::bad_request("the text is not UTF-8"))?;
    let mut samples = Vec::new();
    let mut rest = body.trim();
    loop {
        let (sample, after) = paragraph(rest);
        let read = parse(sample).map_err(|why| in_list(samples.len(), &why));
        samples.push(read.map_err(ApiError::bad_sample)?);
        rest = after.trim_start();
        if rest.is_empty() {
            break;
        }
        if samples.len() == SAMPLES_MAX {
            return Err(ApiError::bad_sample(wrong_count()));
        }
    }
    Ok(match samples.as_slice() {
        [one] => Asked::One(*one),
        _ => Asked::Many(samples),
    })
}

/// Splits at the first empty line.
fn paragraph(text: &str) -> (&str, &str) {
    let ends = text.match_indices('\n').find(|(at, _)| {
        let after = text.get(at + 1..).unwrap_or_default();
        after.trim_start_matches([' ', '\t', '\r']).starts_with('\n')
    });
    text.split_at(ends.map_or(text.len(), |(at, _)| at))
}

fn image(body: &[u8], memory: &RequestMemory) -> Result<Bits, ApiError> {
    let mut held = memory.reserve(drawing::opening_bytes(body))?;
    let image = drawing::open(body).map_err(|error| ApiError::bad_image(error.to_string()))?;
    let decoding = usize::try_from(image.bytes()).map_err(|_| ApiError::beyond_memory())?;
    let bytes = held.bytes() + decoding;
    memory.grow(&mut held, bytes)?;
    image.normalize().map_err(|error| ApiError::bad_image(error.to_string()))
}

/// Parses a sample: 1,024 digits 0 and 1, 256 hexadecimal digits, or 128 bytes in base64.
fn parse(text: &str) -> Result<Bits, Cow<'static, str>> {
    let spaced = text.bytes().any(|byte| byte.is_ascii_whitespace());
    let text = match spaced {
        true => Cow::Owned(text.split_ascii_whitespace().collect::<String>()),
        false => Cow::Borrowed(text),
    };
    if text.len() != BASE64_CHARS {
        return text.parse().map_err(|error: knn::BitsError| {
            format!("{error}; {BASE64_CHARS} characters are base64").into()
        });
    }
    let mut bytes = [0; BYTES];
    match BASE64_STANDARD.decode_slice(&*text, &mut bytes) {
        Ok(BYTES) => Ok(Bits::from_bytes(&bytes)),
        Ok(_) => Err("this base64 is not 128 bytes".into()),
        Err(error) => Err(format!("this is not base64: {error}").into()),
    }
}

fn in_list(place: usize, why: &str) -> Cow<'static, str> {
    format!("sample {}: {why}", place + 1).into()
}

fn wrong_count() -> String {
    format!("a request has 1 to {SAMPLES_MAX} samples")
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfGiven;
        impl<'de> Visitor<'de> for OfGiven {
            type Value = Given;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sample: a string, or an array of 1024 numbers 0 and 1")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Given, E> {
                Ok(Given(parse(text)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Given, A::Error> {
                let (mut found, mut wrong, mut bits) = (0, None, [false; BITS]);
                while let Some(number) = numbers.next_element::<u64>()? {
                    if number > 1 {
                        wrong.get_or_insert(number);
                    }
                    if let Some(bit) = bits.get_mut(found) {
                        *bit = number == 1;
                    }
                    found += 1;
                }
                Ok(Given(match wrong {
                    _ if found != BITS => {
                        Err(format!("{found} numbers; a sample has {BITS}").into())
                    }
                    Some(wrong) => Err(format!("{wrong} is neither 0 nor 1").into()),
                    None => Ok(Bits::from_fn(|at| bits.get(at).is_some_and(|bit| *bit))),
                }))
            }
        }
        deserializer.deserialize_any(OfGiven)
    }
}

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfList;
        impl<'de> Visitor<'de> for OfList {
            type Value = List;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of samples")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List, A::Error> {
                let mut samples = Vec::new();
                while samples.len() < SAMPLES_MAX {
                    match list.next_element()? {
                        Some(Given(Ok(bits))) => samples.push(bits),
                        Some(Given(Err(why))) => {
                            let why = in_list(samples.len(), &why);
                            return rest_of(list).map(|_| List(Err(why)));
                        }
                        None if samples.is_empty() => return Ok(List(Err(wrong_count().into()))),
                        None => return Ok(List(Ok(samples))),
                    }
                }
                let more = rest_of(list)?;
                Ok(List(if more { Err(wrong_count().into()) } else { Ok(samples) }))
            }
        }
        deserializer.deserialize_seq(OfList)
    }
}

/// Reads and discards the rest of a list. Returns whether there was anything.
fn rest_of<'de, A: SeqAccess<'de>>(mut list: A) -> Result<bool, A::Error> {
    let mut any = false;
    while list.next_element::<IgnoredAny>()?.is_some() {
        any = true;
    }
    Ok(any)
}
