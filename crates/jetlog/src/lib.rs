//! A log that several nodes share. Its groups are messages of one stream of NATS JetStream. The log does not interpret
//! the payloads of groups.
//!
//! [`JetLog::append`] sends a group to the stream. [`JetLog::next`] returns all groups of the stream, those of this
//! node and of others, in an order that is the same for all nodes. The caller decides which groups count, by a rule
//! that depends only on earlier groups: a group counts if it has the next number of the current epoch of its node, or
//! number 1 of a later epoch. Each appended group that comes back thus counts once, even if messages were lost, sent
//! twice or reordered.
//!
//! State: `window` has the groups of this node that have not come back. `publisher`, `reader` and `watch` are tasks on
//! a thread of the log. The caller's thread waits for the network only in [`JetLog::open`] and, for a given time, in
//! [`JetLog::next`]. `files` exchanges files between nodes; it has its own connection and thread, so that long files do
//! not delay groups.
//! - **Invariant:** the positions of consecutive messages are consecutive. A gap, a damaged message, a stream that ends
//!   before the position of the caller, and a different message at the caller's last applied position are errors.
//! - **Invariant:** the total size of pending groups, and of groups that arrived and were not delivered, is bounded.
//! - **Invariant:** after an error other than `Busy` and `Length`, every operation fails.
//!
//! Read `message`, `window`, `publisher`, `reader`, `watch`, then `log`. The required configurations of the two streams
//! are in `stream` and `files/bucket`.

mod connect;
mod error;
mod files;
mod log;
mod message;
mod publisher;
mod reader;
mod shared;
mod stream;
mod watch;
mod window;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{
    CreateStreamErrorKind, GetStreamErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{Context, ErrorCode};
use commitlog::{Applied, Arrived, ClusterId, NodeId, Position};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

pub use connect::JetLogOptions;
pub use error::JetLogError;

use connect::with_causes;
use files::JetFiles;
use message::HEADER_BYTES;
use reader::Reader;
use shared::Shared;
use window::Window;

/// Maximum size of groups that arrived and were not delivered, in bytes. A longer group is allowed if it is the only
/// one.
pub(crate) const QUEUE_BYTES: usize = 16 << 20;
/// Maximum number of groups that arrived and were not delivered.
const QUEUE_GROUPS: usize = 4_096;

/// Group, and the memory reserved for it.
struct Received {
    arrived: Arrived,
    _permit: OwnedSemaphorePermit,
}

/// Log in a stream of NATS JetStream.
pub struct JetLog {
    shared: Arc<Shared>,
    arrivals: mpsc::Receiver<Result<Received, JetLogError>>,
    node: NodeId,
    /// Last position of the stream when it was opened.
    last_at_open: Position,
    /// Position of the last delivered group.
    last: Position,
    payload_bytes_max: usize,
    stopped: bool,
    stream: Stream,
    files: Arc<JetFiles>,
    /// Runtime of the tasks. It is the last field: the tasks end when the other fields are dropped.
    runtime: Runtime,
}

impl JetLog {
    /// Creates the stream of a new cluster. The next group will be the one after `after`. Blocks.
    ///
    /// # Errors
    /// [`JetLogError`]; also if the stream exists with another configuration.
    pub fn create(
        options: &JetLogOptions,
        cluster: ClusterId,
        after: Position,
    ) -> Result<(), JetLogError> {
        runtime()?.block_on(async {
            let (_, context) = connect::connect(options, || ()).await?;
            let config = stream::desired(options, cluster, after.0 + 1);
            match context.create_stream(config).await {
                Ok(_) => Ok(()),
                Err(error) if has_no_jetstream(&error.kind()) => Err(JetLogError::NoJetStream),
                Err(error) => Err(request("make the stream", &error)),
            }
        })
    }

