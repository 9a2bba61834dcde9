//! Operations of the clients, and the answers of a plain map.
//!
//! Every client has its own keys, about the same number in every bucket, and all clients use all buckets. Clients thus
//! share the buckets, but the answers to a client depend only on its own writes, not on timing. The answers of all
//! designs must therefore be equal.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::answers::Answers;
use crate::keys::{VALUE_BYTES, Value};

/// Parameters of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    pub(super) clients: u32,
    /// Number of operations of each client.
    pub(super) operations: u32,
    pub(super) buckets: u32,
    /// Number of keys in each bucket.
    pub(super) keys: u32,
    /// Percentage of reads; the other operations write.
    pub(super) reads: u32,
    pub(super) seed: u64,
}

/// Operation of a client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Read { bucket: u32, key: u32 },
    Write { bucket: u32, key: u32, value: Value },
}

impl Workload {
    /// Keys of a client, each with its first value.
    pub(super) fn keys_of(&self, client: u32) -> impl Iterator<Item = (u32, u32, Value)> + use<> {
        let workload = *self;
        (0..workload.key_count(client)).map(move |nth| {
            let (bucket, key) = workload.key(client, nth);
            (bucket, key, value(client, u64::from(nth)))
        })
    }

    /// Operations of a client, in order.
    pub(super) fn operations_of(&self, client: u32) -> Vec<Op> {
        let mut random = StdRng::seed_from_u64(self.seed ^ u64::from(client).rotate_left(32));
        let operation = |number| {
            let (bucket, key) = self.key(client, random.random_range(0..self.key_count(client)));
            if random.random_range(0..100) < self.reads {
                return Op::Read { bucket, key };
            }
            // The first values have smaller numbers, so the value differs from all of them.
            Op::Write { bucket, key, value: value(client, self.seed | 1 << 63 | u64::from(number)) }
        };
        (0..self.operations).map(operation).collect()
    }

    /// Checksum of the answers of a plain map.
    pub(super) fn expected(&self) -> u64 {
        Answers::checksum((0..self.clients).map(|client| {
            let keys = self.keys_of(client);
            let mut map: HashMap<_, _> =
                keys.map(|(bucket, key, value)| ((bucket, key), value)).collect();
            let mut answers = Answers::default();
            for op in self.operations_of(client) {
                match op {
                    Op::Read { bucket, key } => add(&mut answers, map.get(&(bucket, key)).copied()),
                    Op::Write { bucket, key, value } => drop(map.insert((bucket, key), value)),
                }
            }
            answers
        }))
    }

    /// Number of keys of a client. There are at least as many keys as clients.
    fn key_count(&self, client: u32) -> u32 {
        (self.buckets * self.keys - client).div_ceil(self.clients)
    }

    /// Bucket and number of a client's nth key.
    fn key(&self, client: u32, nth: u32) -> (u32, u32) {
        let number = nth * self.clients + client;
        (number / self.keys, number % self.keys)
    }
}

/// Adds the result of a read.
pub(super) fn add(answers: &mut Answers, found: Option<Value>) {
    answers.add(found.as_ref().map_or(&[], |value| value));
}

fn value(client: u32, number: u64) -> Value {
    let mut value = [client as u8; VALUE_BYTES];
    let (start, _) = value.split_at_mut(12);
    start.copy_from_slice(&[&client.to_le_bytes()[..], &number.to_le_bytes()].concat());
    value
}
