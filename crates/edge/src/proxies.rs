//! Proxies that are trusted to report the address of a client.
//!
//! Every client can send `X-Forwarded-For`. Each proxy appends the address of its own peer to this header, so the
//! header is read from its end. **Invariant:** an address in the header counts only if a trusted proxy wrote it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use http::HeaderMap;
use thiserror::Error;

/// Maximum number of networks in a list. Every forwarded address is compared with all of them.
const NETWORKS_MAX: usize = 64;
/// Maximum number of proxies between a client and this server.
const PROXIES_MAX: usize = 16;
/// Spelling of the empty list.
const NOBODY: &str = "none";
/// Number of bits before the IPv4 address in an IPv4-mapped IPv6 address.
const MAPPED_BITS: u32 = 96;

/// Network, for example `10.0.0.0/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    /// Number of leading bits that all addresses of the network share.
    prefix: u32,
}

/// Error in a list of networks.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NetworkError {
    /// The text is not a network.
    #[error(
        "`{0}` is not a network: write 10.0.0.0/8 or 192.0.2.1, several with commas between, or `none` alone"
    )]
    Syntax(String),
    /// The text is an address in a network; contains the text and the network.
    #[error("`{0}` is an address in a network, which is written {1}")]
    Host(String, String),
    /// There are too many networks.
    #[error("there are more than {NETWORKS_MAX} networks")]
    TooMany,
}

/// Trusted proxies (default: those on this machine).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

impl Default for TrustedProxies {
    fn default() -> Self {
        Self(vec![
            Network { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 },
            Network { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 },
        ])
    }
}

impl FromStr for TrustedProxies {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        if text.trim() == NOBODY {
            return Ok(Self(Vec::new()));
        }
        let networks: Vec<Network> =
            text.split(',').map(|network| network.trim().parse()).collect::<Result<_, _>>()?;
        if networks.len() > NETWORKS_MAX {
            return Err(NetworkError::TooMany);
        }
        Ok(Self(networks))
    }
}

