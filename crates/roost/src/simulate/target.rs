//! URL of `--server`, and the application key for it.

use std::path::Path;

use anyhow::Context as _;
use sim::client::Target;

use crate::address::resolve;
use crate::exit::Exit;
use crate::unencrypted;

/// Environment variable with the application key of the server that this process calls. It is not `ROOST_KEY`: a user
/// who runs both in one shell would otherwise send the key of one server to another.
pub(crate) const SERVER_KEY: &str = "ROOST_SERVER_KEY";

/// Reads the application key for a server from the environment. Warns if the connection would expose the key.
pub(crate) fn key(target: &Target) -> Option<String> {
    let key = std::env::var(SERVER_KEY).ok()?;
    unencrypted::warn_of(target, "the application key");
    Some(key)
}

/// Parses `http://HOST[:PORT]`, `https://HOST[:PORT]` or `HOST:PORT`, or several of them for the nodes of a cluster,
/// separated by commas. `ca` is a PEM file of the trusted authorities for `https`.
///
/// # Errors
/// If a URL has another form, its host has no address, or the authorities cannot be read.
pub(crate) fn parse(urls: &str, ca: Option<&Path>) -> anyhow::Result<Target> {
    let nodes = urls.split(',').map(|url| parse_one(url.trim(), ca));
    let nodes = nodes.collect::<anyhow::Result<Vec<_>>>().map_err(Exit::setting)?;
    Ok(Target::cluster(&nodes))
}

fn parse_one(url: &str, ca: Option<&Path>) -> anyhow::Result<Target> {
    let (host, port) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(host), _) => (host, Some(80)),
        (_, Some(host)) => (host, Some(443)),
        _ => (url, None),
    };
    let host = host.strip_suffix('/').unwrap_or(host);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let authority = match port {
        Some(port) if !has_port => format!("{host}:{port}"),
        _ => host.to_owned(),
    };
    let wrong = || {
        format!("the server {url} is wrong: it looks like http://127.0.0.1:8998 or localhost:8998")
    };
    let target = Target::new(resolve(&authority).with_context(wrong)?, &authority);
    if port != Some(443) {
        anyhow::ensure!(ca.is_none(), "--ca needs a --server with https://");
        return Ok(target);
    }
    let name = authority.rsplit_once(':').map_or(authority.as_str(), |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let roots = || match ca {
        Some(file) => format!("cannot use {}", file.display()),
        None => "cannot use https".to_owned(),
    };
    target.over_tls(name, ca).with_context(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_url_or_a_host_and_port() {
        for (url, expect) in [
            ("http://127.0.0.1:8998", Some("http://127.0.0.1:8998 (127.0.0.1:8998)")),
            ("http://127.0.0.1:8998/", Some("http://127.0.0.1:8998 (127.0.0.1:8998)")),
            ("http://127.0.0.1", Some("http://127.0.0.1:80 (127.0.0.1:80)")),
            ("http://[::1]", Some("http://[::1]:80 ([::1]:80)")),
            ("127.0.0.1:8998", Some("http://127.0.0.1:8998 (127.0.0.1:8998)")),
            ("localhost:8998", Some("http://localhost:8998 (127.0.0.1:8998)")),
            (
                "http://127.0.0.1:1, localhost:2",
                Some("http://127.0.0.1:1 (127.0.0.1:1), http://localhost:2 (127.0.0.1:2)"),
            ),
            ("localhost:1,", None),
            ("localhost", None),
            ("http://127.0.0.1:port", None),
            ("http://127.0.0.1:8998/v1", None),
            ("ftp://127.0.0.1:8998", None),
        ] {
            let target = parse(url, None).ok().map(|target| format!("{target:?}"));
            assert_eq!(target.as_deref(), expect, "{url}");
        }
        let file = Path::new("no/such/file");
        let error = format!("{:#}", parse("https://localhost:1", Some(file)).unwrap_err());
        assert!(error.contains("no/such/file"), "{error}");
        assert!(parse("http://localhost:1", Some(file)).is_err());
    }
}
