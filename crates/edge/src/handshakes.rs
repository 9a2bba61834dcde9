//! TLS handshakes in progress, and the choice of one to close for a new one.
//!
//! **Invariant:** at most [`HANDSHAKES_MAX`] connections are in a handshake. At this limit, a new handshake closes the
//! oldest handshake of the network with the most handshakes, once that handshake has lasted [`HANDSHAKE_MIN`]. So a
//! client with many handshakes loses only its own.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;

/// Maximum number of connections in a handshake.
pub const HANDSHAKES_MAX: usize = 512;
/// Minimum time for which a handshake runs before another one may close it. It lets many clients that connect at the
/// same time, such as after a restart, complete their handshakes. Further clients wait in the queue of the operating
/// system.
const HANDSHAKE_MIN: Duration = Duration::from_millis(250);
/// Mask of the part of an IPv6 address that a provider assigns to a customer: the first 64 bits.
const NETWORK_BITS: u128 = u128::MAX << 64;

/// Running handshakes. Each results in a `T`, or in nothing if it fails.
#[derive(Debug)]
pub(crate) struct Handshakes<T> {
    tasks: JoinSet<Option<T>>,
    by_age: VecDeque<Handshake>,
}

#[derive(Debug)]
struct Handshake {
    network: IpAddr,
    since: Instant,
    task: AbortHandle,
}

impl<T: Send + 'static> Handshakes<T> {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), by_age: VecDeque::new() }
    }

    /// Waits for the next handshake to end; `None` if there are none. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Result<Option<T>, JoinError>> {
        let ended = self.tasks.join_next().await;
        self.by_age.retain(|handshake| !handshake.task.is_finished());
        ended
    }

    /// Time before which no handshake may begin, unless another one ends; `None` if one may begin now.
    pub(crate) fn full_until(&self) -> Option<Instant> {
        let until = self.by_age.get(self.surplus()?)?.since + HANDSHAKE_MIN;
        (until > Instant::now()).then_some(until)
    }

    /// Starts a handshake with `peer`, and closes another one if there are now too many.
    pub(crate) fn start(
        &mut self,
        peer: IpAddr,
        handshake: impl Future<Output = Option<T>> + Send + 'static,
    ) {
        if let Some(surplus) = self.surplus().and_then(|surplus| self.by_age.remove(surplus)) {
            surplus.task.abort();
        }
        let task = self.tasks.spawn(handshake);
        self.by_age.push_back(Handshake { network: network(peer), since: Instant::now(), task });
    }

    /// Index of the handshake that the next one closes; `None` if there are not too many.
    fn surplus(&self) -> Option<usize> {
        if self.by_age.len() < HANDSHAKES_MAX {
            return None;
        }
        oldest_of_most(self.by_age.iter().map(|handshake| handshake.network))
    }
}

/// Network of one customer: the IPv4 address, or the first half of the IPv6 address.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK_BITS).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Index of the first address of the network that occurs most often. If several networks do, the network that occurs
/// first counts.
fn oldest_of_most(networks: impl Iterator<Item = IpAddr>) -> Option<usize> {
    let mut found: HashMap<IpAddr, (usize, usize)> = HashMap::new();
    for (at, network) in networks.enumerate() {
        found.entry(network).or_insert((0, at)).0 += 1;
    }
    let most = found.into_values().max_by_key(|&(number, first)| (number, usize::MAX - first));
    most.map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_handshake_of_the_network_with_the_most_is_closed() {
        for (peers, expect) in [
            (&[][..], None),
            (&["192.0.2.1"], Some(0)),
            (&["192.0.2.1", "192.0.2.2", "192.0.2.2"], Some(1)),
            (&["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.2"], Some(1)),
            (&["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.1"], Some(0)),
            // An IPv4 address is the same in both notations.
            (&["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.2"], Some(1)),
            (&["192.0.2.1", "::ffff:192.0.2.2", "::ffff:192.0.2.3"], Some(0)),
            // A client can choose among the addresses of its network, so they count together.
            (&["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:1:ff::2"], Some(1)),
            (&["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"], Some(0)),
        ] {
            let networks = peers.iter().map(|peer| network(peer.parse().unwrap()));
            assert_eq!(oldest_of_most(networks), expect, "{peers:?}");
        }
    }
}
