//! Operations on keys.

use kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use kv::{BucketId, BucketName, Bytes, Expiry, KeyOp, KeyOps, Only, OnlyExpiry, Stamp, Watched};

use super::Generator;
use crate::model::Model;

pub(super) const KINDS: usize = 16;

/// Bucket that contains only decimal numbers, since the model only adds numbers of two places.
const DECIMALS: BucketId = BucketId(3);
/// One in this many values at a limit is as long as possible: writing it takes milliseconds.
const LONGEST: u64 = 200;

impl Generator {
    /// Makes a few operations, or a transaction.
    pub(crate) fn key_ops(&mut self, model: &Model) -> KeyOps {
        let mut ops = KeyOps::default();
        let count = match self.random.below(10) {
            0 => self.random.between(2, 60),
            1..4 => self.random.between(2, 6),
            _ => 1,
        };
        if self.random.once_in(10) {
            let (bucket, key) = (self.bucket(model), self.key());
            let known = model.keys.buckets.get(&bucket.0).and_then(|keys| keys.get(&key));
            let version = match self.random.below(4) {
                0 => None,
                1 => Some(Stamp(self.random.next() >> 1)),
                _ => known.map(|key| Stamp(key.version)),
            };
            let watched = vec![Watched { bucket, key: Bytes::new(&key), version }];
            ops.push(&KeyOp::Begin { watched, then: count as u32 });
        }
        for _ in 0..count {
            self.push_op(model, &mut ops);
        }
        ops
    }

    fn push_op(&mut self, model: &Model, ops: &mut KeyOps) {
        let (bucket, key, other) = (self.bucket(model), self.key(), self.key());
        let (key, other) = (Bytes::new(&key), Bytes::new(&other));
        let weights = self.key_weights;
        match self.random.weighted(&weights) {
            0 | 1 => {
                let (value, expiry, only) =
                    (self.value(), self.expiry(model), self.only(model, bucket, key));
                let (value, old) = (Bytes::new(&value), self.random.once_in(6));
                ops.push(&KeyOp::Put { bucket, key, value, expiry, only, old });
            }
            2 => {
                let values: Vec<(Vec<u8>, Vec<u8>)> =
                    (0..self.random.between(1, 5)).map(|_| (self.key(), self.value())).collect();
                let pairs = values.iter().map(|(key, value)| (Bytes::new(key), Bytes::new(value)));
                let only_new = self.random.once_in(3);
                ops.push(&KeyOp::PutAll { bucket, pairs: pairs.collect(), only_new });
            }
            3 => ops.push(&KeyOp::Remove { bucket, keys: vec![key, other] }),
            4 => {
                let by = match self.is_extreme() {
                    true => *self.random.pick(&[i64::MAX, i64::MIN]),
                    false => self.random.below(20) as i64 - 10,
                };
                ops.push(&KeyOp::Add { bucket, key, by });
            }
            5 => {
                let expiry = self.expiry(model);
                let only = *self.random.pick(&[
                    OnlyExpiry::Always,
                    OnlyExpiry::IfNone,
                    OnlyExpiry::IfSome,
                    OnlyExpiry::IfLater,
                    OnlyExpiry::IfEarlier,
                    OnlyExpiry::IfSomeAndLater,
                    OnlyExpiry::IfSomeAndEarlier,
                ]);
                let read = self.random.once_in(3);
                ops.push(&KeyOp::Expire { bucket, key, expiry, only, read });
            }
            6 => {
                let only = match self.only(model, bucket, key) {
                    only @ Only::IfVersion(_) => only,
                    _ => Only::Always,
                };
                ops.push(&KeyOp::Take { bucket, key, only });
            }
            kind => self.push_rare_op(kind, model, (bucket, key, other), ops),
        }
    }

