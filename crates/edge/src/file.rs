//! Static files, prepared once in a plain and a compressed form, and shared by all responses.
//!
//! **Invariant:** a response holds no copy of a file, so a slow reader uses only the operating system's buffer of its
//! connection.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::etag::is_known;

const HEADERS: [(HeaderName, &str); 4] = [
    // Browsers cache the file but revalidate it, so a new version of the program is visible immediately.
    (CACHE_CONTROL, "no-cache"),
    (REFERRER_POLICY, "no-referrer"),
    (VARY, "accept-encoding"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// Name of the page for unknown addresses.
pub const MISSING_PAGE: &str = "missing.html";

/// Source of public files.
pub trait FileSource: std::fmt::Debug + Send + Sync {
    /// Finds a file by its name, a path without a leading slash. The first page has the empty name.
    fn find(&self, name: &str) -> Lookup;
}

/// Result of a look-up in a [`FileSource`].
pub enum Lookup {
    /// The file is in memory.
    Found(Arc<StaticFile>),
    /// The file does not exist.
    Absent,
    /// The file must be loaded, which may block.
    Load(Box<dyn FnOnce() -> Option<Arc<StaticFile>> + Send>),
}

/// File ready to be sent.
#[derive(Debug)]
pub struct StaticFile {
    media_type: HeaderValue,
    policy: Option<&'static str>,
    /// Text between the quotes of the entity tag.
    digest: String,
    plain: Bytes,
    gzip: Bytes,
}

impl StaticFile {
    /// Prepares a file. Compressing 1.5 MB takes 0.1 s. `policy` is the Content-Security-Policy of the file.
    #[must_use]
    pub fn new(media_type: &str, policy: Option<&'static str>, plain: Bytes) -> Self {
        let digest: String =
            Sha256::digest(&plain).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let Ok(gzip) = encoder.write_all(&plain).and_then(|()| encoder.finish()) else {
            unreachable!("writing to memory cannot fail");
        };
        let unknown = HeaderValue::from_static("application/octet-stream");
        let media_type = HeaderValue::try_from(media_type).unwrap_or(unknown);
        Self { media_type, policy, digest, plain, gzip: gzip.into() }
    }

    /// Makes the response to a request with the headers `asked`.
    #[must_use]
    pub fn answer(&self, asked: &HeaderMap) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(policy) = self.policy {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        }
        // The tag is weak, since the plain and the compressed form share it.
        if let Ok(tag) = HeaderValue::try_from(format!("W/\"{}\"", self.digest)) {
            headers.insert(ETAG, tag);
        }
        if is_known(asked, &self.digest) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(CONTENT_TYPE, self.media_type.clone());
        let gzip = mentions(asked, &ACCEPT_ENCODING, |coding| coding == "gzip");
        if gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *response.body_mut() = if gzip { &self.gzip } else { &self.plain }.clone();
        response
    }

    /// Size of the compressed file, in bytes.
    #[must_use]
    pub fn compressed_len(&self) -> usize {
        self.gzip.len()
    }
}

/// Whether the header contains a list with an element for which `is` returns true.
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

    #[test]
    fn answers_share_the_bytes_of_a_file() {
        let file = StaticFile::new("text/plain", None, Bytes::from(vec![7; 100_000]));
        for (coding, shared) in [("gzip", &file.gzip), ("identity", &file.plain)] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(coding));
            let body = file.answer(&headers).into_body();
            assert_eq!(body.as_ptr(), shared.as_ptr(), "{coding}");
        }
    }
}
