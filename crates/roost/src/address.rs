//! Addresses as users write them: `127.0.0.1:8998`, `[::1]:8998`, `localhost:8998`.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::Context as _;

/// Resolves `HOST:PORT`, preferring the first IPv4 address of a name. May block on the name look-up.
///
/// # Errors
/// If the text is not an address, or the name has none.
pub(crate) fn resolve(text: &str) -> anyhow::Result<SocketAddr> {
    let is_host_and_port = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && port.parse::<u16>().is_ok()
            && (!host.contains(':') || host.ends_with(']'))
    });
    anyhow::ensure!(is_host_and_port, "an address looks like 127.0.0.1:8998 or localhost:8998");
    let found = text.to_socket_addrs().with_context(|| format!("cannot look up {text}"))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().with_context(|| format!("{text} has no address"))
}

/// Checks a server's public URL: scheme and host, optionally a port.
///
/// # Errors
/// If the text has another form.
pub(crate) fn public_url(text: &str) -> anyhow::Result<String> {
    let text = text.trim_end_matches('/');
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let host = host.filter(|host| !host.is_empty() && host.bytes().all(is_plain));
    host.context("the public URL is https://HOST or http://HOST, without a path")?;
    Ok(text.to_owned())
}

/// Whether a server with this public URL may make browsers require https (HSTS). False for IP addresses and localhost,
/// where other programs serve plain http on other ports.
pub(crate) fn is_https_only(public_url: &str) -> bool {
    let Some(host) = public_url.strip_prefix("https://") else { return false };
    let name = host.split(':').next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_address = host.starts_with('[') || last.bytes().all(|byte| byte.is_ascii_digit());
    !is_address && !last.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for (text, expect) in [
            ("127.0.0.1:8998", Some("127.0.0.1:8998")),
            ("[::1]:0", Some("[::1]:0")),
            ("localhost:8998", Some("127.0.0.1:8998")),
            ("localhost", None),
            ("localhost:", None),
            ("localhost:65536", None),
            (":8998", None),
            ("::1:8998", None),
            ("http://localhost:8998", None),
            ("", None),
        ] {
            let found = resolve(text).ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        }
    }
    #[test]
    fn a_public_url_is_a_scheme_and_a_host() {
        for (text, expect) in [
            ("https://social.example", Some("https://social.example")),
            ("https://social.example/", Some("https://social.example")),
            ("http://[::1]:8998", Some("http://[::1]:8998")),
            ("social.example", None),
            ("https://social.example/path", None),
            ("https://a@social.example", None),
            ("https://", None),
            ("ftp://social.example", None),
        ] {
            assert_eq!(public_url(text).ok().as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn https_alone_is_for_names_of_other_machines() {
        for (url, expect) in [
            ("https://social.example", true),
            ("https://social.example:8443", true),
            ("http://social.example", false),
            ("https://localhost:8443", false),
            ("https://social.localhost", false),
            ("https://127.0.0.1", false),
            ("https://[::1]:8443", false),
        ] {
            assert_eq!(is_https_only(url), expect, "{url}");
        }
    }
}
