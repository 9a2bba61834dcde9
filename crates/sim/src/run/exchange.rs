//! Exchange for an action over a connection: one request, or two if the second depends on the first response. If a node
//! of a cluster cannot answer a request, it is sent to the next node.
//!
//! **Invariant:** a request that creates something is sent again only with the same idempotency key.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Meter, Run, lock};
use crate::client::{Answer, Client, ClientError, Dial, insert_idempotency_key};
use crate::workload::{Action, What};

/// Longest time for the response of one node of a cluster.
const NODE_ANSWER: Duration = Duration::from_secs(3);
/// Pause before a request is sent to another node; doubled up to [`RETRY_AFTER_MAX`].
const RETRY_AFTER: Duration = Duration::from_millis(20);
const RETRY_AFTER_MAX: Duration = Duration::from_millis(500);
/// The status of a node that temporarily cannot answer.
const UNAVAILABLE: u16 = 503;

/// The idempotency keys of a run.
pub(super) struct Keys {
    /// Whether requests may be sent again.
    are_needed: bool,
    /// Prefix of all keys. It is random, not seeded, because a server remembers the keys of earlier runs.
    run: u64,
    /// Number of keys created so far.
    count: AtomicU64,
}

impl Keys {
    pub(super) fn new(are_needed: bool) -> Self {
        Self { are_needed, run: RandomState::new().hash_one(0), count: AtomicU64::new(0) }
    }

    /// The key of an action; `None` if it needs none.
    pub(super) fn of(&self, action: &Action) -> Option<String> {
        let is_new = matches!(action.what, What::Post { .. } | What::PostStories { .. });
        let is_needed = self.are_needed && is_new && action.what.is_repeatable();
        is_needed
            .then(|| format!("{:016x}-{}", self.run, self.count.fetch_add(1, Ordering::Relaxed)))
    }
}

/// An action in progress.
pub(super) struct Exchange<'a, I> {
    pub(super) run: &'a Run<I>,
    pub(super) action: &'a Action,
    pub(super) key: Option<&'a str>,
}

impl<I> Exchange<'_, I> {
    /// Replaces `request` with the first request of the action.
    pub(super) fn write(&self, request: &mut Vec<u8>) {
        self.run.api.write(self.action, request);
        self.key.inspect(|key| insert_idempotency_key(key, request));
    }

    /// Sends `request`, and the second request if the action has one. If a node of a cluster cannot answer, sends the
    /// request to the next node, and so on. The caller limits the time.
    pub(super) async fn answer<D: Dial>(
        &self,
        client: &mut Client<D>,
        request: &mut Vec<u8>,
        meter: &Mutex<Meter>,
    ) -> Result<Answer, ClientError> {
        if !self.run.config.retries || !self.action.what.is_repeatable() {
            return self.once(client, request).await;
        }
        let mut pause = RETRY_AFTER;
        loop {
            let tried = timeout(NODE_ANSWER, self.once(client, request)).await;
            if let Ok(Ok(answer)) = tried
                && answer.status != UNAVAILABLE
            {
                return Ok(answer);
            }
            lock(meter).retried += 1;
            client.disconnect();
            sleep(pause).await;
            pause = (2 * pause).min(RETRY_AFTER_MAX);
            self.write(request);
        }
    }

    async fn once<D: Dial>(
        &self,
        client: &mut Client<D>,
        request: &mut Vec<u8>,
    ) -> Result<Answer, ClientError> {
        let answer = client.exchange(request).await?;
        let first = client.response(&answer);
        if !self.action.what.takes_two() || !first.is_success() {
            return Ok(answer);
        }
        self.run.api.write_second(self.action, first.body, request);
        client.exchange(request).await
    }
}
