//! Parameters of a request, from the query, a form, a multipart form or JSON.

use axum::body::HttpBody as _;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::bodies::ReadBody;
use crate::error::ApiError;
use crate::multipart::{self, Part};
use crate::state::{Shared, client_address};
use crate::tokens::Access;

/// Maximum number of parameters: more than the ids in the longest URL that Mastodon accepts, of 10 KiB.
const FIELDS_MAX: usize = 512;
/// Maximum number of objects that are read from a list: more than any list may have.
const OBJECTS_MAX: usize = 256;
/// Maximum length of a parameter name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Maximum nesting of objects and lists in a JSON object.
const DEPTH_MAX: usize = 4;

/// Parameters in the order of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Parses the parameters of a query.
    pub(crate) fn of_query(query: &str) -> Result<Self, ApiError> {
        let fields = Self::of_pairs(form_urlencoded::parse(query.as_bytes()).into_owned());
        fields.map_err(|_| ApiError::too_long("There are too many parameters"))
    }

    fn of_pairs(pairs: impl Iterator<Item = (String, String)>) -> Result<Self, ApiError> {
        let fields: Vec<_> = pairs.take(FIELDS_MAX + 1).collect();
        if fields.len() > FIELDS_MAX {
            return Err(ApiError::invalid_request("there are too many parameters"));
        }
        Ok(Self(fields))
    }

    /// Value of a parameter that may be given once, as OAuth demands; `None` if it is missing or empty.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.0.iter().filter(|(given, _)| given == name).map(|(_, value)| value);
        match (values.next(), values.next()) {
            (value, None) => Ok(value.map(String::as_str).filter(|value| !value.is_empty())),
            (_, Some(_)) => {
                Err(ApiError::invalid_request(format!("{name} is given more than once")))
            }
        }
    }

    /// Value of a required parameter that may be given once.
    pub(crate) fn need(&self, name: &str) -> Result<&str, ApiError> {
        let missing = || ApiError::invalid_request(format!("{name} is missing"));
        self.one(name)?.ok_or_else(missing)
    }

    /// Whether a parameter is true. False if it is missing or empty.
    pub(crate) fn is_true(&self, name: &str) -> Result<bool, ApiError> {
        Ok(self.flag(name)?.unwrap_or(false))
    }

    /// Value of a Boolean parameter; `None` if it is missing or empty.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        Ok(self.one(name)?.and_then(boolean))
    }

    /// Whether a parameter `name`, or a part of it such as `name[part]`, has a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, value)| {
            let part = given
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('['));
            part && !value.is_empty()
        })
    }

    /// List of objects with the parts `names`; other parts are ignored. `None` if the request has no such parameter.
    /// Objects are written `name[0][part]`, with any number or word as the index, or `name[][part]`, where a repeated
    /// part begins the next object.
    pub(crate) fn objects<const N: usize>(
        &self,
        name: &str,
        parts: [&str; N],
    ) -> Option<Vec<[Option<&str>; N]>> {
        let mut found: Vec<(&str, [Option<&str>; N])> = Vec::new();
        let mut is_given = false;
        for (given, value) in &self.0 {
            let Some(inner) = inner(given, name) else { continue };
            is_given = true;
            let Some((key, part)) = inner.split_once("][") else { continue };
            let at = parts.iter().position(|name| *name == part);
            // Apps also send parts that the server ignores, such as the time at which a link was verified.
            let Some(at) = at else { continue };
            let is_full = found.len() >= OBJECTS_MAX;
            let known = found.iter_mut().rev().find(|(other, _)| *other == key);
            let known = known
                .filter(|(_, parts)| !key.is_empty() || parts.get(at).is_some_and(Option::is_none));
            let parts = match known {
                Some((_, parts)) => parts,
                None if is_full => break,
                None => {
                    found.push((key, [None; N]));
                    let Some((_, parts)) = found.last_mut() else { continue };
                    parts
                }
            };
            parts.get_mut(at).into_iter().for_each(|part| *part = Some(value));
        }
        is_given.then(|| found.into_iter().map(|(_, parts)| parts).collect())
    }

    /// First value of a parameter, which may be empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let first = self.0.iter().find(|(given, _)| given == name);
        first.map(|(_, value)| value.as_str())
    }

    /// Parameters with these names, in the order of the request.
    pub(crate) fn of_names<'f>(
        &'f self,
        names: &'f [&str],
    ) -> impl Iterator<Item = (&'f str, &'f str)> {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        pairs.filter(|(name, _)| names.contains(name))
    }

    /// All values of a parameter, given as `name` or `name[]`.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_name = move |given: &str| given.strip_suffix("[]").unwrap_or(given) == name;
        self.0.iter().filter(move |(given, _)| is_name(given)).map(|(_, value)| value.as_str())
    }

    /// Reads a JSON object of texts, numbers, Booleans, and lists of them. Nested objects become names as in a form:
    /// `{"a": {"b": 1}}` is `a[b]=1`.
    pub(crate) fn of_json(bytes: &[u8]) -> Result<Self, ApiError> {
        let wrong = || ApiError::invalid_request("the body is not a JSON object of simple values");
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|_| wrong())?;
        let Value::Object(object) = value else { return Err(wrong()) };
        let mut fields = Vec::new();
        for (name, value) in object {
            flatten(name, value, 0, &mut fields).ok_or_else(wrong)?;
        }
        Self::of_pairs(fields.into_iter())
    }

    /// Reads a multipart form.
    fn of_multipart(body: &[u8], content_type: &str) -> Result<Self, ApiError> {
        let parts = parts_of(body, content_type)?;
        Self::of_parts(body, parts.into_iter())
    }

    /// Reads parts of a multipart form.
    pub(crate) fn of_parts(
        body: &[u8],
        parts: impl Iterator<Item = Part>,
    ) -> Result<Self, ApiError> {
        let pairs = parts.map(|part| {
            let text = String::from_utf8_lossy(body.get(part.content).unwrap_or_default());
            // In multipart forms, browsers send line breaks of a text as CRLF.
            (part.name, text.replace("\r\n", "\n"))
        });
        Self::of_pairs(pairs)
    }

    /// Appends the parameters of another part of the request.
    pub(crate) fn and(mut self, Self(mut more): Self) -> Result<Self, ApiError> {
        self.0.append(&mut more);
        Self::of_pairs(self.0.into_iter())
    }
}

