//! The bodies of requests that are being read.
//!
//! **Invariant:** a body takes at most [`BODY_BYTES_MAX`] and 10 seconds, all together [`MEMORY`], and
//! [`ADDRESS_BODIES_MAX`] of one address are read at a time. A body takes memory as it arrives, so connections on which
//! nothing arrives keep nobody out. Requests without a token have memory of their own, and shorter bodies, so they keep
//! out nobody who has one. The first [`SMALL_BYTES`] of each of these have memory in any case, so long bodies keep no
//! log-in out; an address has at most [`CROWDED_BODIES_MAX`] of them once half of [`GUESTS_MAX`] are read.

use std::collections::HashMap;
use std::sync::Mutex;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::BodyExt as _;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::ApiError;

/// Longest body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
/// Longest body of a request without a token, in bytes: a form.
const GUEST_BODY_BYTES_MAX: usize = 16 << 10;
/// Most memory of all bodies of requests with a token, and of all others, in bytes.
const HALF: usize = 4 << 20;
/// Most memory of all bodies, in bytes.
pub(crate) const MEMORY: usize = 2 * HALF;
/// Most bodies of one address that are read at a time.
const ADDRESS_BODIES_MAX: u32 = 16;
/// Bytes of a body without a token that take none of the shared memory: more than a form for a log-in.
const SMALL_BYTES: usize = 2 << 10;
/// Most bodies without a token that are read at a time.
const GUESTS_MAX: usize = 1_024;
/// Most bodies of one address that are read at a time while half of those are in use.
const CROWDED_BODIES_MAX: u32 = 2;

/// The memory of a body, until it is dropped.
#[derive(Debug)]
pub(crate) struct Paid<'a> {
    _bytes: Option<SemaphorePermit<'a>>,
    _guest: Option<SemaphorePermit<'a>>,
}

/// The bodies that are being read.
pub(crate) struct Bodies {
    /// A permit for each byte that has arrived with a token.
    of_apps: Semaphore,
    /// A permit for each other byte that has arrived.
    of_guests: Semaphore,
    /// A permit for each body without a token.
    guests: Semaphore,
    /// Number of bodies of each address, as a subject of the limiter.
    of_address: Mutex<HashMap<u64, u32>>,
}

/// One of the bodies of an address.
pub(crate) struct Reading<'a> {
    bodies: &'a Bodies,
    address: u64,
}

impl Bodies {
    pub(crate) fn new() -> Self {
        let of_guests = Semaphore::new(HALF - GUESTS_MAX * SMALL_BYTES);
        let (of_apps, guests) = (Semaphore::new(HALF), Semaphore::new(GUESTS_MAX));
        Self { of_apps, of_guests, guests, of_address: Mutex::default() }
    }

    /// Counts a body; `None` if its address has too many.
    pub(crate) fn begin(&self, address: u64, has_token: bool) -> Option<Reading<'_>> {
        let mut of_address = self.of_address.lock().ok()?;
        let is_crowded = self.guests.available_permits() < GUESTS_MAX / 2;
        let bodies_max = match is_crowded && !has_token {
            true => CROWDED_BODIES_MAX,
            false => ADDRESS_BODIES_MAX,
        };
        let count = of_address.get(&address).copied().unwrap_or(0);
        (count < bodies_max).then(|| of_address.insert(address, count + 1))?;
        Some(Reading { bodies: self, address })
    }

    /// Reads a body. The bytes are paid for until the permit is dropped.
    pub(crate) async fn read(
        &self,
        mut body: Body,
        has_token: bool,
    ) -> Result<(Bytes, Paid<'_>), ApiError> {
        let (budget, bytes_max, free) = match has_token {
            true => (&self.of_apps, BODY_BYTES_MAX, 0),
            false => (&self.of_guests, GUEST_BODY_BYTES_MAX, SMALL_BYTES),
        };
        let guest = (!has_token).then(|| self.guests.try_acquire()).transpose();
        let guest = guest.map_err(|_| ApiError::overloaded())?;
        let (mut whole, mut paid) = (Vec::new(), None::<SemaphorePermit<'_>>);
        while let Some(frame) = body.frame().await {
            let broken = |_| ApiError::invalid_request("the body is incomplete");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if whole.len() + data.len() > bytes_max {
                let why = "The body is too large";
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, why));
            }
            let due = |length: usize| length.saturating_sub(free);
            let more = due(whole.len() + data.len()) - due(whole.len());
            let more = budget.try_acquire_many(more as u32);
            let more = more.map_err(|_| ApiError::overloaded())?;
            match &mut paid {
                Some(paid) => paid.merge(more),
                None => paid = Some(more),
            }
            whole.extend_from_slice(&data);
        }
        Ok((whole.into(), Paid { _bytes: paid, _guest: guest }))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Ok(mut of_address) = self.bodies.of_address.lock()
            && let Some(count) = of_address.get_mut(&self.address)
        {
            *count -= 1;
            if *count == 0 {
                of_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_are_counted_by_address_and_paid_for_by_their_bytes() {
        let bodies = Bodies::new();
        let of_one: Vec<_> =
            (0..ADDRESS_BODIES_MAX).map(|_| bodies.begin(1, true).unwrap()).collect();
        assert!(bodies.begin(1, true).is_none());
        let other = bodies.begin(2, true);
        assert!(other.is_some(), "others are not kept out");
        drop((of_one, other));
        assert!(bodies.begin(1, true).is_some());
        assert!(bodies.of_address.lock().unwrap().is_empty());

        for (has_token, bytes_max, small) in
            [(true, BODY_BYTES_MAX, 0), (false, GUEST_BODY_BYTES_MAX, SMALL_BYTES)]
        {
            let read = async |bytes| bodies.read(Body::from(vec![0; bytes]), has_token).await;
            let mut held = Vec::new();
            while let Ok(paid) = read(bytes_max).await {
                held.push(paid);
            }
            assert!(held.len() * bytes_max <= HALF);
            assert!(read(small).await.is_ok(), "short ones are read in any case");
            assert!(bodies.read(Body::from("x"), !has_token).await.is_ok(), "the others read on");
            held.pop();
            assert!(read(bytes_max).await.is_ok());
            assert!(read(bytes_max + 1).await.is_err());
        }
    }

    #[tokio::test]
    async fn an_address_has_few_bodies_when_many_are_read_without_a_token() {
        let bodies = Bodies::new();
        let mut held = Vec::new();
        for _ in 0..=GUESTS_MAX / 2 {
            held.push(bodies.read(Body::from("x"), false).await.unwrap());
        }
        let own: Vec<_> =
            (0..CROWDED_BODIES_MAX).map(|_| bodies.begin(1, false).unwrap()).collect();
        assert!(bodies.begin(1, false).is_none() && bodies.begin(2, false).is_some());
        assert!(bodies.begin(1, true).is_some(), "who has a token is not kept out");
        drop((own, held));
    }
}
