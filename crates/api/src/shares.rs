//! Shares of the connections that one client may hold with requests that last as long as it wants: live streams and
//! batches.
//!
//! **Invariant:** one key, or all clients in open mode, holds at most half of the connections with them, so others can
//! always connect.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use edge::Access;
use parking_lot::Mutex;

use crate::auth;
use crate::error::ApiError;

/// Number of long requests of each client.
pub(crate) struct Shares {
    of_each: Mutex<HashMap<[u8; 32], u32>>,
    each_max: u32,
}

/// One of the long requests of a client.
pub(crate) struct Share {
    shares: Arc<Shares>,
    client: [u8; 32],
}

impl Shares {
    /// Shares of this many connections.
    pub(crate) fn new(connections_max: u32) -> Arc<Self> {
        Arc::new(Self { of_each: Mutex::default(), each_max: (connections_max / 2).max(1) })
    }

    /// Counts a long request of the client with these headers.
    ///
    /// # Errors
    /// 401 without a valid key, 429 if the client has too many.
    pub(crate) fn take(
        self: &Arc<Self>,
        access: &Access,
        headers: &HeaderMap,
    ) -> Result<Share, ApiError> {
        let grant = auth::grant(access, headers).ok_or_else(ApiError::unauthorized)?;
        let client = grant.client();
        let mut of_each = self.of_each.lock();
        let count = of_each.entry(client).or_default();
        if *count >= self.each_max {
            return Err(ApiError::too_many_streams());
        }
        *count += 1;
        drop(of_each);
        Ok(Share { shares: Arc::clone(self), client })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut of_each = self.shares.of_each.lock();
        if let Some(count) = of_each.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                of_each.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::AUTHORIZATION;
    use edge::{KeyHash, Scopes};

    use super::*;

    #[test]
    fn a_key_has_at_most_half_of_the_connections() {
        let keys = ["one", "two"].map(|key| KeyHash::new(key.as_bytes(), Scopes::ALL));
        let access = Access::with_keys(keys.into());
        let shares = Shares::new(4);
        let take = |key: &str| {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_str(&format!("Bearer {key}")).unwrap();
            headers.insert(AUTHORIZATION, value);
            shares.take(&access, &headers).map_err(|error| error.status.as_u16())
        };
        let first = (take("one").unwrap(), take("one").unwrap());
        assert_eq!(take("one").err(), Some(429));
        let other = take("two").unwrap();
        assert_eq!(take("three").err(), Some(401));
        drop(first);
        assert!(take("one").is_ok());
        drop(other);
        assert!(shares.of_each.lock().is_empty());
    }
}