impl TrustedProxies {
    /// Whether no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Address of the client for whom `peer` sends a request with these headers: the last address that does not belong
    /// to a trusted proxy.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        let values = headers.get_all("x-forwarded-for").iter().rev();
        let forwarded = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
        for address in forwarded.take(PROXIES_MAX) {
            // This address is invalid, so no trusted proxy wrote it or the addresses before it.
            let Some(address) = parse(address) else { break };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// Parses an address with or without a port, as proxies write it.
fn parse(bytes: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                first(address, self.prefix) == self.address
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError::Syntax(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        if prefix > bits {
            return Err(wrong());
        }
        // Addresses are compared in their canonical form.
        let (address, prefix) = match (address.to_canonical(), prefix.checked_sub(MAPPED_BITS)) {
            (canonical @ IpAddr::V4(_), Some(prefix)) if address.is_ipv6() => (canonical, prefix),
            _ => (address, prefix),
        };
        match first(address, prefix) {
            first if first == address => Ok(Self { address, prefix }),
            first => Err(NetworkError::Host(text.to_owned(), format!("{first}/{prefix}"))),
        }
    }
}

/// First address of the network that consists of the first `prefix` bits of an address.
fn first(address: IpAddr, prefix: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(proxies: &TrustedProxies, peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_str(value).unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_of_a_trusted_proxy() {
        let by_default = TrustedProxies::default();
        let networks: TrustedProxies = "10.0.0.0/8, 192.0.2.1,2001:db8::/32".parse().unwrap();
        let mapped: TrustedProxies = "::ffff:10.0.0.0/104,::ffff:192.0.2.1".parse().unwrap();
        let nobody: TrustedProxies = "none".parse().unwrap();
        for (proxies, peer, forwarded, expect) in [
            (&by_default, "127.0.0.1", &[][..], "127.0.0.1"),
            (&by_default, "127.0.0.1", &["192.0.2.7"], "192.0.2.7"),
            (&by_default, "127.9.9.9", &["192.0.2.7"], "192.0.2.7"),
            (&by_default, "::1", &["198.51.100.1, 192.0.2.7"], "192.0.2.7"),
            (&by_default, "::ffff:127.0.0.1", &["::ffff:192.0.2.7"], "192.0.2.7"),
            (&by_default, "127.0.0.1", &["198.51.100.1", "192.0.2.7"], "192.0.2.7"),
            (&by_default, "127.0.0.1", &["192.0.2.7, 127.0.0.1"], "192.0.2.7"),
            (&by_default, "127.0.0.1", &["192.0.2.7:4711"], "192.0.2.7"),
            (&by_default, "127.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            (&by_default, "127.0.0.1", &["[2001:db8::7]"], "2001:db8::7"),
            (&networks, "10.1.2.3", &["192.0.2.7"], "192.0.2.7"),
            (&networks, "10.1.2.3", &["192.0.2.7, 192.0.2.1,10.0.0.9"], "192.0.2.7"),
            (&networks, "2001:db8:1::1", &["2001:db9::1"], "2001:db9::1"),
            (&mapped, "10.1.2.3", &["198.51.100.1, 192.0.2.7, 192.0.2.1"], "192.0.2.7"),
            (&mapped, "::ffff:10.1.2.3", &["::ffff:192.0.2.1"], "192.0.2.1"),
            (&mapped, "11.1.2.3", &["192.0.2.7"], "11.1.2.3"),
            (&nobody, "127.0.0.1", &["192.0.2.7"], "127.0.0.1"),
            (&nobody, "::1", &["192.0.2.7"], "::1"),
            // If all addresses belong to proxies, the farthest one is the client.
            (&networks, "10.1.2.3", &["10.0.0.1, 192.0.2.1"], "10.0.0.1"),
        ] {
            assert_eq!(client(proxies, peer, forwarded), expect, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn a_forged_header_changes_nothing() {
        let by_default = TrustedProxies::default();
        let networks: TrustedProxies = "10.0.0.0/8".parse().unwrap();
        let far = ["10.0.0.1,"; 100].concat();
        for (proxies, peer, forwarded, expect) in [
            // The header of an untrusted peer is ignored.
            (&by_default, "203.0.113.9", &["192.0.2.7"][..], "203.0.113.9"),
            (&by_default, "203.0.113.9", &["127.0.0.1"], "203.0.113.9"),
            (&by_default, "10.0.0.1", &["192.0.2.7"], "10.0.0.1"),
            (&by_default, "::ffff:203.0.113.9", &["192.0.2.7"], "203.0.113.9"),
            (&by_default, "::7f00:1", &["192.0.2.7"], "::7f00:1"),
            (&networks, "127.0.0.1", &["192.0.2.7"], "127.0.0.1"),
            (&networks, "11.0.0.1", &["192.0.2.7"], "11.0.0.1"),
            // Addresses before the one that a trusted proxy wrote are ignored.
            (&networks, "10.0.0.1", &["10.0.0.2, 192.0.2.7"], "192.0.2.7"),
            (&networks, "10.0.0.1", &["1.1.1.1", "10.0.0.2", "192.0.2.7, 10.0.0.3"], "192.0.2.7"),
            (&networks, "10.0.0.1", &["1.1.1.1, unknown"], "10.0.0.1"),
            (&networks, "10.0.0.1", &["1.1.1.1, unknown, 10.0.0.4"], "10.0.0.4"),
            (&networks, "10.0.0.1", &["1.1.1.1,"], "10.0.0.1"),
            (&networks, "10.0.0.1", &[""], "10.0.0.1"),
            (&networks, "10.0.0.1", &["1.1.1.1, 192.0.2.7 1.1.1.1"], "10.0.0.1"),
            (&networks, "10.0.0.1", &["1.1.1.1, 300.1.1.1"], "10.0.0.1"),
            // The header lists more proxies than allowed.
            (&networks, "10.0.0.1", &["1.1.1.1", far.trim_end_matches(',')], "10.0.0.1"),
        ] {
            assert_eq!(client(proxies, peer, forwarded), expect, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn a_list_has_networks_and_addresses() {
        let many = vec!["10.0.0.1"; NETWORKS_MAX + 1].join(",");
        for (text, part) in [
            ("", "is not a network"),
            ("10.0.0.0/8,", "is not a network"),
            ("10.0.0.0/33", "is not a network"),
            ("10.0.0.0/-1", "is not a network"),
            ("10.0.0.0/", "is not a network"),
            ("2001:db8::/129", "is not a network"),
            ("example.org", "is not a network"),
            ("10.1.2.3/8", "is written 10.0.0.0/8"),
            ("2001:db8::1/32", "is written 2001:db8::/32"),
            ("::ffff:10.1.2.3/104", "is written 10.0.0.0/8"),
            ("::ffff:10.1.2.3/95", "is written ::fffe:0:0/95"),
            ("none,10.0.0.1", "is not a network"),
            ("10.0.0.1,none", "`none` alone"),
            (many.as_str(), "more than 64"),
        ] {
            let error = text.parse::<TrustedProxies>().unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        for text in ["0.0.0.0/0", "::/0", "::ffff:0:0/96", "10.0.0.1/32", "::1/128", "10.0.0.1,::1"]
        {
            assert!(text.parse::<TrustedProxies>().is_ok(), "{text}");
        }
        let all: TrustedProxies = "0.0.0.0/0".parse().unwrap();
        assert_eq!(client(&all, "203.0.113.9", &["192.0.2.7"]), "192.0.2.7");
        assert_eq!(client(&all, "2001:db8::1", &["192.0.2.7"]), "2001:db8::1");
    }
}