    /// Returns the cluster to which the stream belongs. Blocks.
    ///
    /// # Errors
    /// [`JetLogError`]; also if the stream was not made for roost.
    pub fn cluster(options: &JetLogOptions) -> Result<ClusterId, JetLogError> {
        runtime()?.block_on(async {
            let (_, context) = connect::connect(options, || ()).await?;
            let stream = find_stream(&context, options).await?;
            stream::cluster(&stream.cached_info().config, options)
        })
    }

    /// Opens the stream of `cluster` for the node `node`, which has applied all groups up to `applied`. Blocks.
    ///
    /// # Errors
    /// [`JetLogError`]
    pub fn open(
        options: &JetLogOptions,
        (cluster, node): (ClusterId, NodeId),
        applied: Applied,
    ) -> Result<Self, JetLogError> {
        let after = applied.position;
        let runtime = runtime()?;
        let shared = Arc::new(Shared::new(Window::new(node, Instant::now())));
        let (arrived, arrivals) = mpsc::channel(QUEUE_GROUPS);
        let (stream, last, payload_bytes_max) = runtime.block_on(async {
            let reconnected = Arc::clone(&shared);
            let on_connect = move || {
                // Messages sent before may have been lost with the connection.
                reconnected.window.lock().restart(Instant::now());
                reconnected.changed.notify_one();
            };
            let (client, context) = connect::connect(options, on_connect).await?;
            let stream = open_stream(&context, options, cluster).await?;
            let last = Position(stream.cached_info().state.last_sequence);
            let message_bytes_max = client.server_info().max_payload;
            let reader = Reader {
                client: client.clone(),
                stream,
                options: options.clone(),
                cluster,
                last: after,
                known: applied.counted,
                shared: Arc::clone(&shared),
                arrivals: arrived,
                queue_bytes: Arc::new(Semaphore::new(QUEUE_BYTES)),
                message_bytes_max,
                short_since: None,
            };
            reader.check_at_open().await?;
            tokio::spawn(watch::run(
                reader.stream.clone(),
                options.clone(),
                cluster,
                shared.clone(),
            ));
            let stream = reader.stream.clone();
            let (publishes, subject) = (Arc::clone(&shared), options.subject());
            tokio::spawn(publisher::run(client, context, subject, publishes));
            tokio::spawn(reader.run());
            Ok::<_, JetLogError>((stream, last, message_bytes_max.saturating_sub(HEADER_BYTES)))
        })?;
        let files = Arc::new(JetFiles::open(options)?);
        Ok(Self {
            shared,
            arrivals,
            node,
            last_at_open: last,
            last: after,
            payload_bytes_max,
            stopped: false,
            stream,
            files,
            runtime,
        })
    }

    /// Returns the last position of the stream when it was opened.
    #[must_use]
    pub fn last_at_open(&self) -> Position {
        self.last_at_open
    }

    /// Returns the maximum length of a payload that the servers accept, in bytes.
    #[must_use]
    pub fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    /// Lets this node append groups. `epoch` must be greater than all earlier epochs of the node, which the caller
    /// knows when it has all groups up to [`JetLog::last_at_open`]. The current time is used instead if it is greater,
    /// because groups of an earlier process may still arrive.
    ///
    /// # Panics
    /// On a second call.
    pub fn begin(&mut self, epoch: u64) {
        self.shared.window.lock().begin(epoch);
    }

    /// Sends a group to the stream, and returns its number in the epoch. The group has a position and is durable when
    /// it comes back. `time_ms` is the node's time in milliseconds since 1970. Does not wait.
    ///
    /// # Errors
    /// [`JetLogError::Busy`] and [`JetLogError::Length`], which change nothing, and [`JetLogError::Stopped`].
    ///
    /// # Panics
    /// If it is called before [`JetLog::begin`].
    pub fn append(&mut self, payload: &[u8], time_ms: u64) -> Result<u64, JetLogError> {
        let (bytes, max) = (payload.len(), self.payload_bytes_max);
        if self.stopped {
            return Err(JetLogError::Stopped);
        }
        if !(1..=max).contains(&bytes) {
            return Err(JetLogError::Length { bytes, max });
        }
        let mut window = self.shared.window.lock();
        if !window.has_room(bytes) {
            return Err(JetLogError::Busy);
        }
        let number = window.push(payload, time_ms);
        drop(window);
        self.shared.changed.notify_one();
        Ok(number)
    }

