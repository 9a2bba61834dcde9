//! Files that nodes exchange, as messages of a second stream. Each part of a file has a subject, named by the hash of
//! the file.
//!
//! **Invariant:** each caller has a bounded number of pending parts, all of one file.
//! **Invariant:** a file is acknowledged when most servers have all its parts on their disks, and only while the
//! configuration of the stream prevents their loss.

mod bucket;
mod part;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use commitlog::{FileName, FilesError, SharedFiles};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use crate::JetLogOptions;
use crate::connect::{self, with_causes};
use crate::error::JetLogError;

/// Maximum number of pending parts of a file.
const UNDER_WAY: usize = 8;
/// Time within which a part must be acknowledged, or a file read. A caller waits, so this is shorter than an election
/// of the servers may take.
const WITHIN: Duration = Duration::from_secs(5);
/// Pause before a part is sent again.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the configuration of the stream is read.
const INTERVAL: Duration = Duration::from_secs(5);

/// Callback for each file that a node asks for.
type OnRequest = Box<dyn Fn(FileName) + Send + Sync>;

/// Exchange of files through a stream.
pub(crate) struct JetFiles {
    servers: Servers,
    state: Arc<State>,
    /// Runtime; `None` only while it is dropped.
    runtime: Option<Runtime>,
}

#[derive(Clone)]
struct Servers {
    client: Client,
    context: Context,
    options: JetLogOptions,
}

#[derive(Default)]
struct State {
    /// Reason why no file can be stored now.
    refusal: Mutex<Option<String>>,
    on_request: OnceLock<OnRequest>,
}

impl State {
    fn refuse(&self, why: Option<String>) {
        let mut refusal = self.refusal.lock();
        if *refusal == why {
            return;
        }
        match &why {
            Some(why) => tracing::error!("pictures are refused: {why}"),
            None => tracing::info!("the configuration of the stream of files is valid again"),
        }
        *refusal = why;
    }
}

impl JetFiles {
    /// Connects, and creates the stream if it does not exist. Succeeds even if the stream cannot be created or used;
    /// then no file is stored until it can. Blocks.
    ///
    /// # Errors
    /// [`JetLogError`] if no server can be reached.
    pub(crate) fn open(options: &JetLogOptions) -> Result<Self, JetLogError> {
        let runtime = crate::runtime_on("files")?;
        let state = Arc::new(State::default());
        let servers = runtime.block_on(async {
            let (client, context) = connect::connect(options, || ()).await?;
            let requests = client.subscribe(options.requests_subject()).await;
            let requests = requests.map_err(|error| crate::request("listen", &error))?;
            let servers = Servers { client, context, options: options.clone() };
            let is_made = servers.watch(&state, false).await;
            tokio::spawn(listen(requests, Arc::clone(&state)));
            tokio::spawn(watch(servers.clone(), Arc::clone(&state), is_made));
            Ok::<_, JetLogError>(servers)
        })?;
        Ok(Self { servers, state, runtime: Some(runtime) })
    }

    /// Runs a request. Blocks.
    fn run<T>(&self, work: impl Future<Output = Result<T, FilesError>>) -> Result<T, FilesError> {
        let Some(runtime) = &self.runtime else { unreachable!("it ends with this") };
        runtime.block_on(async {
            let done = tokio::time::timeout(WITHIN, work).await;
            done.unwrap_or_else(|_| Err(FilesError("they do not answer in time".into())))
        })
    }
}

impl Drop for JetFiles {
    fn drop(&mut self) {
        // Do not wait, because this may run on an async worker thread.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl SharedFiles for JetFiles {
    fn put(&self, name: &FileName, bytes: &[u8]) -> Result<(), FilesError> {
        if let Some(why) = self.state.refusal.lock().clone() {
            return Err(FilesError(why));
        }
        self.run(async {
            let parts = part::parts(bytes).enumerate();
            let sent = stream::iter(parts).map(|(at, part)| self.servers.send(name, at, part));
            sent.buffered(UNDER_WAY).try_collect().await
        })
    }

    fn get(&self, name: &FileName, bytes_max: usize) -> Result<Option<Vec<u8>>, FilesError> {
        self.run(self.servers.read(name, bytes_max))
    }

    fn ask(&self, name: &FileName) {
        let (servers, name) = (self.servers.clone(), Bytes::copy_from_slice(name));
        let Some(runtime) = &self.runtime else { return };
        // If the request is lost, the caller asks again.
        runtime.spawn(async move {
            let _ = servers.client.publish(servers.options.requests_subject(), name).await;
        });
    }

    fn listen(&self, on_request: OnRequest) {
        assert!(self.state.on_request.set(on_request).is_ok(), "a node listens once");
    }
}

impl Servers {
    fn subject(&self, name: &FileName, at: usize) -> String {
        let digits: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{digits}.{at}", self.options.files_subject())
    }

