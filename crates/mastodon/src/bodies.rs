//! Memory of request bodies while they are read. The bodies of both APIs are counted, except those from applications on
//! `/v1`.
//!
//! **Invariant:** a body takes at most [`BODY_BYTES_MAX`] and 10 seconds, and all bodies together take at most
//! [`MEMORY`]. At most [`ADDRESS_BODIES_MAX`] bodies per address, and as many per user, are read at a time. Memory is
//! reserved as a body arrives, so idle connections block no client. Guests, who have no token or only an app's own,
//! have separate memory and shorter bodies, so that they do not block users. The first [`SMALL_BYTES`] of each body
//! need no shared memory, so long bodies do not block log-ins and posts. Once half of the [`BODIES_MAX`] of guests are
//! in use, an address has at most [`CROWDED_BODIES_MAX`], and a network several times as many.

use std::sync::Arc;

use axum::body::Body;
use budget::{MemoryBudget, Reservation};
use edge::{BodyError, BodyLimits, BodyMemory, HeldBody, NoMemory, Share, Shares};
use feed::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limiter::{NETWORK_TIMES, Subject};

/// Maximum size of a body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
/// Maximum size of a guest's body, in bytes: a form.
const GUEST_BODY_BYTES_MAX: usize = 16 << 10;
/// Maximum memory of all bodies of users, and of all bodies of guests, in bytes.
const HALF: usize = 4 << 20;
/// Maximum memory of all bodies, in bytes.
pub(crate) const MEMORY: usize = 2 * HALF;
/// Maximum number of concurrent bodies per address, and per user.
const ADDRESS_BODIES_MAX: u32 = 16;
/// Size up to which a body needs no shared memory, in bytes: more than a log-in form.
const SMALL_BYTES: usize = 2 << 10;
/// Maximum number of concurrent bodies of users, and of guests.
const BODIES_MAX: usize = 1_024;
/// Maximum number of concurrent guests' bodies per address while half of [`BODIES_MAX`] are in use.
const CROWDED_BODIES_MAX: u32 = 2;

/// Complete body, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct ReadBody {
    pub(crate) body: HeldBody,
    pub(crate) counted: (OwnedSemaphorePermit, Reading),
}

/// Budget of the bodies of users, or of guests.
struct Lane {
    /// Memory beyond the first [`SMALL_BYTES`] of each body.
    bytes: MemoryBudget,
    /// One permit per body.
    bodies: Arc<Semaphore>,
    /// Maximum size of a body, in bytes.
    bytes_max: usize,
}

/// Sender whose bodies are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    /// Address, as a subject of the limiter.
    Address(u64),
    /// Network, as a subject of the limiter.
    Network(u64),
    User(UserId),
}

/// Budgets of request bodies.
pub(crate) struct Bodies {
    of_users: Lane,
    of_others: Lane,
    /// Number of concurrent bodies of each sender.
    counts: Shares<Sender>,
}

/// Count of a body, until it is dropped.
type Reading = Vec<Share<Sender>>;

impl Lane {
    fn new(bytes_max: usize) -> Self {
        let bytes = MemoryBudget::new(HALF - BODIES_MAX * SMALL_BYTES);
        Self { bytes, bodies: Arc::new(Semaphore::new(BODIES_MAX)), bytes_max }
    }
}

impl BodyMemory for Lane {
    fn empty(&self) -> Reservation {
        self.bytes.empty()
    }

    fn hold(&self, held: &mut Reservation, bytes: usize, copied: usize) -> Result<(), NoMemory> {
        let due = |bytes: usize| bytes.saturating_sub(SMALL_BYTES);
        if held.resize(due(bytes) + due(copied)) { Ok(()) } else { Err(NoMemory::Now) }
    }
}

impl Bodies {
    pub(crate) fn new() -> Self {
        let (of_users, of_others) = (Lane::new(BODY_BYTES_MAX), Lane::new(GUEST_BODY_BYTES_MAX));
        Self { of_users, of_others, counts: Shares::default() }
    }

    /// Counts a body of `user`, or of a guest. `None` if the sender has too many.
    fn begin(&self, address: Subject, user: Option<UserId>) -> Option<Reading> {
        let is_crowded = self.of_others.bodies.available_permits() < BODIES_MAX / 2;
        let of_address = match is_crowded && user.is_none() {
            true => CROWDED_BODIES_MAX,
            false => ADDRESS_BODIES_MAX,
        };
        let network = (Sender::Network(address.whole()), NETWORK_TIMES * of_address);
        let user = user.map(|user| (Sender::User(user), ADDRESS_BODIES_MAX));
        let senders = [(Sender::Address(address.own), of_address), network].into_iter().chain(user);
        senders.map(|(sender, most)| self.counts.take(sender, 1, most as usize)).collect()
    }

