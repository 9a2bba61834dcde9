//! Fuzz targets of HTTP requests, up to the last byte of the response, and of lines of a batch.
//!
//! Requests use no transport: the router gets them as hyper would pass them.

use std::sync::LazyLock;

use ::http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use api::ApiOptions;
use axum::Router;
use axum::body::{Body, to_bytes};
use edge::Access;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::server;

/// Maximum length of a response that is read, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let router = api::router(server::node(), ApiOptions::new(Access::Open));
    let lines = concat!(
        r#"{"op":"register","handle":"ada"}"#,
        "\n",
        r#"{"op":"register","handle":"bob"}"#,
        "\n",
        r#"{"op":"follow","user":"0","other":"1"}"#,
        "\n",
        r#"{"op":"post","user":"1","text":"hello @ada"}"#,
        "\n",
        r#"{"op":"post_story","user":"0","text":"bye"}"#,
    );
    server::RUNTIME.block_on(post_lines(&router, lines.as_bytes()));
    router
});

/// Input: `METHOD target`, header lines, an empty line, and the body.
pub fn http(data: &[u8]) {
    let Some(request) = parse(data) else { return };
    // Create the router outside of the runtime, because that waits.
    let router = ROUTER.clone();
    server::RUNTIME.block_on(async {
        let response = router.oneshot(request).await.unwrap();
        read(response).await;
    });
}

/// Input: the lines of a batch.
pub fn batch(data: &[u8]) {
    let results = server::RUNTIME.block_on(post_lines(&ROUTER, data));
    let Some(results) = results else { return };
    let lines = data.split(|byte| *byte == b'\n').count();
    let results: Vec<&[u8]> = results.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(results.len() <= lines, "{} results for {lines} lines", results.len());
    for result in results {
        let result: Value = serde_json::from_slice(result).unwrap();
        assert!(result["ok"].is_boolean(), "{result}");
        assert_ne!(result["error"], "internal", "{result}");
    }
}

pub(crate) fn parse(data: &[u8]) -> Option<Request<Body>> {
    let split = data.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match split {
        Some(at) => (&data[..at], &data[at + 2..]),
        None => (data, &data[..0]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut request = Request::new(Body::from(body.to_vec()));
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = target.parse::<Uri>().ok().filter(|uri| uri.path().starts_with('/'))?;
    for line in lines {
        let at = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..at]).ok()?;
        request
            .headers_mut()
            .append(name, HeaderValue::from_bytes(line[at + 1..].trim_ascii()).ok()?);
    }
    let headers = request.headers_mut();
    headers.entry("host").or_insert(HeaderValue::from_static("localhost"));
    Some(request)
}

async fn post_lines(router: &Router, lines: &[u8]) -> Option<Vec<u8>> {
    let request = Request::post("/v1/batch")
        .header("host", "localhost")
        .header("content-type", "application/x-ndjson")
        .body(Body::from(lines.to_vec()));
    read(router.clone().oneshot(request.unwrap()).await.unwrap()).await
}

/// Reads a response to its end, unless it is a stream of events. Returns the body if the status is 200.
pub(crate) async fn read(response: Response<Body>) -> Option<Vec<u8>> {
    let (head, body) = response.into_parts();
    // Status 503 means too many requests, and 507 more samples than the memory allows.
    let is_limit = [503, 507].contains(&head.status.as_u16());
    assert!(!head.status.is_server_error() || is_limit, "{}", head.status);
    let kind = head.headers.get("content-type").cloned();
    let is =
        |text: &str| kind.as_ref().is_some_and(|kind| kind.as_bytes().starts_with(text.as_bytes()));
    if is("text/event-stream") {
        return None;
    }
    let body = to_bytes(body, RESPONSE_BYTES_MAX).await.unwrap();
    if is("application/json") && !body.is_empty() {
        let json: Value = serde_json::from_slice(&body).unwrap();
        assert!(!head.status.is_client_error() || json["error"].is_string(), "{json}");
    }
    (head.status == 200).then(|| body.to_vec())
}