    /// Returns the next group of the stream. Waits up to `wait`. Must not be called by async code.
    ///
    /// # Errors
    /// [`JetLogError`]; the log has then stopped.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Arrived>, JetLogError> {
        if self.stopped {
            return Err(JetLogError::Stopped);
        }
        let held = match self.arrivals.try_recv() {
            Ok(held) => held,
            Err(mpsc::error::TryRecvError::Empty) if wait.is_zero() => return Ok(None),
            Err(_) => {
                let received = self
                    .runtime
                    .block_on(async { tokio::time::timeout(wait, self.arrivals.recv()).await });
                match received {
                    Err(_) => return Ok(None),
                    Ok(held) => held.unwrap_or(Err(JetLogError::Stopped)),
                }
            }
        };
        match held {
            Ok(Received { arrived, _permit }) => {
                self.last = arrived.position;
                Ok(Some(arrived))
            }
            Err(error) => {
                self.stopped = true;
                Err(error)
            }
        }
    }

    /// Removes the groups up to a position from the stream, if the servers can do this now. Does not wait.
    pub fn trim(&self, up_to: Position) {
        let (stream, shared) = (self.stream.clone(), Arc::clone(&self.shared));
        self.runtime.spawn(async move {
            match stream.purge().sequence(up_to.0 + 1).await {
                Ok(purged) => {
                    tracing::info!(up_to = up_to.0, groups = purged.purged, "trimmed the stream");
                }
                Err(error) => {
                    shared.report(&format!("cannot trim the stream: {}", with_causes(&error)));
                }
            }
        });
    }

    /// Returns the number of groups of this node that have not come back.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.shared.window.lock().len()
    }

    /// Returns the reason why groups do not come back now, if known. The reason may be temporary.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble()
    }
}

/// Creates the runtime of the tasks, with one thread.
fn runtime() -> Result<Runtime, JetLogError> {
    runtime_on("log")
}

/// Creates a runtime with one thread of this name.
fn runtime_on(name: &str) -> Result<Runtime, JetLogError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build()
        .map_err(JetLogError::Thread)
}

/// Opens the stream and checks its configuration.
async fn open_stream(
    context: &Context,
    options: &JetLogOptions,
    cluster: ClusterId,
) -> Result<Stream, JetLogError> {
    let stream = find_stream(context, options).await?;
    stream::check(&stream.cached_info().config, options, cluster)?;
    Ok(stream)
}

async fn find_stream(context: &Context, options: &JetLogOptions) -> Result<Stream, JetLogError> {
    context.get_stream(&options.stream).await.map_err(|error| match error.kind() {
        GetStreamErrorKind::JetStream(refusal)
            if refusal.error_code() == ErrorCode::STREAM_NOT_FOUND =>
        {
            JetLogError::NoStream { stream: options.stream.clone() }
        }
        GetStreamErrorKind::JetStream(refusal) if is_not_enabled(refusal.error_code()) => {
            JetLogError::NoJetStream
        }
        GetStreamErrorKind::Request if has_no_responders(&error) => JetLogError::NoJetStream,
        _ => request("find the stream", &error),
    })
}

fn is_not_enabled(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT)
}

/// Whether no server handles requests of JetStream.
fn has_no_responders(error: &dyn std::error::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<RequestError>());
    cause.is_some_and(|cause| cause.kind() == RequestErrorKind::NoResponders)
}

fn has_no_jetstream(kind: &CreateStreamErrorKind) -> bool {
    match kind {
        CreateStreamErrorKind::JetStreamUnavailable => true,
        CreateStreamErrorKind::JetStream(refusal) => is_not_enabled(refusal.error_code()),
        _ => false,
    }
}

fn request(doing: &'static str, error: &dyn std::error::Error) -> JetLogError {
    JetLogError::Request { doing, reason: with_causes(error) }
}