    /// Reads a body of `user`, or of a guest.
    pub(crate) async fn read(
        &self,
        address: Subject,
        user: Option<UserId>,
        body: Body,
    ) -> Result<ReadBody, BodyError> {
        let reading = self.begin(address, user).ok_or(BodyError::TooMany)?;
        let lane = if user.is_some() { &self.of_users } else { &self.of_others };
        let permit = Arc::clone(&lane.bodies).try_acquire_owned();
        let permit = permit.map_err(|_| BodyError::NoMemory(NoMemory::Now))?;
        let body = HeldBody::read(body, BodyLimits::new(lane.bytes_max), lane).await?;
        Ok(ReadBody { body, counted: (permit, reading) })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::limiter::{Limiter, Rates};

    const USER: Option<UserId> = Some(UserId(1));

    fn other(user: u32) -> Option<UserId> {
        Some(UserId(user))
    }

    #[tokio::test]
    async fn bodies_are_counted_by_address_and_paid_for_by_their_bytes() {
        let bodies = Bodies::new();
        let of_one: Vec<_> = (0..ADDRESS_BODIES_MAX)
            .map(|user| bodies.begin(1.into(), other(user)).unwrap())
            .collect();
        assert!(bodies.begin(1.into(), other(99)).is_none());
        let others = bodies.begin(2.into(), USER);
        assert!(others.is_some(), "others are not blocked");
        drop((of_one, others));
        assert!(bodies.begin(1.into(), USER).is_some());
        assert!(bodies.counts.clients() == 0);

        for (is_of_user, bytes_max) in [(true, BODY_BYTES_MAX), (false, GUEST_BODY_BYTES_MAX)] {
            // Each body is from another address and another user.
            let numbers = Cell::new(0);
            let send = async |body: Body, is_of_user: bool| {
                let number = numbers.replace(numbers.get() + 1);
                let user = is_of_user.then_some(UserId(number));
                bodies.read(u64::from(number).into(), user, body).await
            };
            let read = async |bytes| send(Body::from(vec![0; bytes]), is_of_user).await;
            let mut held = Vec::new();
            while let Ok(paid) = read(bytes_max).await {
                held.push(paid);
            }
            assert!(held.len() * bytes_max <= HALF);
            assert!(read(SMALL_BYTES).await.is_ok(), "short bodies are always read");
            assert!(send(Body::from("x"), !is_of_user).await.is_ok(), "the others continue");
            held.pop();
            assert!(read(bytes_max).await.is_ok());
            assert!(read(bytes_max + 1).await.is_err());
        }
    }

    #[tokio::test]
    async fn one_user_has_few_bodies_from_however_many_addresses() {
        let bodies = Bodies::new();
        let address = |number: u32| Subject::from(u64::from(number));
        let held: Vec<_> =
            (0..ADDRESS_BODIES_MAX).map(|at| bodies.begin(address(at), USER).unwrap()).collect();
        assert!(bodies.begin(address(99), USER).is_none());
        assert!(bodies.begin(address(99), other(2)).is_some());
        drop(held);
    }

    #[tokio::test]
    async fn an_address_or_network_has_few_bodies_when_many_are_read_without_a_user() {
        let bodies = Bodies::new();
        let mut held = Vec::new();
        for number in 0..=BODIES_MAX / 2 {
            let address = (1_000 + number as u64).into();
            held.push(bodies.read(address, None, Body::from("x")).await.unwrap());
        }
        let own: Vec<_> =
            (0..CROWDED_BODIES_MAX).map(|_| bodies.begin(1.into(), None).unwrap()).collect();
        assert!(bodies.begin(1.into(), None).is_none() && bodies.begin(2.into(), None).is_some());
        assert!(bodies.begin(1.into(), USER).is_some(), "users are not blocked");
        let limiter = Limiter::new(Rates::default());
        let subject =
            |number: u32| limiter.address(format!("2001:db8:0:{number:x}::1").parse().unwrap());
        let of_network: Vec<_> =
            (0..100).filter_map(|number| bodies.begin(subject(number), None)).collect();
        assert_eq!(of_network.len() as u32, NETWORK_TIMES * CROWDED_BODIES_MAX);
        drop((own, held));
    }
}
