//! Task of a webhook: reads changes after the position, sends them, and moves the position.
//!
//! After a failure it waits, twice as long as after the failure before. If the receiver has refused a request, the next
//! one has half as many changes, until a single change is refused. If this lasts, the change is given up. A receiver
//! that cannot be reached, or asks for patience, is waited for: nothing is given up.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_rustls::rustls::ClientConfig;

use crate::client::{Client, Message, SendError};
use crate::status::Shared;
use crate::stored::{Stored, shortened};
use crate::{
    Action, BODY_BYTES, CHANGES_MAX, Change, DeadLetter, Options, Page, ReadError, Source, Wanted,
    Webhook, now_ms,
};

/// Shortest time between two writes of the position after deliveries.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// Shortest time between two writes of a position that moves although there is nothing to deliver. A lost one costs
/// another read.
const SAVE_IDLE_EVERY: Duration = Duration::from_secs(60);

/// Task of a webhook.
pub(crate) struct Delivery<S> {
    webhook: Arc<Webhook>,
    source: Arc<S>,
    shared: Arc<Shared>,
    /// File of `stored`.
    path: PathBuf,
    stored: Stored,
    options: Options,
    client: Client,
    /// Maximum number of changes of the next request.
    size: usize,
    /// Number of failures since the last success.
    failures: u32,
    /// Time from which `stored` must be written; `None` if it is written.
    save_from: Option<Instant>,
    saved: Instant,
    /// Write of `stored` that was not waited for.
    saving: Option<JoinHandle<io::Result<()>>>,
}

impl<S: Source> Delivery<S> {
    pub(crate) fn new(
        (webhook, source, shared): (Arc<Webhook>, Arc<S>, Arc<Shared>),
        (path, stored): (PathBuf, Stored),
        (tls, options): (Arc<ClientConfig>, Options),
    ) -> Self {
        Self {
            webhook,
            source,
            shared,
            path,
            stored,
            options,
            client: Client::new(tls, options.limits()),
            size: CHANGES_MAX,
            failures: 0,
            save_from: None,
            saved: Instant::now(),
            saving: None,
        }
    }

