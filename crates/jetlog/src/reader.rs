//! Task that reads the messages of the stream in order.
//!
//! After each interruption, the task creates a new consumer that begins after the last position. It compares the
//! positions of messages, so it does not depend on how the broker or the client library recovers.
//!
//! **Invariant:** messages are passed on in the order of positions, each once. If a message cannot be passed on, the
//! log stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::{Config, MessagesErrorKind};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{Info, RawMessageErrorKind, State, Stream};
use bytes::Bytes;
use commitlog::{Arrived, ClusterId, GroupId, Position};
use futures_util::StreamExt as _;
use tokio::sync::{Semaphore, mpsc};

use crate::connect::with_causes;
use crate::error::JetLogError;
use crate::message::{FORMAT_VERSION, Malformed, Message as Group, decode};
use crate::shared::Shared;
use crate::window::Arrival;
use crate::{JetLogOptions, Received, stream};

/// Interval at which a server shows that the consumer exists. After two missed intervals, the consumer is created
/// again.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Time for which one pull is open at a server.
const PULL: Duration = Duration::from_secs(10);
/// Time without an answer after which the task connects to another server.
const INFO_TIMEOUT: Duration = Duration::from_secs(1);
/// Time after which the server removes an unused consumer.
const INACTIVE: Duration = Duration::from_secs(30);
/// Maximum size of messages in the client library, in bytes, in addition to [`crate::QUEUE_BYTES`].
const PULL_BYTES: usize = 8 << 20;
/// First pause after an interruption; later pauses double up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Time for which a stream may end too early: a new leader may not have applied everything yet.
const SHORT_FOR: Duration = Duration::from_secs(5);

/// Reason why reading was interrupted.
enum Interrupted {
    /// The reason may be temporary.
    Retry(String),
    /// A permanent error.
    Stop(JetLogError),
    /// The log was dropped.
    Closed,
}

impl From<JetLogError> for Interrupted {
    fn from(error: JetLogError) -> Self {
        Self::Stop(error)
    }
}

/// State of the task.
pub(crate) struct Reader {
    pub(crate) client: Client,
    pub(crate) stream: Stream,
    pub(crate) options: JetLogOptions,
    pub(crate) cluster: ClusterId,
    /// Position of the last message that was passed on.
    pub(crate) last: Position,
    /// Last message that was passed on, or that the node had applied before. The stream must still have it at this
    /// position.
    pub(crate) known: Option<(Position, GroupId)>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) arrivals: mpsc::Sender<Result<Received, JetLogError>>,
    /// Number of bytes that may wait in `arrivals`.
    pub(crate) queue_bytes: Arc<Semaphore>,
    /// Maximum length of a message that the servers accept.
    pub(crate) message_bytes_max: usize,
    /// Time since which the stream ends before `last`.
    pub(crate) short_since: Option<Instant>,
}

