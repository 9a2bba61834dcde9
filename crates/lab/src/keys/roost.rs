//! The design `roost`: roost's engine in this process. Reads use its memory, and writes go through the log.
//!
//! The log is not synced (policy `never`), because the other designs store nothing. The engine has its own threads,
//! mainly the writer, in addition to the worker threads of the runtime.

use std::collections::HashMap;
use std::sync::Arc;

use kv::{BucketId, BucketName, Bytes, Expiry, KeyAnswer, KeyOp, KeyRow, Only};
use node::{Found, Node};

use crate::engine::Engine;
use crate::keys::{Client, Design, Value};

/// Number of keys per submission before the measurement.
const LOADED_AT_ONCE: usize = 500;

/// The engine with its data in a temporary directory.
pub(super) struct Roost(Arc<Engine>);

impl Design for Roost {
    type Client = RoostClient;

    async fn start(_clients: u32) -> Self {
        Self(Arc::new(Engine::open()))
    }

    fn connect(&self, _client: u32) -> RoostClient {
        RoostClient { engine: Arc::clone(&self.0), buckets: HashMap::new() }
    }
}

/// Client that caches the ids of buckets, as a connection of the server does.
pub(super) struct RoostClient {
    engine: Arc<Engine>,
    buckets: HashMap<u32, BucketId>,
}

impl RoostClient {
    fn bucket(&mut self, bucket: u32) -> Option<BucketId> {
        if let Some(id) = self.buckets.get(&bucket) {
            return Some(*id);
        }
        let node = self.engine.node();
        let id =
            node.try_bucket_named(&name(bucket)).or_else(|| node.bucket_named(&name(bucket)))?;
        self.buckets.insert(bucket, id);
        Some(id)
    }

    /// Submits one change; returns the engine's answer.
    async fn change(&self, op: KeyOp<'_>) -> KeyAnswer {
        let ops = std::iter::once(op).collect();
        match self.engine.node().submit_keys_waiting(ops, Vec::new()).await {
            Ok(replies) => replies.answers.into_iter().next().unwrap_or(KeyAnswer::Nothing),
            Err(error) => unreachable!("the engine runs as long as its clients: {error}"),
        }
    }
}

impl Client for RoostClient {
    async fn create(&mut self, bucket: u32) {
        self.change(KeyOp::Create { name: name(bucket) }).await;
    }

    async fn read(&mut self, bucket: u32, key: u32) -> Option<Value> {
        let id = self.bucket(bucket)?;
        let key = key.to_be_bytes();
        let row = match self.engine.node().keys().try_row(id, &key) {
            Found::Row(row) => Some(row),
            Found::Absent => None,
            Found::Unknown => tokio::task::block_in_place(|| read(self.engine.node(), id, &key)),
        };
        row.and_then(|row| row.value().try_into().ok())
    }

    async fn write(&mut self, bucket: u32, key: u32, value: Value) -> bool {
        let Some(bucket) = self.bucket(bucket) else { return false };
        let key = key.to_be_bytes();
        matches!(self.change(put(bucket, &key, &value)).await, KeyAnswer::Written { .. })
    }

    async fn write_all(&mut self, keys: Vec<(u32, u32, Value)>) {
        for keys in keys.chunks(LOADED_AT_ONCE) {
            let found = keys.iter().filter_map(|(bucket, key, value)| {
                Some((self.bucket(*bucket)?, key.to_be_bytes(), value))
            });
            let found: Vec<_> = found.collect();
            let ops = found.iter().map(|(bucket, key, value)| put(*bucket, key, *value)).collect();
            let stored = self.engine.node().submit_keys_waiting(ops, Vec::new()).await;
            assert!(stored.is_ok(), "the engine runs as long as its clients");
        }
    }
}

fn put<'a>(bucket: BucketId, key: &'a [u8], value: &'a [u8]) -> KeyOp<'a> {
    let (key, value) = (Bytes::new(key), Bytes::new(value));
    KeyOp::Put { bucket, key, value, expiry: Expiry::Never, only: Only::Always, old: false }
}

fn name(bucket: u32) -> BucketName {
    match BucketName::parse(&format!("lab-{bucket}")) {
        Some(name) => name,
        None => unreachable!("a number has few digits"),
    }
}

/// Reads a key from the engine. May block.
fn read(node: &Node, bucket: BucketId, key: &[u8]) -> Option<KeyRow> {
    node.keys().row(bucket, key)
}