    fn push_rare_op(
        &mut self,
        kind: usize,
        model: &Model,
        (bucket, key, other): (BucketId, &Bytes, &Bytes),
        ops: &mut KeyOps,
    ) {
        let to_bucket = self.bucket(model);
        let before = ops.len();
        match kind {
            7 => {
                let value = self.value();
                ops.push(&KeyOp::Append { bucket, key, bytes: Bytes::new(&value) });
            }
            8 => {
                let (offset, value) = (self.offset(1), self.value());
                ops.push(&KeyOp::SetRange { bucket, key, offset, bytes: Bytes::new(&value) });
            }
            9 => {
                let (offset, bit) = (self.offset(8), self.random.once_in(2));
                ops.push(&KeyOp::SetBit { bucket, key, offset, bit });
            }
            10 => {
                let only_new = self.random.once_in(2);
                ops.push(&KeyOp::Rename { bucket, from: key, to: other, only_new });
            }
            11 => {
                let replace = self.random.once_in(2);
                ops.push(&KeyOp::Copy { bucket, key, to_bucket, to: other, replace });
            }
            12 => ops.push(&KeyOp::Move { bucket, key, to_bucket }),
            13 => match self.random.below(12) {
                0 => ops.push(&KeyOp::FlushNumbered),
                1 | 2 => ops.push(&KeyOp::Flush { bucket }),
                3 => ops.push(&KeyOp::Swap { a: bucket, b: to_bucket }),
                _ => {}
            },
            14 => {
                let number = self.random.below(17) * 3;
                let Some(name) = BucketName::parse(&number.to_string()) else { return };
                let made = self.random.once_in(2);
                ops.push(&if made { KeyOp::Create { name } } else { KeyOp::Drop { name } });
            }
            _ => {
                let key = format!("d{}", self.random.below(4));
                let number = self.random.below(100_000) as f64 / 4.0 - 10_000.0;
                let (key, number) = (Bytes::new(key.as_bytes()), number.to_string());
                let by = Bytes::new(number.as_bytes());
                ops.push(&match self.random.below(4) {
                    0 => KeyOp::Remove { bucket: DECIMALS, keys: vec![key] },
                    _ => KeyOp::AddFloat { bucket: DECIMALS, key, by },
                });
            }
        }
        if ops.len() == before {
            ops.push(&KeyOp::Remove { bucket, keys: vec![key] });
        }
    }

    /// Returns a bucket: numbered or created, sometimes one that does not exist.
    fn bucket(&mut self, model: &Model) -> BucketId {
        let made = model.keys.names.len();
        match self.random.below(8) {
            0 if made > 0 => {
                let at = self.random.index(made);
                BucketId(model.keys.names.values().nth(at).copied().unwrap_or_default())
            }
            1 if self.is_extreme() => BucketId(self.random.pick(&[99, u64::MAX]).to_owned()),
            2 => BucketId(1),
            3 => BucketId(15),
            _ => BucketId(0),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        if self.is_extreme() {
            let bytes = *self.random.pick(&[0, 1, KEY_BYTES_MAX, KEY_BYTES_MAX + 1]);
            return vec![b'k'; bytes];
        }
        format!("k{}", self.random.below(self.keys)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        if self.is_extreme() {
            let longest = self.random.once_in(LONGEST);
            let bytes = match self.random.below(4) {
                0 => 0,
                1 => self.random.between(500, 5_000),
                2 => self.random.between(5_000, 100_000),
                _ if longest => VALUE_BYTES_MAX as u64,
                _ => 20_000,
            };
            return vec![b'v'; bytes as usize];
        }
        match self.random.below(3) {
            0 => self.random.below(1_000).to_string().into_bytes(),
            _ => format!("v{}", self.nonce()).into_bytes(),
        }
    }

    /// An offset in a value, in units of which a byte has `per_byte` (bytes or bits).
    fn offset(&mut self, per_byte: u64) -> u64 {
        if self.is_extreme() {
            let end = VALUE_BYTES_MAX as u64 * per_byte;
            let longest = self.random.once_in(LONGEST);
            return if longest { end - 1 } else { *self.random.pick(&[end, u64::MAX]) };
        }
        self.random.below(40)
    }

    fn expiry(&mut self, model: &Model) -> Expiry {
        let now = crate::model::ms_of(model.last);
        match self.random.below(8) {
            0 => Expiry::Keep,
            1 => Expiry::In(self.random.below(2_000)),
            2 => Expiry::In(self.random.below(60_000)),
            3 => Expiry::At((now + self.random.below(5_000)).saturating_sub(500)),
            4 if self.is_extreme() => Expiry::In(u64::MAX),
            _ => Expiry::Never,
        }
    }

    fn only(&mut self, model: &Model, bucket: BucketId, key: &[u8]) -> Only {
        match self.random.below(10) {
            0 => Only::IfAbsent,
            1 => Only::IfPresent,
            2 => {
                let known = model.keys.buckets.get(&bucket.0).and_then(|keys| keys.get(key));
                Only::IfVersion(known.map_or(Stamp(9), |key| Stamp(key.version)))
            }
            _ => Only::Always,
        }
    }
}
