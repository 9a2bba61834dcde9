//! Task of a webhook: reads changes after the position, sends them, and moves the position.
//!
//! After a failure it waits, twice as long as after the failure before. If the receiver has refused a request, the next
//! one has half as many changes, until a single change is refused. If this lasts, the change is given up. A receiver
//! that cannot be reached, or asks for patience, is waited for: nothing is given up. After a panic, which is a bug, it
//! waits in the same way and continues.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_rustls::rustls::ClientConfig;

use crate::client::{Client, Message, SendError};
use crate::status::Shared;
use crate::stored::{Stored, shortened};
use crate::{
    Action, ActionError, BODY_BYTES, CHANGES_MAX, Change, DeadLetter, Gap, Options, Page,
    ReadError, Request, Source, Wanted, Webhook, now_ms, random,
};

/// Shortest time between two writes of the position after deliveries.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// Shortest time between two writes of a position that moves although there is nothing to deliver. A lost one costs
/// another read.
const SAVE_IDLE_EVERY: Duration = Duration::from_secs(60);

/// Number of times that changes which cannot be read although they are kept are tried again.
const UNREAD_MAX: u32 = 8;
const UNREADABLE: &str = "changes cannot be read, although they are kept";
const PANICKED: &str = "sending has panicked, which is a bug of roost; the log has the place";
const FOREIGN: &str = "the position is of another history: the data directory was restored or cut";

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
    /// Time between refusals since the last other result.
    refused_for: Duration,
    /// Time of the last result, if it was a refusal.
    refused_at: Option<Instant>,
    /// Number of reads that failed since the last good one, because kept changes could not be read.
    unread: u32,
    /// Time of the next read.
    read_from: Instant,
    /// Whether the position is known to be one of this feed: see [`Stored`].
    is_verified: bool,
    /// Dead letters to send again.
    resend: VecDeque<DeadLetter>,
    /// Position of a new webhook, if `stored` is not loaded yet.
    unopened: Option<String>,
    /// Time from which `stored` must be written; `None` if it is written.
    save_from: Option<Instant>,
    saved: Instant,
    /// Write of `stored` that was not waited for.
    saving: Option<JoinHandle<io::Result<()>>>,
}

impl<S: Source> Delivery<S> {
    pub(crate) fn new(
        (webhook, source, shared): (Arc<Webhook>, Arc<S>, Arc<Shared>),
        path: PathBuf,
        (tls, options): (Arc<ClientConfig>, Options),
    ) -> Self {
        Self {
            webhook,
            source,
            shared,
            path,
            stored: Stored::default(),
            options,
            client: Client::new(tls, options.limits()),
            size: CHANGES_MAX,
            failures: 0,
            refused_for: Duration::ZERO,
            refused_at: None,
            unread: 0,
            read_from: Instant::now(),
            is_verified: false,
            resend: VecDeque::new(),
            unopened: None,
            save_from: None,
            saved: Instant::now(),
            saving: None,
        }
    }

