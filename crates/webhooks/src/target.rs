//! URLs of receivers.

use std::fmt;

use http::Uri;
use http::uri::Scheme;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum length of a URL in bytes.
const BYTES_MAX: usize = 2_048;

/// URL of a receiver: `https://HOST/PATH`, or `http://` within a private network.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    uri: Uri,
    is_https: bool,
    /// Name or address, without the brackets of an IPv6 address.
    host: String,
    port: u16,
}

/// The text is not a URL of a receiver.
#[derive(Clone, Copy, Debug, Error)]
#[error("a URL is https://HOST/PATH or http://HOST/PATH, without user, password and fragment")]
pub struct TargetError;

impl Target {
    /// Parses a URL.
    ///
    /// # Errors
    /// If it has another form.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let uri: Uri = text.parse().map_err(|_| TargetError)?;
        // Its text has a path, also if `text` has a query without one.
        let uri: Uri = uri.to_string().parse().map_err(|_| TargetError)?;
        let is_https = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(TargetError),
        };
        let authority = uri.authority().ok_or(TargetError)?.as_str();
        let is_plain = text.len() <= BYTES_MAX && !authority.contains('@') && !text.contains('#');
        let host = uri.host().filter(|host| is_plain && !host.is_empty()).ok_or(TargetError)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((_, port)) => port.parse().ok().filter(|port| *port > 0).ok_or(TargetError)?,
            None if is_https => 443,
            None => 80,
        };
        Ok(Self { uri, is_https, host, port })
    }

    /// Whether requests are encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Value of the header `Host`.
    pub(crate) fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    pub(crate) fn path_and_query(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

/// Hides the path, which may contain a secret.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.authority())
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        Self::parse(&text)
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_a_host_and_no_password() {
        for (text, expect) in [
            ("https://a.example", Some(("a.example", 443, "/"))),
            ("https://a.example/in?x=1", Some(("a.example", 443, "/in?x=1"))),
            ("https://a.example?x=1", Some(("a.example", 443, "/?x=1"))),
            ("http://127.0.0.1:8080/", Some(("127.0.0.1", 8_080, "/"))),
            ("https://[::1]/x", Some(("::1", 443, "/x"))),
            ("https://[::1]:9/x", Some(("::1", 9, "/x"))),
            ("ftp://a.example", None),
            ("a.example", None),
            ("/path", None),
            ("https://", None),
            ("https://user@a.example", None),
            ("https://user:secret@a.example", None),
            ("https://a.example/#x", None),
            ("https://a.example:0", None),
            ("https://a.example:", None),
            ("https://a.example:65536", None),
            ("https://a.example/\r\nX: y", None),
            ("", None),
            (&format!("https://a.example/{}", "x".repeat(2_048)), None),
        ] {
            let parsed = Target::parse(text).ok();
            let found = parsed.as_ref().map(|url| (url.host(), url.port(), url.path_and_query()));
            assert_eq!(found, expect, "{text:.40}");
        }
    }
}
