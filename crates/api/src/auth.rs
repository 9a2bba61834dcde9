//! Client of a request: an application with a key, or a user with a token or a session (see [`crate::session`]). In
//! open mode every client on this machine is an application, except web pages of other origins.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri, Version};
use edge::{Access, Grant, KeyPermission, Permission, Repeated, Scope, bearer, only};

use crate::current_session::{CurrentSession, current};
use crate::error::ApiError;

/// The requirements of a route for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No key: the route returns no data of the feed.
    Nothing,
    /// Any application key, token or session: the requirement of unknown paths.
    Nowhere,
    /// An application key, a token or a session with this scope.
    Scope(Scope),
}

/// Application key of a request and the scope that the request needs.
pub(crate) type KeyInUse = (Grant, Scope);

/// Kind of client of a request.
pub(crate) enum Identity {
    /// An application with its key, or any client if the request needs no key.
    Application(Option<KeyInUse>),
    /// A user, or a client without valid credentials.
    Other,
}

/// Identifies the client of a request, or returns the reason for refusing it.
pub(crate) fn identify(
    access: &Access,
    needs: Needs,
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Identity, ApiError> {
    let host = the_host(version, headers)?;
    match access {
        Access::Open => from_this_machine(host, uri, headers).map(|()| Identity::Application(None)),
        Access::Keys(_) if needs == Needs::Nothing => Ok(Identity::Application(None)),
        Access::Keys(_) => match (grant(access, headers), needs) {
            (None, _) => Ok(Identity::Other),
            (Some(grant), Needs::Scope(scope)) if !grant.allows(scope) => {
                Err(ApiError::missing_scope(scope))
            }
            (Some(grant), Needs::Scope(scope)) => Ok(Identity::Application(Some((grant, scope)))),
            (Some(_), Needs::Nowhere | Needs::Nothing) => Ok(Identity::Application(None)),
        },
    }
}

/// Permission of a long request with a key, valid while the key is.
pub(crate) fn permission(access: &Access, (grant, scope): KeyInUse) -> Box<dyn Permission> {
    Box::new(KeyPermission { access: access.clone(), grant, scope })
}

/// Grant of the client with these headers; `None` without a valid key.
pub(crate) fn grant(access: &Access, headers: &HeaderMap) -> Option<Grant> {
    bearer(headers).map_or_else(|| access.without_key(), |key| access.admit(key))
}

/// Whether the response to a change may contain stored data. False for a key or token without the scope to read.
pub(crate) fn may_read(grant: Option<Grant>, parts: &Parts) -> bool {
    match current(parts) {
        Some(CurrentSession(session)) => session.allows(Scope::Read),
        None => grant.is_some_and(|grant| grant.allows(Scope::Read)),
    }
}

/// Returns the `Host` of a request; refuses several.
pub(crate) fn the_host(
    version: Version,
    headers: &HeaderMap,
) -> Result<Option<&HeaderValue>, ApiError> {
    match only(headers, &HOST) {
        Ok(None) if version >= Version::HTTP_11 => {
            Err(ApiError::bad_request("HTTP/1.1 needs a Host header"))
        }
        Ok(host) => Ok(host),
        Err(Repeated) => Err(ApiError::bad_request("there is more than one Host header")),
    }
}

/// Refuses requests from pages of other origins: pages that reach this machine by another name (`Host`), and requests
/// that the browser marks as cross-origin (`Origin`, `Sec-Fetch-Site`).
fn from_this_machine(
    host: Option<&HeaderValue>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let named = uri.authority().map(|authority| authority.as_str().as_bytes());
    let hosts = host.map(HeaderValue::as_bytes).into_iter().chain(named);
    if !hosts.into_iter().all(is_loopback) {
        return Err(ApiError::forbidden_origin(
            "in open mode the Host must be this machine's loopback",
        ));
    }
    let local_origin = |origin: &HeaderValue| {
        let origin = origin.as_bytes();
        let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        host.is_some_and(is_loopback)
    };
    if !headers.get_all(ORIGIN).iter().all(local_origin) {
        return Err(ApiError::forbidden_origin(
            "in open mode pages of other origins cannot send requests",
        ));
    }
    let own_site = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    if !headers.get_all("sec-fetch-site").iter().all(own_site) {
        return Err(ApiError::forbidden_origin(
            "in open mode pages of other sites cannot send requests",
        ));
    }
    Ok(())
}

/// Whether `host`, with or without a port, is the loopback: `localhost`, `127.x.y.z`, `[::1]`.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, rest)) => match rest.strip_prefix(':') {
                Some(port) => (name, Some(port)),
                None => return false,
            },
            None => return false,
        },
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return false;
    }
    if host.starts_with('[') {
        return name.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback());
    }
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_loopback() {
        for (host, expect) in [
            ("localhost", true),
            ("LocalHost:8998", true),
            ("127.0.0.1", true),
            ("127.9.8.7:80", true),
            ("[::1]", true),
            ("[::1]:8998", true),
            ("", false),
            ("localhost:", false),
            ("localhost:80x", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("evil.example:80", false),
            ("10.0.0.1", false),
            ("0.0.0.0", false),
            ("::1", false),
            ("[::1", false),
            ("[::1]x", false),
            ("[::2]", false),
            ("[127.0.0.1]", false),
            ("user@localhost", false),
        ] {
            assert_eq!(is_loopback(host.as_bytes()), expect, "{host:?}");
        }
        assert!(!is_loopback(b"\xff"));
    }
}
