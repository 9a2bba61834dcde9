//! The design with locks instead of actors: dictionaries with a lock for each shard of buckets. It needs no messages,
//! no tasks and no scheduler, so it shows the limit of the processor.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::keys::{Client, Design, Value};

/// Number of locks, so many that two threads rarely need the same one.
const SHARDS: usize = 64;

/// Buckets of a shard, by number.
type Shard = RwLock<HashMap<u32, HashMap<u32, Value>>>;

/// Dictionaries and their locks, shared by all clients.
#[derive(Clone)]
pub(super) struct Locked(Arc<[Shard; SHARDS]>);

impl Locked {
    fn shard(&self, bucket: u32) -> &Shard {
        match self.0.get(bucket as usize % SHARDS) {
            Some(shard) => shard,
            None => unreachable!("a remainder is less than the divisor"),
        }
    }
}

impl Design for Locked {
    type Client = Self;

    async fn start(_clients: u32) -> Self {
        Self(Arc::new(std::array::from_fn(|_| Shard::default())))
    }

    fn connect(&self, _client: u32) -> Self {
        self.clone()
    }
}

impl Client for Locked {
    async fn create(&mut self, bucket: u32) {
        self.shard(bucket).write().entry(bucket).or_default();
    }

    async fn read(&mut self, bucket: u32, key: u32) -> Option<Value> {
        self.shard(bucket).read().get(&bucket)?.get(&key).copied()
    }

    async fn write(&mut self, bucket: u32, key: u32, value: Value) -> bool {
        let mut shard = self.shard(bucket).write();
        shard.get_mut(&bucket).map(|values| values.insert(key, value)).is_some()
    }
}