    /// Sends a part repeatedly until it is acknowledged. The caller limits the time.
    async fn send(&self, name: &FileName, at: usize, part: Bytes) -> Result<(), FilesError> {
        let subject = self.subject(name, at);
        loop {
            let message = PublishMessage::build().payload(part.clone());
            let message = message.expected_stream(self.options.files_stream());
            let sent = match self.context.send_publish(subject.clone(), message).await {
                Ok(sent) => sent.await,
                Err(error) => Err(error),
            };
            let Err(error) = sent else { return Ok(()) };
            tracing::debug!(error = %with_causes(&error), "cannot store a part of a file");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn read(&self, name: &FileName, bytes_max: usize) -> Result<Option<Vec<u8>>, FilesError> {
        let stream = self.context.get_stream_no_info(self.options.files_stream()).await;
        let stream = &stream.map_err(|error| FilesError(with_causes(&error)))?;
        let Some(first) = self.read_part(stream, name, 0).await? else { return Ok(None) };
        let Some((bytes, part)) = part::read(&first).filter(|(bytes, _)| *bytes <= bytes_max)
        else {
            return Ok(None);
        };
        let mut file = Vec::with_capacity(bytes);
        file.extend_from_slice(part);
        let rest = stream::iter(1..part::count(bytes));
        let mut rest = rest.map(|at| self.read_part(stream, name, at)).buffered(UNDER_WAY);
        while let Some(message) = rest.try_next().await? {
            match message.as_deref().and_then(part::read) {
                Some((of, part)) if of == bytes && file.len() + part.len() <= bytes => {
                    file.extend_from_slice(part);
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(file))
    }

    /// Returns the message of a part, if it exists.
    async fn read_part(
        &self,
        stream: &Stream<()>,
        name: &FileName,
        at: usize,
    ) -> Result<Option<Bytes>, FilesError> {
        match stream.direct_get_last_for_subject(self.subject(name, at)).await {
            Ok(message) => Ok(Some(message.payload)),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(FilesError(with_causes(&error))),
        }
    }

    /// Finds the stream, creates it unless `is_made`, and records whether it can be used. Returns whether it exists.
    async fn watch(&self, state: &State, is_made: bool) -> bool {
        let name = self.options.files_stream();
        let found = match self.context.get_stream(&name).await {
            Err(error) if !is_made && is_missing(&error.kind()) => {
                self.context.create_stream(bucket::desired(&self.options)).await.map_err(|error| {
                    let command = bucket::command(&self.options);
                    tracing::warn!(error = %with_causes(&error), "cannot create the stream of files");
                    JetLogError::NoFiles { stream: name, command }
                })
            }
            Err(error) if is_missing(&error.kind()) => {
                Err(JetLogError::NoFiles { stream: name, command: bucket::command(&self.options) })
            }
            // The stream cannot be checked now. The servers do not acknowledge uploads either.
            Err(_) => return is_made,
            Ok(stream) => Ok(stream),
        };
        let exists = found.is_ok();
        let checked =
            found.and_then(|stream| bucket::check(&stream.cached_info().config, &self.options));
        state.refuse(checked.err().map(|error| error.to_string()));
        is_made || exists
    }
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(refusal)
        if refusal.error_code() == async_nats::jetstream::ErrorCode::STREAM_NOT_FOUND)
}

/// Reads the configuration of the stream periodically. Never creates a stream for the second time: the operator must
/// notice that it was removed.
async fn watch(servers: Servers, state: Arc<State>, mut is_made: bool) {
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        interval.tick().await;
        is_made = servers.watch(&state, is_made).await;
    }
}

/// Passes requests of nodes to the callback.
async fn listen(mut requests: Subscriber, state: Arc<State>) {
    while let Some(message) = requests.next().await {
        if let (Ok(name), Some(on_request)) =
            (message.payload[..].try_into(), state.on_request.get())
        {
            on_request(name);
        }
    }
}
