//! Warnings about application keys and passwords that leave this machine unencrypted.

use std::net::SocketAddr;
use std::sync::Once;

use sim::client::Target;

use crate::output::note;
use crate::settings::Settings;

/// Warnings about unencrypted traffic to and from a server with these settings, one sentence each.
///
/// A proxy is assumed to terminate TLS if `--public-url` is https and the server has no certificate, or if
/// `--trusted-proxies` is set.
pub(crate) fn of_server(settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_proxied = settings.public_url.as_ref().is_some_and(|url| url.starts_with("https://"))
        || settings.trusted_proxies.as_ref().is_some_and(|proxies| !proxies.is_empty());
    let listen = settings.listen();
    if !listen.ip().is_loopback() && !settings.is_https() && !is_proxied {
        warnings.push(format!(
            "application keys and passwords travel unencrypted to {listen}: set --tls-cert and --tls-key, or, if a \
             proxy terminates TLS, --public-url https://HOST"
        ));
    }
    if let Some(redis) = settings.redis_listen.filter(|redis| !redis.ip().is_loopback()) {
        warnings.push(format!(
            "application keys of Redis clients travel unencrypted to {redis}: listen on loopback, behind a TLS tunnel"
        ));
    }
    let servers = settings.nats.servers.as_deref().unwrap_or_default();
    // With certificate authorities, connections use TLS even if the addresses say `nats://`.
    let is_tls = settings.nats.tls_ca.is_some();
    if !is_tls && servers.contains('@') && servers.split(',').any(is_plain_and_far) {
        warnings.push(
            "the password of the NATS servers travels unencrypted: use tls:// addresses, or --nats-creds"
                .to_owned(),
        );
    }
    warnings
}

/// Whether the address of a NATS server is not loopback and has no TLS.
fn is_plain_and_far(server: &str) -> bool {
    let server = server.trim();
    let host = server.rsplit('@').next().unwrap_or_default();
    let host = host.strip_prefix("nats://").unwrap_or(host);
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_near = host.split(':').next() == Some("localhost")
        || host.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    !server.starts_with("tls://") && !is_near
}

/// Warns once on standard error if traffic from this process to `target` can be read in transit.
pub(crate) fn warn_of(target: &Target, what: &str) {
    static ONCE: Once = Once::new();
    if !target.is_confidential() {
        ONCE.call_once(|| {
            note!(
                "warning: {what} travels unencrypted to {}: use a --server with https://",
                target.authority()
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn a_server_warns_of_keys_and_passwords_that_others_can_read() {
        let everywhere = "--listen=0.0.0.0:1";
        for (arguments, expected) in [
            (&[][..], &[][..]),
            (&["--listen=127.0.0.2:1"], &[]),
            (&["--listen=[::1]:1"], &[]),
            (&[everywhere], &["unencrypted to 0.0.0.0:1"]),
            (&["--listen=[::]:1"], &["unencrypted to [::]:1"]),
            (&[everywhere, "--public-url=http://a.example"], &["unencrypted to 0.0.0.0:1"]),
            (&[everywhere, "--public-url=https://a.example"], &[]),
            (&[everywhere, "--trusted-proxies=10.0.0.1"], &[]),
            (&[everywhere, "--trusted-proxies=none"], &["unencrypted to 0.0.0.0:1"]),
            (&[everywhere, "--tls-self-signed"], &[]),
            (&[everywhere, "--tls-cert=a", "--tls-key=b"], &[]),
            (&["--redis-listen=127.0.0.1:1"], &[]),
            (&["--redis-listen=0.0.0.0:2", "--tls-self-signed"], &["unencrypted to 0.0.0.0:2"]),
            (&[everywhere, "--redis-listen=0.0.0.0:2"], &["0.0.0.0:1", "0.0.0.0:2"]),
            (&["--nats=nats://a:4222"], &[]),
            (&["--nats=nats://u:p@a:4222"], &["NATS servers travels"]),
            (&["--nats=nats://u:p@127.0.0.1:4222,nats://localhost:2"], &[]),
            (&["--nats=nats://u:p@127.0.0.1:4222,nats://b"], &["NATS servers travels"]),
            (&["--nats=nats://u:p@[::1]:4222,nats://[::1]"], &[]),
            (&["--nats=nats://u:p@[::2]"], &["NATS servers travels"]),
            (&["--nats=nats://u:p@a:4222", "--nats-tls-ca=ca.pem"], &[]),
            (&["--nats=tls://u:p@a:4222,tls://b"], &[]),
        ] {
            let line = Line::parse_from(["roost"].iter().chain(arguments));
            let found = of_server(&line.settings);
            assert_eq!(found.len(), expected.len(), "{arguments:?}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{arguments:?}: {found}");
            }
        }
    }
}
