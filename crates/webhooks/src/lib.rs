//! Webhooks: signed requests that send changes to the other systems of a product.
//!
//! Each [`Webhook`] has a task (`delivery`) that reads changes from a [`Source`] after its position, sends them in one
//! request at a time (`client`), and stores its position (`stored`). So each change is sent at least once, and all in
//! order. `address` decides which addresses may be called, `secret` signs, `target` parses URLs.
//!
//! The crate owns the stored positions and the connections. It does not know the server: a [`Source`] gives it
//! positions as text and changes as JSON.
//!
//! **Invariant:** a position is stored only after the receiver has accepted everything before it, or the change is in
//! the list of those given up.
//! **Invariant:** a receiver delays nothing but its own webhook, and the memory of a webhook is bounded.
//! **Invariant:** secrets and paths of URLs are in no log and no error.

mod address;
mod client;
mod delivery;
mod metrics;
mod secret;
mod status;
mod stored;
mod target;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ClientConfig;

use client::Limits;
use delivery::Delivery;
use status::Shared;

pub use client::{SendError, ping, system_tls, tls_with};
pub use metrics::Metrics;
pub use secret::{Secret, SecretError};
pub use status::Status;
pub use stored::{DEAD_MAX, DeadLetter};
pub use target::{Target, TargetError};

/// Maximum number of webhooks.
pub const WEBHOOKS_MAX: usize = 16;
/// Maximum number of changes of a request.
pub const CHANGES_MAX: usize = 100;
/// Number of bytes of changes with which a request is full. The last change may exceed it.
pub const BODY_BYTES: usize = 128 << 10;
/// Maximum memory of all webhooks, in bytes: each has a request as changes, as a body and as written bytes, and the
/// buffers of a connection.
pub const MEMORY: u64 = WEBHOOKS_MAX as u64 * (1 << 20);
/// Longest name of a webhook.
const NAME_BYTES_MAX: usize = 64;

/// Receiver of changes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Name: see [`is_name`].
    pub name: String,
    /// URL to which changes are sent.
    pub url: Target,
    /// Key of the signatures.
    pub secret: Secret,
    /// Kinds of changes to send; empty for all.
    pub kinds: Arc<[String]>,
    /// Whether changes have ids and no content.
    pub ids_only: bool,
    /// Whether the URL may be that of a private network or of this machine.
    pub allow_private: bool,
}

/// Whether a text can be the name of a webhook: 1 to 64 of a-z A-Z 0-9 _ . -
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(fits)
}

/// Changes to read.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Maximum number of changes.
    pub changes_max: usize,
    /// Number of bytes of JSON with which the page is full. The last change may exceed it.
    pub bytes: usize,
    /// Kinds of changes; empty for all.
    pub kinds: Arc<[String]>,
    /// Whether changes have ids and no content.
    pub ids_only: bool,
}

/// Changes after a position.
#[derive(Debug, Default)]
pub struct Page {
    /// The changes, oldest first.
    pub changes: Vec<Change>,
    /// Position after which to read next.
    pub next: String,
    /// Position and time of the last change before `next`, wanted or not, in milliseconds since 1970.
    pub last_read: Option<(String, u64)>,
    /// Whether more changes can be read at once.
    pub has_more: bool,
}

/// Why changes after a position are [`ReadError::Gone`], and where to continue.
#[derive(Debug)]
pub enum Gap {
    /// The position is after the end: it is one of another history.
    Foreign,
    /// The changes were removed up to this position.
    Removed(String),
    /// The changes up to this position cannot be read, perhaps only for now.
    Damaged(String),
}

/// Change as JSON.
#[derive(Debug)]
pub struct Change {
    /// Position.
    pub position: String,
    /// Time of the change in milliseconds since 1970.
    pub time_ms: u64,
    /// The change as JSON.
    pub json: Vec<u8>,
}

/// Reason why changes cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The changes after the position are not kept.
    #[error("the changes after this position are not kept")]
    Gone,
    /// Changes cannot be read for now.
    #[error("{0}")]
    Unavailable(String),
}

