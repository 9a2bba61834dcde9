//! `GET /v1/backup`: a backup of the running server, as a stream.
//!
//! A separate blocking thread makes the backup. After each chunk it pauses for as long as the chunk took, so that it
//! uses at most half of a processor. One backup runs at a time. **Invariant:** at most three unsent blocks are in
//! memory.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use edge::request_id::carry;
use futures_util::stream;
use node::{Backup, Node, NodeBackupError};
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::described::Binary;
use crate::error::ApiError;
use crate::route::{Route, reference};
use crate::state::AppState;
use edge::Scope;

/// Size of a chunk of the stream, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// Maximum number of unsent chunks.
const CHUNKS_MAX: usize = 2;
/// Memory of a backup, in bytes: two blocks, chunks, and blocks of the store's files.
const BACKUP_BYTES: usize = 8 << 20;
/// Longest pause between two chunks.
const REST_MAX: Duration = Duration::from_millis(200);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/backup", backup)
            .named("make_backup", "Make a backup")
            .scope(Scope::Admin)
            .text(
                "The backup contains every change that was acknowledged before the request: all \
                 data, and the hashes of application keys. An interrupted stream is an \
                 incomplete backup, so check it: `roost backup` does so, and `roost verify` and \
                 `roost restore` read it. Needs the scope `admin`.",
            )
            .answers_with("The backup", "application/octet-stream", reference::<Binary>)
            .errors(&["backup_running"]),
    ]
}

pub(crate) async fn backup(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let Ok(permit) = Arc::clone(&state.backups).try_acquire_owned() else {
        return Err(ApiError::backup_running());
    };
    let held = state.memory.reserve(BACKUP_BYTES)?;
    let (node, keys_file) = (state.node.clone(), state.keys_file.clone());
    let opened = {
        let node = node.clone();
        move || open(&node, keys_file.as_deref())
    };
    let (backup, keys) = match edge::blocking(opened).await? {
        Ok(opened) => opened,
        Err(NodeBackupError::Busy) => return Err(ApiError::overloaded()),
        Err(error) => return Err(ApiError::fault(&error)),
    };
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    let chunks = Chunks {
        sender,
        closing: state.closing.clone(),
        chunk: Vec::new(),
        since: Instant::now(),
        permit,
    };
    tokio::task::spawn_blocking(carry(move || {
        let _held = held;
        send(&node, backup, keys.as_deref(), chunks);
    }));
    let chunks =
        stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let attachment = HeaderValue::from_static("attachment; filename=\"roost.backup\"");
    headers.insert(CONTENT_DISPOSITION, attachment);
    Ok(response)
}

fn open(
    node: &Node,
    keys_file: Option<&std::path::Path>,
) -> Result<(Backup, Option<Vec<u8>>), NodeBackupError> {
    let keys = match keys_file.map(std::fs::read) {
        None => None,
        Some(Ok(keys)) => Some(keys),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => None,
        Some(Err(error)) => return Err(::backup::BackupError::Io(error).into()),
    };
    Ok((node.backup(env!("CARGO_PKG_VERSION"))?, keys))
}

/// Writes the whole backup, unless the client disconnects. After an error, the stream ends in a way that the client
/// notices.
fn send(node: &Node, backup: Backup, keys: Option<&[u8]>, chunks: Chunks) {
    let start = Instant::now();
    let failed = chunks.sender.clone();
    match backup.write(keys, chunks) {
        Ok((_, summary)) => {
            node.note_backup();
            tracing::info!(?summary, elapsed = ?start.elapsed(), "made a backup");
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a backup has failed");
            drop(failed.blocking_send(Err(io::ErrorKind::Other.into())));
        }
    }
}

/// Writer that sends its input in chunks.
struct Chunks {
    sender: Sender<io::Result<Bytes>>,
    closing: watch::Receiver<bool>,
    chunk: Vec<u8>,
    /// Time at which the work for the current chunk began.
    since: Instant,
    /// Permit for the single running backup, released when the backup ends.
    #[expect(dead_code, reason = "held, not read")]
    permit: OwnedSemaphorePermit,
}

impl Chunks {
    fn send(&mut self) -> io::Result<()> {
        if *self.closing.borrow() {
            return Err(io::Error::other("the server is shutting down"));
        }
        let worked = self.since.elapsed();
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        let sent = self.sender.blocking_send(Ok(chunk.into()));
        std::thread::sleep(worked.min(REST_MAX));
        self.since = Instant::now();
        sent.map_err(|_| io::Error::other("the client has left"))
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK_BYTES.saturating_sub(self.chunk.len()));
        self.chunk.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if self.chunk.len() >= CHUNK_BYTES {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() { Ok(()) } else { self.send() }
    }
}