    /// Works until `stop` is true, and writes the position.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            never = self.work() => match never {},
        }
        self.save().await;
    }

    async fn work(&mut self) -> Infallible {
        loop {
            if self.save_from.is_some_and(|from| from <= Instant::now()) {
                self.save().await;
            }
            if let Some(action) = self.shared.take_request() {
                self.act(action).await;
            }
            let read =
                self.source.read(self.stored.after.as_deref(), &self.wanted(self.size)).await;
            match (read, self.stored.after.clone()) {
                (Ok(page), _) if page.changes.is_empty() => self.wait(page.next).await,
                (Ok(page), _) => self.deliver(page).await,
                (Err(error @ ReadError::Gone), Some(after)) => {
                    let name = &self.webhook.name;
                    tracing::error!(
                        name,
                        after,
                        "a webhook misses changes that are no longer kept"
                    );
                    self.stored.skip_gap(after, now_ms(), &error.to_string());
                    self.save().await;
                }
                (Err(error), _) => self.pause(&error.to_string()).await,
            }
        }
    }

    fn wanted(&self, changes_max: usize) -> Wanted {
        let (kinds, ids_only) = (Arc::clone(&self.webhook.kinds), self.webhook.ids_only);
        Wanted { changes_max, bytes: BODY_BYTES, kinds, ids_only }
    }

    /// Waits for changes after a position up to which there is nothing to deliver.
    async fn wait(&mut self, next: String) {
        if self.stored.after.as_ref() != Some(&next) {
            self.stored.advance(next.clone());
            self.save_within(SAVE_IDLE_EVERY);
        }
        self.succeeded();
        let saving = async {
            match self.save_from {
                Some(from) => sleep_until(from).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.source.wait(&next) => {}
            () = self.shared.woken() => {}
            () = saving => {}
        }
    }

    /// Sends a page of changes. Moves after them if they are accepted, or pauses.
    async fn deliver(&mut self, Page { changes, next }: Page) {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return };
        let (since, count) = (first.time_ms, changes.len());
        let (position, id) =
            (first.position.clone(), format!("{}_{}", first.position, last.position));
        self.shared.update(|status| status.pending_since_ms = Some(since));
        let message = Message { id, body: self.body(&changes) };
        drop(changes);
        let sent = self.client.send(&self.webhook, &message).await;
        drop(message);
        match sent {
            Ok(_) => {
                self.stored.advance(next);
                self.save_within(SAVE_EVERY);
                self.size = (2 * self.size).min(CHANGES_MAX);
                self.count_accepted(count as u64);
                self.succeeded();
            }
            Err(error) => self.failed((&position, next), count, &error).await,
        }
    }

    /// Handles the failure of a request with `count` changes, of which the first has the position, and after which the
    /// next one begins.
    async fn failed(&mut self, (position, next): (&str, String), count: usize, error: &SendError) {
        self.shared.update(|status| status.failed += 1);
        let text = error.to_string();
        if error.is_refusal() {
            let now = now_ms();
            let since = *self.stored.refused_since_ms.get_or_insert(now);
            self.save_within(SAVE_EVERY);
            self.size = (count / 2).max(1);
            let is_over =
                u128::from(now.saturating_sub(since)) >= self.options.give_up_after.as_millis();
            if count == 1 && is_over && self.stored.give_up(position, now, &text) {
                let name = &self.webhook.name;
                tracing::error!(name, position, error = text, "a webhook gives up a change");
                self.stored.advance(next);
                self.failures = 0;
                return self.save().await;
            }
        }
        self.pause(&text).await;
    }

    /// Records a failure, and waits before the next attempt.
    async fn pause(&mut self, error: &str) {
        if self.failures == 0 {
            let name = &self.webhook.name;
            tracing::warn!(name, error, "a webhook fails; it will be tried again");
        }
        let failed = Some((now_ms(), shortened(error)));
        self.shared.update(|status| status.error = failed);
        if self.save_from.is_some() {
            self.save().await;
        }
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let pause = self.options.pause_min.saturating_mul(doubled).min(self.options.pause_max);
        self.failures = self.failures.saturating_add(1).min(u32::BITS - 1);
        tokio::select! {
            () = sleep(jittered(pause)) => {}
            () = self.shared.woken() => {}
        }
    }

    fn succeeded(&mut self) {
        if self.failures > 0 {
            tracing::info!(name = self.webhook.name, "a webhook works again");
        }
        self.failures = 0;
        let after = self.stored.after.clone();
        self.shared.update(|status| {
            (status.after, status.error, status.pending_since_ms) = (after, None, None);
        });
    }

    fn count_accepted(&self, changes: u64) {
        self.shared.update(|status| {
            status.changes += changes;
            status.accepted += 1;
            status.delivered_ms = Some(now_ms());
        });
    }

    async fn act(&mut self, action: Action) {
        match action {
            Action::SendAfter(position) => self.stored.advance(position),
            Action::SendOldest => (self.stored.after, self.stored.refused_since_ms) = (None, None),
            Action::DropDeadLetters => self.stored.dead.clear(),
            Action::SendDeadLetters => {
                for letter in self.stored.dead.clone() {
                    let left = self.send_again(&letter).await;
                    let mut dead = self.stored.dead.iter();
                    if let Some(at) = dead.position(|known| *known == letter) {
                        drop(self.stored.dead.splice(at..=at, left));
                    }
                    self.save().await;
                }
            }
        }
        (self.size, self.failures) = (CHANGES_MAX, 0);
        self.save().await;
    }

    /// Sends a change that was given up. Returns what is left of it: nothing if it is accepted, no longer kept, or a
    /// gap.
    async fn send_again(&mut self, letter: &DeadLetter) -> Option<DeadLetter> {
        if letter.is_gap {
            return None;
        }
        let before = self.source.before(&letter.position);
        let wanted = Wanted { kinds: Arc::new([]), ..self.wanted(1) };
        let page = match self.source.read(Some(&before), &wanted).await {
            Ok(page) => page,
            Err(ReadError::Gone) => Page::default(),
            Err(error) => return Some(letter.with(&error)),
        };
        let changes = page.changes;
        let position = &letter.position;
        if changes.first().is_none_or(|change| change.position != *position) {
            let name = &self.webhook.name;
            tracing::warn!(name, position, "a change that a webhook gave up is no longer kept");
            return None;
        }
        let id = format!("{position}_{position}");
        let message = Message { id, body: self.body(&changes) };
        match self.client.send(&self.webhook, &message).await {
            Ok(_) => {
                self.count_accepted(1);
                None
            }
            Err(error) => Some(letter.with(&error)),
        }
    }

    /// Makes the body of a request.
    fn body(&self, changes: &[Change]) -> Bytes {
        let name = &self.webhook.name;
        let mut body =
            format!("{{\"type\":\"changes\",\"webhook\":\"{name}\",\"changes\":[").into_bytes();
        body.reserve_exact(changes.iter().map(|change| change.json.len() + 1).sum::<usize>() + 2);
        for (index, change) in changes.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&change.json);
        }
        body.extend_from_slice(b"]}");
        body.into()
    }

    /// Has the state written when this time has passed since the last write, or earlier.
    fn save_within(&mut self, pause: Duration) {
        let from = self.saved + pause;
        self.save_from = Some(self.save_from.map_or(from, |earlier| earlier.min(from)));
    }

    /// Writes the state, and shows it to operators. A failure is logged; the next write includes everything.
    async fn save(&mut self) {
        // The write before this one may have been abandoned, and must not replace this one.
        if let Some(saving) = &mut self.saving {
            drop(saving.await);
        }
        let (stored, path) = (self.stored.clone(), self.path.clone());
        let saving = tokio::task::spawn_blocking(move || stored.save(&path));
        let saved = self.saving.insert(saving).await;
        self.saving = None;
        if let Ok(Err(error)) = saved {
            let name = &self.webhook.name;
            tracing::error!(name, %error, "cannot store the position of a webhook");
        }
        (self.save_from, self.saved) = (None, Instant::now());
        let (after, dead) = (self.stored.after.clone(), self.stored.dead.clone());
        self.shared.update(|status| (status.after, status.dead) = (after, dead));
    }
}

impl DeadLetter {
    fn with(&self, error: &dyn std::fmt::Display) -> Self {
        Self { at_ms: now_ms(), error: shortened(&error.to_string()), ..self.clone() }
    }
}

/// Returns a random time between half of the pause and all of it.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0; 4];
    // Without random bytes, the pause is only longer.
    let share = getrandom::fill(&mut random)
        .map_or(1.0, |()| f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX));
    pause.mul_f64(0.5 + share / 2.0)
}