/// Parses a multipart form: at most one part more than allowed, so that an excess is noticed.
pub(crate) fn parts_of(body: &[u8], content_type: &str) -> Result<Vec<Part>, ApiError> {
    let no_boundary = || ApiError::invalid_request("the multipart body has no boundary");
    let boundary = multipart::boundary(content_type).ok_or_else(no_boundary)?;
    let malformed = || ApiError::invalid_request("the multipart body is malformed");
    multipart::parts(body, &boundary, FIELDS_MAX + 1).ok_or_else(malformed)
}

/// `Content-Type` of a request, and its media type in lower case.
pub(crate) fn content_type(headers: &HeaderMap) -> (String, String) {
    let whole = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let whole = whole.unwrap_or_default().to_owned();
    let kind = whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (whole, kind)
}

/// Media type of a form with files.
pub(crate) const MULTIPART: &str = "multipart/form-data";

/// The `x` of a parameter `name[x]`.
fn inner<'f>(given: &'f str, name: &str) -> Option<&'f str> {
    given.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')
}

/// Appends the values of a parameter, at most one more than allowed, since a few bytes of JSON could become many names.
/// `None` if a name is too long, or objects are nested too deeply.
fn flatten(
    name: String,
    value: Value,
    depth: usize,
    fields: &mut Vec<(String, String)>,
) -> Option<()> {
    if name.len() > NAME_BYTES_MAX || depth > DEPTH_MAX {
        return None;
    }
    if fields.len() > FIELDS_MAX {
        return Some(());
    }
    match value {
        Value::Null => {}
        // An empty list is written as in a form.
        Value::Array(values) if values.is_empty() => fields.push((format!("{name}[]"), "".into())),
        Value::Object(values) if values.is_empty() => fields.push((format!("{name}[]"), "".into())),
        Value::String(text) => fields.push((name, text)),
        Value::Bool(_) | Value::Number(_) => fields.push((name, value.to_string())),
        Value::Array(values) => {
            for (number, value) in values.into_iter().enumerate() {
                let name = match value {
                    Value::Object(_) => format!("{name}[{number}]"),
                    Value::Array(_) => return None,
                    _ => name.clone(),
                };
                flatten(name, value, depth + 1, fields)?;
            }
        }
        Value::Object(values) => {
            for (inner, value) in values {
                flatten(format!("{name}[{inner}]"), value, depth + 1, fields)?;
            }
        }
    }
    Some(())
}

/// Texts that mean false, as in Rails. All other texts mean true, even `False`.
const FALSE: [&str; 7] = ["0", "f", "F", "false", "FALSE", "off", "OFF"];

/// Parses a Boolean parameter; `None` if the text is empty.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    (!text.is_empty()).then(|| !FALSE.contains(&text))
}

/// Parameters of a route of the API, from the query and the body. Some clients send a body with `GET`.
pub(crate) struct Params(pub(crate) Fields);

impl FromRequest<Shared> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, ApiError> {
        let query = request.uri().query().unwrap_or_default();
        let fields = Fields::of_query(query)?;
        if request.body().is_end_stream() {
            return Ok(Self(fields));
        }
        fields.and(Fields::from_request(request, state).await?).map(Self)
    }
}

/// Reads the body of a request. The body is counted until the result is dropped.
pub(crate) async fn read_body(request: Request, state: &Shared) -> Result<ReadBody, ApiError> {
    let address = state.limiter.address(client_address(request.extensions()));
    // A client with only an app's own token counts as a guest, because any client can get such a token.
    let user = request.extensions().get::<Access>().and_then(|access| access.user);
    Ok(state.bodies.read(address, user, request.into_body()).await?)
}