/// Source of changes.
pub trait Source: Send + Sync + 'static {
    /// Reads changes after a position, or from the oldest kept one on. The page may be empty although there are more
    /// changes after its end.
    fn read(
        &self,
        after: Option<&str>,
        wanted: &Wanted,
    ) -> impl Future<Output = Result<Page, ReadError>> + Send;

    /// Waits until there may be changes after a position.
    fn wait(&self, after: &str) -> impl Future<Output = ()> + Send;

    /// Returns the position after all changes so far.
    fn end(&self) -> String;

    /// Returns the position before the change at a position.
    fn before(&self, position: &str) -> String;

    /// Whether a position is after another one.
    fn is_after(&self, position: &str, other: &str) -> bool;

    /// Returns why changes after a position are gone. A position to continue after is after it.
    fn gap(&self, after: Option<&str>) -> impl Future<Output = Result<Gap, ReadError>> + Send;
}

/// Times of deliveries.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Limit for looking up the name, connecting and the TLS handshake (10 s).
    pub connect_timeout: Duration,
    /// Limit for the request and its response (15 s).
    pub response_timeout: Duration,
    /// Pause after the first failure (1 s). It doubles with each further one.
    pub pause_min: Duration,
    /// Longest pause after a failure (5 min).
    pub pause_max: Duration,
    /// Time for which a change must be refused before it is given up (1 day). Only time between two refusals with
    /// nothing else between them counts, and at most `pause_max` of it.
    pub give_up_after: Duration,
    /// Shortest time between two reads of a webhook that has read everything (50 ms).
    pub pace: Duration,
    /// Longest idle time of a connection that is used again (3 s). Many servers close idle connections after 5 s.
    pub idle_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(15),
            pause_min: Duration::from_secs(1),
            pause_max: Duration::from_secs(300),
            give_up_after: Duration::from_secs(86_400),
            pace: Duration::from_millis(50),
            idle_max: Duration::from_secs(3),
        }
    }
}

impl Options {
    fn limits(&self) -> Limits {
        let (connect, response) = (self.connect_timeout, self.response_timeout);
        Limits { connect, response, idle: self.idle_max }
    }
}

/// Request of an operator to a webhook.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Send everything after a position.
    SendAfter(String),
    /// Send everything that is kept.
    SendOldest,
    /// Send the dead letters, and drop those that are no longer kept.
    SendDeadLetters,
    /// Drop the dead letters.
    DropDeadLetters,
}

/// Reason why an action was not executed.
#[derive(Debug, Error)]
pub enum ActionError {
    /// There is no webhook with this name.
    #[error("there is no such webhook")]
    Unknown,
    /// Changes would be skipped.
    #[error("the position is after the last delivered change; replay only goes back")]
    Ahead,
    /// The state cannot be stored.
    #[error("the position cannot be stored: {0}")]
    Store(String),
    /// The webhook was stopped meanwhile.
    #[error("the webhook was stopped meanwhile")]
    Stopped,
}

/// Reason why webhooks were not loaded.
#[derive(Debug, Error)]
pub enum LoadError<E: Display> {
    /// They cannot be read. Nothing has changed.
    #[error("{0:#}")]
    Read(E),
    /// The position of a webhook cannot be read or stored. The webhooks are replaced all the same; this one sends
    /// nothing, and tries again.
    #[error("the position of a webhook cannot be stored, which is tried again: {0}")]
    Store(io::Error),
}

/// Action, and where its result is sent.
pub(crate) type Request = (Action, oneshot::Sender<Result<(), ActionError>>);

/// All webhooks of a server.
pub struct Webhooks<S> {
    folder: PathBuf,
    source: Arc<S>,
    options: Options,
    tls: Arc<ClientConfig>,
    state: Arc<Mutex<State>>,
    /// Held while webhooks are read, started and stopped. True after the last stop.
    changing: tokio::sync::Mutex<bool>,
}

/// Webhooks that operators see.
#[derive(Default)]
struct State {
    running: BTreeMap<String, Running>,
    /// Error of the last load.
    load_error: Option<String>,
}

