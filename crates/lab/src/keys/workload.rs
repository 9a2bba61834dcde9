//! What the clients do, and what a plain map answers.
//!
//! Every client has keys of their own, about the same number in every bucket, and all clients use all buckets. So
//! clients meet in the buckets, but what a client reads depends on what that client wrote and not on who came first:
//! the answers of all designs must be equal.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::answers::Answers;
use crate::keys::{VALUE_BYTES, Value};

/// The parameters of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    pub(super) clients: u32,
    /// Operations of each client.
    pub(super) operations: u32,
    pub(super) buckets: u32,
    /// Keys of each bucket.
    pub(super) keys: u32,
    /// Operations that read, of 100; the others write.
    pub(super) reads: u32,
    pub(super) seed: u64,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Read { bucket: u32, key: u32 },
    Write { bucket: u32, key: u32, value: Value },
}

impl Workload {
    /// The keys of a client, each with its first value.
    pub(super) fn keys_of(&self, client: u32) -> impl Iterator<Item = (u32, u32, Value)> + use<> {
        let workload = *self;
        (0..workload.key_count(client)).map(move |nth| {
            let (bucket, key) = workload.key(client, nth);
            (bucket, key, value(client, u64::from(nth)))
        })
    }

    /// The operations of a client, in order.
    pub(super) fn operations_of(&self, client: u32) -> Vec<Op> {
        let mut random = StdRng::seed_from_u64(self.seed ^ u64::from(client).rotate_left(32));
        let operation = |number| {
            let (bucket, key) = self.key(client, random.random_range(0..self.key_count(client)));
            if random.random_range(0..100) < self.reads {
                return Op::Read { bucket, key };
            }
            // Not a first value: those have smaller numbers.
            Op::Write { bucket, key, value: value(client, self.seed | 1 << 63 | u64::from(number)) }
        };
        (0..self.operations).map(operation).collect()
    }

    /// The checksum of the answers that a plain map gives.
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

    /// Number of keys that a client has. There are at least as many keys as clients.
    fn key_count(&self, client: u32) -> u32 {
        (self.buckets * self.keys - client).div_ceil(self.clients)
    }

    /// The bucket and the key that is a client's nth.
    fn key(&self, client: u32, nth: u32) -> (u32, u32) {
        let number = nth * self.clients + client;
        (number / self.keys, number % self.keys)
    }
}

/// Adds what a read found.
pub(super) fn add(answers: &mut Answers, found: Option<Value>) {
    answers.add(found.as_ref().map_or(&[], |value| value));
}

fn value(client: u32, number: u64) -> Value {
    let mut value = [client as u8; VALUE_BYTES];
    let (start, _) = value.split_at_mut(12);
    start.copy_from_slice(&[&client.to_le_bytes()[..], &number.to_le_bytes()].concat());
    value
}
