//! Addresses to which requests may be sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks by which an address is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Address of a server on the Internet.
    Public,
    /// Address of this machine or of a private network.
    Private,
    /// Address without a server that webhooks may call: unspecified, multicast, reserved, for documentation, or
    /// link-local, where clouds serve the credentials of a machine.
    Never,
}

/// Private IPv4 networks: first address and number of leading bits.
const PRIVATE_V4: [(Ipv4Addr, u32); 5] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// IPv4 networks that are neither public nor private, from the IANA registry of special-purpose addresses: this
/// network, link-local, protocol assignments, documentation, 6to4 relays, benchmarks, multicast and reserved.
const NEVER_V4: [(Ipv4Addr, u32); 10] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Private IPv6 networks: loopback and unique local.
const PRIVATE_V6: [(Ipv6Addr, u32); 2] =
    [(Ipv6Addr::LOCALHOST, 128), (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)];

/// Networks with all public IPv6 addresses.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Parts of [`GLOBAL_V6`] that are not public: protocol assignments such as Teredo, documentation, and 6to4, which
/// contains IPv4 addresses.
const NEVER_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Network whose addresses end with the IPv4 address that a NAT64 gateway calls.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Returns the reach of an address. IPv4 addresses within IPv6 ones are judged as IPv4 addresses.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address.to_canonical() {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) if contains_v6(NAT64, address) => {
            let [.., high, low] = address.segments();
            reach_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        IpAddr::V6(address) => {
            let is_in =
                |networks: &[_]| networks.iter().any(|network| contains_v6(*network, address));
            match address {
                _ if is_in(&PRIVATE_V6) => Reach::Private,
                _ if is_in(&NEVER_V6) || !contains_v6(GLOBAL_V6, address) => Reach::Never,
                _ => Reach::Public,
            }
        }
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let is_in = |networks: &[(Ipv4Addr, u32)]| {
        networks
            .iter()
            .any(|(first, bits)| (address.to_bits() ^ first.to_bits()).leading_zeros() >= *bits)
    };
    match address {
        _ if is_in(&PRIVATE_V4) => Reach::Private,
        _ if is_in(&NEVER_V4) => Reach::Never,
        _ => Reach::Public,
    }
}

fn contains_v6((first, bits): (Ipv6Addr, u32), address: Ipv6Addr) -> bool {
    (address.to_bits() ^ first.to_bits()).leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_servers_on_the_internet_are_public() {
        use Reach::{Never, Private, Public};
        for (expect, addresses) in [
            (
                Public,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 \
                 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 \
                 198.20.0.0 223.255.255.255 2606:4700::1111 2a00::1 2001:200::1 2001:db7::1 2003::1 64:ff9b::1.1.1.1 \
                 ::ffff:1.1.1.1",
            ),
            (
                Private,
                "10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 172.16.0.0 \
                 172.31.255.255 192.168.0.0 192.168.255.255 ::1 fc00::1 fdff::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 \
                 64:ff9b::10.0.0.1",
            ),
            (
                Never,
                "0.0.0.0 0.1.2.3 169.254.169.254 192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 \
                 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::2 ::127.0.0.1 \
                 100::1 fe80::1 fec0::1 ff02::1 2001::1 2001:2::1 2001:db8::1 2002:7f00:1:: 3fff::1 64:ff9b:1::1 \
                 64:ff9b::169.254.169.254 ::ffff:0.0.0.0 ::ffff:169.254.169.254 4000::1 5f00::1",
            ),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(reach(address.parse().unwrap()), expect, "{address}");
            }
        }
    }
}