impl Reader {
    /// Reads until the log is dropped or cannot continue.
    pub(crate) async fn run(mut self) {
        let mut pause = PAUSE;
        loop {
            let before = self.last;
            match self.read().await {
                Interrupted::Closed => return,
                Interrupted::Stop(error) => {
                    self.arrivals.send(Err(error)).await.ok();
                    self.shared.wake();
                    return;
                }
                Interrupted::Retry(reason) => self.shared.report(&reason),
            }
            pause = if self.last > before { PAUSE } else { (pause * 2).min(PAUSE_MAX) };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.arrivals.closed() => return,
            }
        }
    }

    /// Reads until an error, and returns it.
    async fn read(&mut self) -> Interrupted {
        match self.try_read().await {
            Err(interrupted) => interrupted,
            Ok(()) => Interrupted::Retry("the messages of the stream ended".into()),
        }
    }

    async fn try_read(&mut self) -> Result<(), Interrupted> {
        let info = self.info().await?;
        match stream::check(&info.config, &self.options, self.cluster) {
            // Changes are refused meanwhile (see `watch`), but reading continues.
            Err(error @ JetLogError::Config { .. }) => self.shared.refuse(Some(error.to_string())),
            checked => checked?,
        }
        self.check_ends(&info.state)?;
        self.check_known(&info.state).await?;
        let config = Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.last.0 + 1 },
            ack_policy: AckPolicy::None,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: INACTIVE,
            ..Config::default()
        };
        let retry = |error: &dyn std::error::Error| {
            Interrupted::Retry(format!("the stream cannot be read: {}", with_causes(error)))
        };
        let consumer = self.stream.create_consumer(config).await.map_err(|error| retry(&error))?;
        let messages = consumer.stream().heartbeat(HEARTBEAT).expires(PULL);
        let messages = messages.max_bytes_per_batch(PULL_BYTES.max(2 * self.message_bytes_max));
        let mut messages = messages.messages().await.map_err(|error| retry(&error))?;
        loop {
            let message = tokio::select! {
                message = messages.next() => message,
                () = self.arrivals.closed() => return Err(Interrupted::Closed),
            };
            match message {
                None => return Ok(()),
                Some(Ok(message)) => self.pass_on(&message).await?,
                Some(Err(error)) if error.kind() == MessagesErrorKind::MissingHeartbeat => {
                    return Err(Interrupted::Retry("the server of the consumer is silent".into()));
                }
                Some(Err(error)) => return Err(retry(&error)),
            }
        }
    }

    async fn info(&self) -> Result<Info, Interrupted> {
        match tokio::time::timeout(INFO_TIMEOUT, self.stream.get_info()).await {
            Ok(Ok(info)) => Ok(info),
            Ok(Err(error)) => Err(Interrupted::Retry(with_causes(&error))),
            Err(_) => {
                // The server may have stopped without closing the connection.
                self.client.force_reconnect().await.ok();
                Err(Interrupted::Retry("JetStream does not answer".into()))
            }
        }
    }

    /// Checks that the stream still has the next message, and does not end before the last read message.
    fn check_ends(&mut self, state: &State) -> Result<(), Interrupted> {
        match check_ends(state, self.last) {
            Err(JetLogError::Shorter { .. })
                if self.short_since.get_or_insert_with(Instant::now).elapsed() < SHORT_FOR =>
            {
                Err(Interrupted::Retry("the leader of the stream lags".into()))
            }
            Err(error) => Err(error.into()),
            Ok(()) => {
                self.short_since = None;
                Ok(())
            }
        }
    }

    /// Checks that the stream has the next message, and has the applied group at its position.
    ///
    /// # Errors
    /// [`JetLogError`]
    pub(crate) async fn check_at_open(&self) -> Result<(), JetLogError> {
        let state = &self.stream.cached_info().state;
        check_ends(state, self.last)?;
        match self.check_known(state).await {
            Err(Interrupted::Stop(error)) => Err(error),
            Err(Interrupted::Retry(reason)) => {
                Err(JetLogError::Request { doing: "read the stream", reason })
            }
            Ok(()) | Err(Interrupted::Closed) => Ok(()),
        }
    }

    /// Checks that the message at a known position is unchanged, unless it was removed with all messages before it. If
    /// a stream has lost its last messages and was continued, another message is there.
    async fn check_known(&self, state: &State) -> Result<(), Interrupted> {
        let Some((position, id)) = self.known.filter(|(at, _)| at.0 >= state.first_sequence) else {
            return Ok(());
        };
        let read = self.stream.get_raw_message(position.0);
        let message = match tokio::time::timeout(INFO_TIMEOUT, read).await {
            Ok(Ok(message)) => message,
            Ok(Err(error)) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                return Err(JetLogError::Missing { position }.into());
            }
            Ok(Err(error)) => return Err(Interrupted::Retry(with_causes(&error))),
            Err(_) => return Err(Interrupted::Retry("JetStream does not answer".into())),
        };
        match group(&message.payload, position)?.map_or(GroupId::NONE, |group| group.id) == id {
            true => Ok(()),
            false => Err(JetLogError::Differs { position }.into()),
        }
    }

    async fn pass_on(&mut self, message: &Message) -> Result<(), Interrupted> {
        let info = message.info().map_err(|error| Interrupted::Retry(error.to_string()))?;
        let position = Position(info.stream_sequence);
        if position.0 != self.last.0 + 1 {
            return Err(self.out_of_order(position).await);
        }
        let time_ms = u64::try_from(info.published.unix_timestamp_nanos() / 1_000_000);
        let time_ms = time_ms.unwrap_or_default();
        let message = &message.message.payload;
        let group = group(message, position)?.unwrap_or_else(|| {
            tracing::warn!(
                position = position.0,
                "skipping a message of another program in the stream"
            );
            Group { id: GroupId::NONE, sent_ms: time_ms, payload: Bytes::new() }
        });
        let Group { id, sent_ms, payload } = group;
        let arrival = self.shared.window.lock().arrived((position, id), message, Instant::now());
        match arrival {
            Arrival::Superseded => return Err(JetLogError::Superseded { position }.into()),
            Arrival::Own | Arrival::Other => self.shared.changed.notify_one(),
        }
        self.shared.recovered();
        self.shared.note_end(Position(position.0 + info.pending));
        self.last = position;
        self.known = Some((position, id));
        let is_own = arrival == Arrival::Own;
        let arrived = Arrived { position, time_ms, sent_ms, id, is_own, payload };
        let bytes = u32::try_from(message.len().min(crate::QUEUE_BYTES)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.queue_bytes).acquire_many_owned(bytes).await;
        let permit = permit.map_err(|_| Interrupted::Closed)?;
        let sent = self.arrivals.send(Ok(Received { arrived, _permit: permit })).await;
        sent.map_err(|_| Interrupted::Closed)?;
        self.shared.wake();
        Ok(())
    }

    /// Decides whether the next expected message is lost, or only has not arrived.
    async fn out_of_order(&self, found: Position) -> Interrupted {
        let position = Position(self.last.0 + 1);
        let lost = match self.stream.get_raw_message(position.0).await {
            Ok(_) => false,
            Err(error) => error.kind() == RawMessageErrorKind::NoMessageFound,
        };
        match lost && found > position {
            true => Interrupted::Stop(JetLogError::Missing { position }),
            false => Interrupted::Retry("a message did not arrive".into()),
        }
    }
}

/// Returns the group in a message; `None` if another program wrote it.
fn group(message: &Bytes, position: Position) -> Result<Option<Group>, JetLogError> {
    decode(message).map_err(|error| match error {
        Malformed::Damaged(what) => JetLogError::Damaged { position, what },
        Malformed::Version(found) => {
            JetLogError::Version { position, found, known: FORMAT_VERSION }
        }
    })
}

/// Checks that a stream has the group after `from`, if it was written, and does not end before `from`.
pub(crate) fn check_ends(state: &State, from: Position) -> Result<(), JetLogError> {
    let (first, last) = (Position(state.first_sequence), Position(state.last_sequence));
    if first.0 > from.0 + 1 {
        Err(JetLogError::StartsAfter { first, from })
    } else if last < from {
        Err(JetLogError::Shorter { last, from })
    } else {
        Ok(())
    }
}
