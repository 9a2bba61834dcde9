//! Files of the program, ready to be sent: made once, plain and compressed, and shared by all answers.
//!
//! **Invariant:** an answer holds no copy of a file, so what a slow reader takes is the operating system's
//! buffer of its connection.

use std::io::Write as _;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

const HEADERS: [(HeaderName, &str); 4] = [
    // Kept, but asked for again: a new version of the program shows at once.
    (CACHE_CONTROL, "no-cache"),
    (REFERRER_POLICY, "no-referrer"),
    (VARY, "accept-encoding"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// A file ready to be sent.
pub(crate) struct File {
    media_type: HeaderValue,
    policy: Option<&'static str>,
    tag: HeaderValue,
    plain: Bytes,
    gzip: Bytes,
}

impl File {
    /// Compresses a file, which takes 0.1 s for 1.5 MB. `policy` is what a document may do.
    pub(crate) fn new(media_type: &str, policy: Option<&'static str>, plain: Bytes) -> Self {
        let digest: String =
            Sha256::digest(&plain).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        // Weak, since one tag is for the plain and the compressed form.
        let Ok(tag) = HeaderValue::try_from(format!("W/\"{digest}\"")) else {
            unreachable!("hexadecimal digits are a header value");
        };
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let Ok(gzip) = encoder.write_all(&plain).and_then(|()| encoder.finish()) else {
            unreachable!("nothing fails to be written to memory");
        };
        let unknown = HeaderValue::from_static("application/octet-stream");
        let media_type = HeaderValue::try_from(media_type).unwrap_or(unknown);
        Self { media_type, policy, tag, plain, gzip: gzip.into() }
    }

    /// The answer to whoever asked with these headers.
    pub(crate) fn answer(&self, asked: &HeaderMap) -> Response {
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(policy) = self.policy {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        }
        headers.insert(ETAG, self.tag.clone());
        if mentions(asked, &IF_NONE_MATCH, |tag| tag.as_bytes() == self.tag.as_bytes()) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(CONTENT_TYPE, self.media_type.clone());
        let gzip = mentions(asked, &ACCEPT_ENCODING, |coding| coding == "gzip");
        if gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *response.body_mut() = Body::from(if gzip { &self.gzip } else { &self.plain }.clone());
        response
    }

    #[cfg(test)]
    pub(crate) fn compressed_len(&self) -> usize {
        self.gzip.len()
    }
}

/// Whether a header's list has such an element.
fn mentions(headers: &HeaderMap, name: &HeaderName, is: impl Fn(&str) -> bool) -> bool {
    let lists = headers.get_all(name).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|element| is(element.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_headers_are_read_by_element() {
        let check = |value: &'static str, expect: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            let found = mentions(&headers, &ACCEPT_ENCODING, |coding| coding == "gzip");
            assert_eq!(found, expect, "{value:?}");
        };
        check("gzip", true);
        check("br, gzip ,deflate", true);
        check("", false);
        check("gzipped, br", false);
    }

    #[tokio::test]
    async fn answers_share_the_bytes_of_a_file() {
        use http_body_util::BodyExt as _;
        let file = File::new("text/plain", None, Bytes::from(vec![7; 100_000]));
        for (coding, shared) in [("gzip", &file.gzip), ("identity", &file.plain)] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(coding));
            let body = file.answer(&headers).into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body.as_ptr(), shared.as_ptr(), "{coding}");
        }
    }
}