impl FromRequest<Shared> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, ApiError> {
        let access = request.extensions().get::<Access>().copied();
        let (content_type, kind) = content_type(request.headers());
        let body = read_body(request, state).await;
        // Only a file makes a form this long. The error is 422 instead of 413, because apps show only the reason of a
        // 422.
        let of_form = |error: ApiError| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE if kind == MULTIPART => {
                ApiError::not_supported("files here, and reads no form above 64 KiB")
            }
            _ => error,
        };
        let read = body.map_err(of_form)?;
        let bytes = read.body.bytes();
        // The token may have ended while the body arrived.
        if let Some(access) = access {
            state.confirm(&access).await?;
        }
        match kind.as_str() {
            "application/json" => Self::of_json(bytes),
            MULTIPART => Self::of_multipart(bytes, &content_type),
            "" | "application/x-www-form-urlencoded" => {
                Self::of_pairs(form_urlencoded::parse(bytes).into_owned())
            }
            _ => Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "The body must be a form, a multipart form or JSON",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_from_queries_and_json() {
        let query = Fields::of_query("a=1&b%5B%5D=x&b[]=y&empty=&twice=1&twice=2").unwrap();
        let json = br#"{"a": 1, "b": ["x", "y"], "empty": "", "n": null, "yes": true}"#;
        let json = Fields::of_json(json).unwrap();
        for fields in [&query, &json] {
            assert_eq!(fields.one("a").unwrap(), Some("1"));
            assert_eq!(fields.all("b").collect::<Vec<_>>(), ["x", "y"]);
            assert_eq!(fields.one("empty").unwrap(), None);
            assert_eq!(fields.one("missing").unwrap(), None);
            assert!(fields.need("missing").is_err());
        }
        assert!(json.is_true("yes").unwrap() && !json.is_true("n").unwrap());
        assert!(query.one("twice").is_err());
        let deep = r#"{"a": {"b": [1, {"c": "x"}]}, "d": []}"#;
        let deep = Fields::of_json(deep.as_bytes()).unwrap();
        assert_eq!(deep.one("a[b]").unwrap(), Some("1"));
        assert_eq!(deep.one("a[b][1][c]").unwrap(), Some("x"));
        assert_eq!(deep.objects("d", ["x"]), Some(vec![]), "an empty list");
        assert_eq!(deep.objects("e", ["x"]), None);
        assert!(!deep.has("d"));
        for bad in
            ["[]", "1", r#"{"a":[[]]}"#, "{", "\"x\"", r#"{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}"#]
        {
            assert!(Fields::of_json(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Fields::of_query(&"a=1&".repeat(FIELDS_MAX + 1)).is_err());
    }

    #[test]
    fn every_text_is_true_but_those_that_rails_takes_for_false() {
        for (query, expect) in [
            ("true", Some(true)),
            ("True", Some(true)),
            ("TRUE", Some(true)),
            ("t", Some(true)),
            ("1", Some(true)),
            ("on", Some(true)),
            ("yes", Some(true)),
            ("2", Some(true)),
            ("-1", Some(true)),
            ("0.0", Some(true)),
            ("%20", Some(true)),
            ("False", Some(true)),
            ("no", Some(true)),
            ("null", Some(true)),
            ("false", Some(false)),
            ("FALSE", Some(false)),
            ("f", Some(false)),
            ("F", Some(false)),
            ("off", Some(false)),
            ("OFF", Some(false)),
            ("0", Some(false)),
            ("", None),
        ] {
            let fields = Fields::of_query(&format!("x={query}")).unwrap();
            assert_eq!(fields.flag("x").unwrap(), expect, "{query}");
            assert_eq!(fields.is_true("x").unwrap(), expect == Some(true), "{query}");
        }
        for (json, expect) in [
            ("true", Some(true)),
            ("1", Some(true)),
            ("\"True\"", Some(true)),
            ("false", Some(false)),
            ("0", Some(false)),
            ("\"FALSE\"", Some(false)),
            ("null", None),
            ("\"\"", None),
        ] {
            let fields = Fields::of_json(format!("{{\"x\":{json}}}").as_bytes()).unwrap();
            assert_eq!(fields.flag("x").unwrap(), expect, "{json}");
        }
    }

    #[test]
    fn a_long_name_of_many_values_is_refused() {
        let many = |name: &str, values: usize| {
            let values = vec!["0"; values].join(",");
            Fields::of_json(format!("{{\"{name}\":[{values}]}}").as_bytes())
        };
        assert!(many("a", FIELDS_MAX).is_ok());
        assert!(many("a", FIELDS_MAX + 1).is_err());
        assert!(many(&"a".repeat(NAME_BYTES_MAX), 1).is_ok());
        assert!(many(&"a".repeat(NAME_BYTES_MAX + 1), 1).is_err());
    }

    #[test]
    fn parameters_are_read_from_multipart_forms() {
        let part = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
        let read =
            |body: String| Fields::of_multipart(body.as_bytes(), "multipart/form-data; boundary=x");
        assert_eq!(read(format!("{part}--x--")).unwrap().one("a").unwrap(), Some("1"));
        assert!(read(part.to_owned()).is_err());
        assert!(read(format!("{}--x--", part.repeat(FIELDS_MAX))).is_ok());
        assert!(read(format!("{}--x--", part.repeat(FIELDS_MAX + 1))).is_err());
    }
}