/// Webhook whose task runs.
struct Running {
    webhook: Arc<Webhook>,
    shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl<S: Source> Webhooks<S> {
    /// Creates a sender without webhooks. `folder` is for their positions, and created when it is needed.
    #[must_use]
    pub fn new(folder: PathBuf, source: S, tls: Arc<ClientConfig>, options: Options) -> Self {
        let (source, state, changing) = (Arc::new(source), Arc::default(), Default::default());
        Self { folder, source, options, tls, state, changing }
    }

    /// Reads the webhooks, and replaces the present ones. Those that stay the same are not interrupted; others continue
    /// after their stored position. A new one begins with the next change. Calls take turns, each from its read on, so
    /// the webhooks that were read last stay. Must not be abandoned: webhooks could stay stopped.
    ///
    /// # Errors
    /// [`LoadError`]. [`LoadError::Read`] is shown in [`Webhooks::load_error`] and in the metrics until the next
    /// success; after [`LoadError::Store`] the webhooks run, and the one that could not be stored tries again.
    pub async fn load<E: Display>(
        &self,
        read: impl Future<Output = Result<Vec<Webhook>, E>>,
    ) -> Result<(), LoadError<E>> {
        let is_stopped = self.changing.lock().await;
        if *is_stopped {
            return Ok(());
        }
        let loaded = match read.await {
            Ok(webhooks) => self.replace(webhooks).await.map_err(LoadError::Store),
            Err(error) => Err(LoadError::Read(error)),
        };
        let unread = loaded.as_ref().err().filter(|error| matches!(error, LoadError::Read(_)));
        self.state.lock().load_error = unread.map(ToString::to_string);
        loaded
    }

    async fn replace(&self, webhooks: Vec<Webhook>) -> io::Result<()> {
        let stopped: Vec<Running> = {
            let mut state = self.state.lock();
            let is_kept = |webhook: &Webhook| webhooks.contains(webhook);
            state
                .running
                .extract_if(.., |_, running| !is_kept(&running.webhook))
                .map(|(_, r)| r)
                .collect()
        };
        stop(stopped).await;
        let mut result = Ok(());
        for webhook in webhooks {
            if !self.state.lock().running.contains_key(&webhook.name) {
                let (running, opened) = self.start(webhook).await;
                self.state.lock().running.insert(running.webhook.name.clone(), running);
                result = result.and(opened);
            }
        }
        result
    }

    async fn start(&self, webhook: Webhook) -> (Running, io::Result<()>) {
        let webhook = Arc::new(webhook);
        let path = self.folder.join(format!("{}.json", webhook.name));
        let end = self.source.end();
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = watch::channel(false);
        let (requests, requested) = mpsc::channel(1);
        let mut delivery = Delivery::new(
            (Arc::clone(&webhook), Arc::clone(&self.source), Arc::clone(&shared)),
            path,
            (Arc::clone(&self.tls), self.options),
        );
        let opened = delivery.open(end).await;
        let task = tokio::spawn(delivery.run(stopped, requested));
        (Running { webhook, shared, requests, stop, task }, opened)
    }

    /// Returns the state of every webhook.
    #[must_use]
    pub fn status(&self) -> Vec<(Arc<Webhook>, Status)> {
        let running = &self.state.lock().running;
        running.values().map(|r| (Arc::clone(&r.webhook), r.shared.status())).collect()
    }

    /// Returns the error of the last [`Webhooks::load`], if it failed.
    #[must_use]
    pub fn load_error(&self) -> Option<String> {
        self.state.lock().load_error.clone()
    }

    /// Executes an action of a webhook. A request to the receiver that is on its way is repeated later.
    ///
    /// # Errors
    /// [`ActionError`]; nothing is changed, except after [`ActionError::Store`].
    pub async fn act(&self, name: &str, action: Action) -> Result<(), ActionError> {
        let requests = self.state.lock().running.get(name).map(|running| running.requests.clone());
        let requests = requests.ok_or(ActionError::Unknown)?;
        let (answer, answered) = oneshot::channel();
        let sent = requests.send((action, answer)).await;
        sent.map_err(|_| ActionError::Stopped)?;
        answered.await.unwrap_or(Err(ActionError::Stopped))
    }

    /// Returns the metrics of all webhooks.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics::new(Arc::clone(&self.state))
    }

    /// Stops all webhooks, and stores their positions. No others are started afterwards.
    pub async fn stop(&self) {
        let mut is_stopped = self.changing.lock().await;
        *is_stopped = true;
        let running = std::mem::take(&mut self.state.lock().running);
        stop(running.into_values().collect()).await;
    }
}

/// Stops these webhooks, and waits until their positions are stored.
async fn stop(running: Vec<Running>) {
    for running in &running {
        running.stop.send_replace(true);
    }
    for running in running {
        drop(running.task.await);
    }
}

/// Returns a random number; the time if the operating system has no random bytes.
fn random() -> u64 {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_or_else(|_| now_ms(), |()| u64::from_le_bytes(random))
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
