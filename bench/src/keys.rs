//! Keys inside the server. The workload is that of the old report: 100 clients with 1,000 operations each, on 1,000
//! buckets of 100 keys. The control is a plain map with locks, whose speed is limited by memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use kv::limits;
use kv::{BucketId, BucketName, Bytes, Expiry, KeyOp, KeyOps, Only};
use node::{Durability, Node, NodeOptions};
use parking_lot::RwLock;
use tokio::runtime::Runtime;

use crate::Plan;
use crate::report::Report;

const CLIENTS: u32 = 100;
const OPERATIONS: u32 = 1_000;
const BUCKETS: u32 = 1_000;
const KEYS: u32 = 100;
const THREADS: usize = 2;
const SHARDS: usize = 64;
/// Percentages of reads, with their names.
const READS: [(u32, &str); 3] = [(100, "reads alone"), (90, "90/10"), (50, "50/50")];

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).build()?;
    let data = tempfile::tempdir()?;
    let mut options = NodeOptions::new(data.path());
    options.durability = Durability::Never;
    let node = Node::open(&options)?;
    runtime.block_on(fill(&node))?;
    let bare = Arc::new(Bare::filled());
    for (reads, name) in READS {
        let (mut rates, mut bare_rates) = (vec![], vec![]);
        for run in 0..=plan.runs {
            let on_map = on_map(&runtime, &bare, reads);
            let on_node = on_node(&runtime, &node, reads)?;
            // The first round warms up.
            if run > 0 {
                bare_rates.push(on_map);
                rates.push(on_node);
            }
        }
        report.add(format!("a bare map under locks, {name}"), "million/s", bare_rates, None);
        report.add(format!("keys inside the server, {name}"), "million/s", rates, None);
    }
    node.close();
    Ok(())
}

/// The n-th operation of a client: bucket, key, and whether it is a read.
fn step(client: u32, number: u32, reads: u32) -> (u32, u32, bool) {
    let mixed = (u64::from(client) << 32 | u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let part = |shift: u32, below: u32| (mixed >> shift) as u32 % below;
    (part(8, BUCKETS), part(24, KEYS), part(40, 100) < reads)
}

fn key(number: u32) -> String {
    format!("key:{number:03}")
}

fn bucket(number: u32) -> BucketId {
    BucketId(u64::from(limits::NUMBERED_BUCKETS + number))
}

async fn fill(node: &Node) -> anyhow::Result<()> {
    let names = (0..BUCKETS).filter_map(|number| BucketName::parse(&format!("bucket-{number}")));
    let made: KeyOps = names.map(|name| KeyOp::Create { name }).collect();
    node.submit_keys(made, Vec::new()).await?;
    for number in 0..BUCKETS {
        let mut ops = KeyOps::default();
        for key in (0..KEYS).map(key) {
            ops.push(&put(bucket(number), &key));
        }
        node.submit_keys(ops, Vec::new()).await?;
    }
    Ok(())
}

fn put(bucket: BucketId, key: &str) -> KeyOp<'_> {
    let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(&[7; 32]));
    KeyOp::Put { bucket, key, value, expiry: Expiry::Never, only: Only::Always, old: false }
}

/// Million operations per second.
fn rate(started: Instant) -> f64 {
    f64::from(CLIENTS * OPERATIONS) / started.elapsed().as_secs_f64() / 1e6
}

fn on_node(runtime: &Runtime, node: &Node, reads: u32) -> anyhow::Result<f64> {
    let started = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let node = node.clone();
            runtime.spawn(async move {
                for number in 0..OPERATIONS {
                    let (at, which, is_read) = step(client, number, reads);
                    let key = key(which);
                    if is_read {
                        std::hint::black_box(node.keys().try_row(bucket(at), key.as_bytes()));
                    } else {
                        let ops = [put(bucket(at), &key)].into_iter().collect();
                        node.submit_keys(ops, Vec::new()).await?;
                    }
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for client in clients {
        runtime.block_on(client)??;
    }
    Ok(rate(started))
}

/// Maps with locks, without log, expiry and counts.
struct Bare(Vec<Shard>);

type Shard = RwLock<HashMap<(u32, String), Vec<u8>>>;

impl Bare {
    fn filled() -> Self {
        let bare = Self((0..SHARDS).map(|_| RwLock::default()).collect());
        for number in 0..BUCKETS * KEYS {
            bare.put(number / KEYS, key(number % KEYS));
        }
        bare
    }

    fn shard(&self, bucket: u32) -> &Shard {
        let Some(shard) = self.0.get(bucket as usize % SHARDS) else { unreachable!("a remainder") };
        shard
    }

    fn put(&self, bucket: u32, key: String) {
        self.shard(bucket).write().insert((bucket, key), vec![7; 32]);
    }

    fn read(&self, bucket: u32, key: String) -> Option<Vec<u8>> {
        self.shard(bucket).read().get(&(bucket, key)).cloned()
    }
}

fn on_map(runtime: &Runtime, bare: &Arc<Bare>, reads: u32) -> f64 {
    let started = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let bare = Arc::clone(bare);
            runtime.spawn(async move {
                for number in 0..OPERATIONS {
                    let (at, which, is_read) = step(client, number, reads);
                    match is_read {
                        true => drop(std::hint::black_box(bare.read(at, key(which)))),
                        false => bare.put(at, key(which)),
                    }
                }
            })
        })
        .collect();
    for client in clients {
        drop(runtime.block_on(client));
    }
    rate(started)
}
