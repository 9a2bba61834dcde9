//! Keys of one bucket: loading its records before a run, and requests for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use crate::api::LoadError;
use crate::api::steps::all;
use crate::client::{Client, Requests, Response, Target};
use crate::workload::{KeyLoad, Value, key};

/// Name of the bucket.
pub(super) const BUCKET: &str = "ycsb";
/// Number of connections that write the records. Each connection waits for its response, so this is the number of
/// changes that the server can sync together (group commit).
const CONNECTIONS: u32 = 64;

fn path(record: u64) -> String {
    format!("/v1/buckets/{BUCKET}/keys/{}", key(record))
}

/// Replaces `request` with a request for a value.
pub(super) fn read(requests: &Requests, record: u64, request: &mut Vec<u8>) {
    requests.get(&path(record), request);
}

/// Replaces `request` with a request that sets a value.
pub(super) fn write(requests: &Requests, record: u64, value: &[u8], request: &mut Vec<u8>) {
    requests.put(&path(record), value, request);
}

/// Replaces `request` with a request for the names of `keys` keys, from a position determined by the record `from`.
pub(super) fn scan(requests: &Requests, from: u64, keys: u32, request: &mut Vec<u8>) {
    // Keys are listed in the order of the server's hashes, so any number is a valid start.
    let name = key(from);
    let place = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let path = format!("/v1/buckets/{BUCKET}/keys?limit={keys}&cursor={place}");
    requests.get(&path, request);
}

/// Creates the bucket and writes all its records.
pub(super) async fn load(
    target: &Target,
    requests: &Requests,
    load: KeyLoad,
    seed: u64,
    done: &Arc<AtomicU64>,
) -> Result<(), LoadError> {
    let mut request = Vec::new();
    let bucket = format!("/v1/buckets/{BUCKET}");
    requests.put_new(&bucket, &mut request);
    let mut client = Client::new(target.clone());
    let answer = client.send(&request).await?;
    if answer.status == 412 {
        return Err(LoadError::BucketExists(BUCKET));
    }
    accepted(&bucket, &answer)?;
    let mut parts = JoinSet::new();
    for first in 0..CONNECTIONS.min(load.records) {
        let (target, requests, done) = (target.clone(), requests.clone(), Arc::clone(done));
        parts.spawn(async move {
            let (mut client, mut request) = (Client::new(target), Vec::new());
            for record in (first..load.records).step_by(CONNECTIONS as usize).map(u64::from) {
                let value = Value::of_record(record, &load, seed);
                write(&requests, record, &value.bytes(), &mut request);
                accepted(&path(record), &client.send(&request).await?)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
    }
    all(parts).await
}

fn accepted(what: &str, answer: &Response<'_>) -> Result<(), LoadError> {
    if answer.is_success() {
        return Ok(());
    }
    let body = String::from_utf8_lossy(answer.body).chars().take(200).collect();
    Err(LoadError::Key { what: what.to_owned(), status: answer.status, body })
}