    /// Reads the position; that of a new webhook is `end`, and is stored.
    ///
    /// # Errors
    /// If the file cannot be read or stored. Nothing is sent until [`Delivery::work`] has tried again.
    pub(crate) async fn open(&mut self, end: String) -> io::Result<()> {
        let (path, beginning) = (self.path.clone(), end.clone());
        let opened = spawn_blocking(move || Stored::open(&path, beginning, now_ms())).await;
        match opened.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(stored) => {
                (self.stored, self.unopened) = (stored, None);
                self.show();
                Ok(())
            }
            Err(error) => {
                let name = &self.webhook.name;
                tracing::error!(name, %error, "cannot read or store the position of a webhook");
                self.unopened = Some(end);
                Err(error)
            }
        }
    }

    /// Works until `stop` is true, and writes the position.
    pub(crate) async fn run(
        mut self,
        mut stop: watch::Receiver<bool>,
        mut requests: mpsc::Receiver<Request>,
    ) {
        let mut work = async |delivery: &mut Self| {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => {}
                never = delivery.work(&mut requests) => match never {},
            }
        };
        while catch_panic(work(&mut self)).await.is_err() {
            self.recover();
        }
        if self.unopened.is_none() {
            let _ = self.save().await;
        }
    }

    /// Shows a panic, and has the next read wait. The position is right: it moves after a request was accepted.
    fn recover(&mut self) {
        tracing::error!(name = self.webhook.name, "sending a webhook has panicked; it continues");
        self.shared.update(|status| {
            status.panics += 1;
            status.error = Some((now_ms(), PANICKED.to_owned()));
        });
        self.client.disconnect();
        self.resend.clear();
        self.read_from = Instant::now() + self.next_pause();
    }

    async fn work(&mut self, requests: &mut mpsc::Receiver<Request>) -> Infallible {
        loop {
            tokio::select! {
                biased;
                Some((action, answer)) = requests.recv() => {
                    let _ = answer.send(self.act(action).await);
                }
                () = self.turn() => {}
            }
        }
    }

    /// Reads once, and sends what it reads. May be abandoned at any await.
    async fn turn(&mut self) {
        if let Some(end) = self.unopened.clone() {
            if let Err(error) = self.open(end).await {
                self.pause(&error.to_string()).await;
            }
            return;
        }
        if self.save_from.is_some_and(|from| from <= Instant::now()) {
            let _ = self.save().await;
        }
        if let Some(letter) = self.resend.front().cloned() {
            return self.send_again(&letter).await;
        }
        sleep_until(self.read_from).await;
        self.read_from = Instant::now() + self.options.pace;
        let after = self.stored.after.clone();
        if !self.is_verified && !self.verify().await {
            return;
        }
        match self.source.read(after.as_deref(), &self.wanted(self.size)).await {
            Ok(page) => {
                self.unread = 0;
                if page.has_more {
                    self.read_from = Instant::now();
                }
                if page.changes.is_empty() {
                    self.wait(page).await;
                } else {
                    self.deliver(page).await;
                }
            }
            Err(ReadError::Gone) => self.pass_gap(after).await,
            Err(error) => self.pause(&error.to_string()).await,
        }
    }

    /// Checks whether the last change before the position is still the same one; otherwise begins with the oldest kept
    /// change. Returns false if this was no success yet.
    async fn verify(&mut self) -> bool {
        let Some((position, time_ms)) = self.stored.last_read.clone() else {
            self.is_verified = true;
            return true;
        };
        let wanted = Wanted { kinds: Arc::new([]), ..self.wanted(1) };
        let read = self.source.read(Some(&self.source.before(&position)), &wanted).await;
        let is_same = match read {
            Ok(page) => match page.changes.first() {
                Some(change) => change.position == position && change.time_ms == time_ms,
                // Another node of the cluster may be ahead of this one.
                None => return true,
            },
            // No longer kept.
            Err(ReadError::Gone) => true,
            Err(error) => {
                self.pause(&error.to_string()).await;
                return false;
            }
        };
        self.is_verified = true;
        if !is_same {
            self.skip_gap(None, FOREIGN).await;
        }
        is_same
    }

    /// Continues after changes that cannot be read. What cannot be read although it is kept is tried several times.
    async fn pass_gap(&mut self, after: Option<String>) {
        match self.source.gap(after.as_deref()).await {
            Ok(Gap::Foreign) => self.skip_gap(None, FOREIGN).await,
            Ok(Gap::Removed(to)) => self.skip_gap(Some(to), &ReadError::Gone.to_string()).await,
            Ok(Gap::Damaged(to)) if self.unread >= UNREAD_MAX => {
                self.unread = 0;
                self.skip_gap(Some(to), UNREADABLE).await;
            }
            Ok(Gap::Damaged(_)) => {
                self.unread += 1;
                self.pause(UNREADABLE).await;
            }
            Err(error) => self.pause(&error.to_string()).await,
        }
    }

    async fn skip_gap(&mut self, to: Option<String>, why: &str) {
        let (name, after) = (&self.webhook.name, self.stored.after.clone().unwrap_or_default());
        tracing::error!(name, after, to, why, "a webhook cannot deliver changes");
        self.stored.skip_gap(after, to, now_ms(), why);
        let _ = self.save().await;
    }

    fn wanted(&self, changes_max: usize) -> Wanted {
        let (kinds, ids_only) = (Arc::clone(&self.webhook.kinds), self.webhook.ids_only);
        Wanted { changes_max, bytes: BODY_BYTES, kinds, ids_only }
    }

    /// Waits for changes after a page without any.
    async fn wait(&mut self, Page { next, last_read, has_more, .. }: Page) {
        if self.stored.after.as_ref() != Some(&next) {
            self.stored.advance(next.clone(), last_read);
            self.save_within(SAVE_IDLE_EVERY);
        }
        self.succeeded(has_more);
        if has_more {
            return;
        }
        let saving = async {
            match self.save_from {
                Some(from) => sleep_until(from).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.source.wait(&next) => {}
            () = saving => {}
        }
    }

    /// Sends a page of changes. Moves after them if they are accepted, or pauses.
    async fn deliver(&mut self, Page { changes, next, last_read, .. }: Page) {
        let (count, id) = (changes.len(), self.stored.message_id(&self.webhook, &changes));
        let first = changes.first().map(|first| (first.position.clone(), first.time_ms));
        let Some((position, since)) = first else { return };
        self.shared.update(|status| status.pending_since_ms = Some(since));
        let message = Message { id, body: self.body(&changes) };
        drop(changes);
        let sent = self.client.send(&self.webhook, &message).await;
        drop(message);
        match sent {
            Ok(_) => {
                self.stored.advance(next, last_read);
                self.save_within(SAVE_EVERY);
                self.size = (2 * self.size).min(CHANGES_MAX);
                self.count_accepted(count as u64);
                self.succeeded(true);
            }
            Err(error) => self.failed(&position, (next, last_read), count, &error).await,
        }
    }

    /// Handles the failure of a request with `count` changes, of which the first has the position, and after which
    /// `after` is the place.
    async fn failed(
        &mut self,
        position: &str,
        (next, last_read): (String, Option<(String, u64)>),
        count: usize,
        error: &SendError,
    ) {
        self.shared.update(|status| status.failed += 1);
        let text = error.to_string();
        if error.is_refusal() {
            self.size = (count / 2).max(1);
            let now = Instant::now();
            let since_last = self.refused_at.map_or(Duration::ZERO, |last| now - last);
            self.refused_for += since_last.min(self.options.pause_max);
            self.refused_at = Some(now);
            let is_over = self.refused_for >= self.options.give_up_after;
            if count == 1 && is_over && self.stored.give_up(position, now_ms(), &text) {
                let name = &self.webhook.name;
                tracing::error!(name, position, error = text, "a webhook gives up a change");
                self.stored.advance(next, last_read);
                self.failures = 0;
                self.not_refused();
                let _ = self.save().await;
                return;
            }
        } else {
            self.not_refused();
        }
        self.pause(&text).await;
    }

    fn not_refused(&mut self) {
        (self.refused_for, self.refused_at) = (Duration::ZERO, None);
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
            let _ = self.save().await;
        }
        sleep(self.next_pause()).await;
    }

    /// Counts a failure, and returns the pause after it.
    fn next_pause(&mut self) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let pause = self.options.pause_min.saturating_mul(doubled).min(self.options.pause_max);
        self.failures = self.failures.saturating_add(1).min(u32::BITS - 1);
        jittered(pause)
    }

    /// Shows a success. `has_more` is whether there may be changes that were not delivered.
    fn succeeded(&mut self, has_more: bool) {
        if self.failures > 0 {
            tracing::info!(name = self.webhook.name, "a webhook works again");
        }
        self.failures = 0;
        self.not_refused();
        let (after, last_read) = (self.stored.after.clone(), &self.stored.last_read);
        let since = last_read.as_ref().filter(|_| has_more).map(|(_, time_ms)| *time_ms);
        self.shared.update(|status| {
            (status.after, status.error, status.pending_since_ms) = (after, None, since);
        });
    }

    fn count_accepted(&self, changes: u64) {
        self.shared.update(|status| {
            status.changes += changes;
            status.accepted += 1;
            status.delivered_ms = Some(now_ms());
        });
    }

    /// Executes an action, and stores its effect.
    ///
    /// # Errors
    /// [`ActionError`]
    async fn act(&mut self, action: Action) -> Result<(), ActionError> {
        if let Some(end) = self.unopened.clone() {
            self.open(end).await.map_err(|error| ActionError::Store(error.to_string()))?;
        }
        match action {
            Action::SendAfter(position) => {
                let after = self.stored.after.as_deref();
                if after.is_none_or(|after| self.source.is_after(&position, after)) {
                    return Err(ActionError::Ahead);
                }
                self.stored.replay_from(Some(position));
            }
            Action::SendOldest => self.stored.replay_from(None),
            Action::DropDeadLetters => {
                self.stored.dead.clear();
                self.resend.clear();
            }
            Action::SendDeadLetters => {
                self.stored.replay = random();
                let letters = self.stored.dead.iter().filter(|letter| !letter.is_gap);
                self.resend = letters.cloned().collect();
            }
        }
        (self.size, self.failures) = (CHANGES_MAX, 0);
        self.not_refused();
        self.save().await.map_err(|error| ActionError::Store(error.to_string()))
    }

    /// Sends a change that was given up, and forgets it if it is accepted or no longer kept. After a failure that is
    /// not a refusal, the others are not sent.
    async fn send_again(&mut self, letter: &DeadLetter) {
        let position = &letter.position;
        let before = self.source.before(position);
        let wanted = Wanted { kinds: Arc::new([]), ..self.wanted(1) };
        let changes = match self.source.read(Some(&before), &wanted).await {
            Ok(page) => page.changes,
            Err(ReadError::Gone) => Vec::new(),
            Err(error) => {
                self.resend.clear();
                return self.pause(&error.to_string()).await;
            }
        };
        let mut left = None;
        if changes.first().is_some_and(|change| change.position == *position) {
            let id = self.stored.message_id(&self.webhook, &changes);
            let message = Message { id, body: self.body(&changes) };
            match self.client.send(&self.webhook, &message).await {
                Ok(_) => self.count_accepted(1),
                Err(error) => {
                    self.shared.update(|status| status.failed += 1);
                    if !error.is_refusal() {
                        self.resend.clear();
                    }
                    left = Some(letter.with(&error));
                }
            }
        } else {
            let name = &self.webhook.name;
            tracing::warn!(name, position, "a change that a webhook gave up is no longer kept");
        }
        drop(self.resend.pop_front());
        if let Some(at) = self.stored.dead.iter().position(|known| known == letter) {
            drop(self.stored.dead.splice(at..=at, left));
        }
        let _ = self.save().await;
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

    /// Writes the state, and shows it to operators. A failure is logged, and the write is tried again.
    ///
    /// # Errors
    /// If it cannot be written.
    async fn save(&mut self) -> io::Result<()> {
        // The write before this one may have been abandoned, and must not replace this one.
        if let Some(saving) = &mut self.saving {
            drop(saving.await);
        }
        let (stored, path) = (self.stored.clone(), self.path.clone());
        let saving = self.saving.insert(spawn_blocking(move || stored.save(&path)));
        let saved = saving.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        self.saving = None;
        (self.save_from, self.saved) = (None, Instant::now());
        if let Err(error) = &saved {
            let name = &self.webhook.name;
            tracing::error!(name, %error, "cannot store the position of a webhook");
            self.save_within(SAVE_IDLE_EVERY);
        }
        self.show();
        saved
    }

    fn show(&self) {
        let (after, dead) = (self.stored.after.clone(), self.stored.dead.clone());
        self.shared.update(|status| (status.after, status.dead) = (after, dead));
    }
}

impl DeadLetter {
    fn with(&self, error: &dyn std::fmt::Display) -> Self {
        Self { at_ms: now_ms(), error: shortened(&error.to_string()), ..self.clone() }
    }
}

/// Runs a future; `Err` if it panics.
async fn catch_panic<F: Future>(future: F) -> thread::Result<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
    })
    .await
}

/// Returns a random time between half of the pause and all of it.
fn jittered(pause: Duration) -> Duration {
    let share = f64::from(u32::try_from(random() >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
    pause.mul_f64(0.5 + share / 2.0)
}
