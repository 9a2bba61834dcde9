//! Expected buckets and keys.

use std::collections::BTreeMap;

use kv::limits::NUMBERED_BUCKETS;
use kv::{
    BucketId, Expiry, KeyAnswer, KeyOp, KeyOps, KeyParts, KeyRefusal, KeyRow, Only, OnlyExpiry,
    Space, Stamp, Watched,
};

use super::numbers::{decimal, hundredths, integer, long_enough};

/// Expected key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelKey {
    pub(crate) value: Vec<u8>,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) version: u64,
}

impl ModelKey {
    pub(crate) fn is_live(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires| now_ms < expires)
    }

    fn row(&self, key: &[u8]) -> KeyRow {
        let (expires_ms, version) = (self.expires_ms, Stamp(self.version));
        KeyRow::new(KeyParts { space: Space(0), key, value: &self.value, expires_ms, version })
    }
}

type Bucket = BTreeMap<Vec<u8>, ModelKey>;
type Answer = Result<KeyAnswer, KeyRefusal>;

/// All buckets. They may contain keys that have expired.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) buckets: BTreeMap<u64, Bucket>,
    pub(crate) names: BTreeMap<String, u64>,
    made: u64,
}

impl Default for Keys {
    fn default() -> Self {
        let buckets = (0..u64::from(NUMBERED_BUCKETS)).map(|id| (id, Bucket::new())).collect();
        Self { buckets, names: BTreeMap::new(), made: 0 }
    }
}

/// Time and version of an operation.
#[derive(Clone, Copy)]
struct At {
    now_ms: u64,
    version: u64,
}

/// Whether two answers are equal, except for the spaces of their rows.
pub(crate) fn same(one: &KeyAnswer, other: &KeyAnswer) -> bool {
    match (one, other) {
        (KeyAnswer::Row(one), KeyAnswer::Row(other)) => {
            let (one, other) = (one.parts(), other.parts());
            KeyParts { space: other.space, ..one } == other
        }
        _ => one == other,
    }
}

impl Keys {
    /// Applies operations and returns their answers. The answer to a sweep is `None`, because the model does not know
    /// it.
    pub(super) fn apply(
        &mut self,
        first: u64,
        now_ms: u64,
        ops: &KeyOps,
    ) -> Option<Vec<KeyAnswer>> {
        let mut answers = Vec::with_capacity(ops.len());
        let mut skipped = 0;
        for (index, op) in ops.iter().enumerate() {
            if op == KeyOp::Sweep {
                return None;
            }
            if skipped > 0 {
                skipped -= 1;
                answers.push(KeyAnswer::Skipped);
                continue;
            }
            let at = At { now_ms, version: first + index as u64 };
            if let KeyOp::Begin { watched, then } = &op
                && !watched.iter().all(|watched| self.is_unchanged(watched, now_ms))
            {
                skipped = *then;
                answers.push(KeyAnswer::Skipped);
                continue;
            }
            answers.push(self.run(&op, at).unwrap_or_else(KeyAnswer::Refused));
        }
        Some(answers)
    }

    fn is_unchanged(&self, watched: &Watched<'_>, now_ms: u64) -> bool {
        let live = self.live(watched.bucket, watched.key, now_ms);
        live.map(|key| key.version) == watched.version.map(|stamp| stamp.0)
    }

    /// Returns a key unless it has expired.
    pub(crate) fn live(&self, bucket: BucketId, key: &[u8], now_ms: u64) -> Option<&ModelKey> {
        self.buckets.get(&bucket.0)?.get(key).filter(|found| found.is_live(now_ms))
    }

    fn find(&self, bucket: BucketId, key: &[u8], at: At) -> Result<Option<&ModelKey>, KeyRefusal> {
        if !self.buckets.contains_key(&bucket.0) {
            return Err(KeyRefusal::BucketNotFound);
        }
        Ok(self.live(bucket, key, at.now_ms))
    }

    /// Sets a key unless it expires immediately.
    fn set(&mut self, bucket: BucketId, key: &[u8], value: Vec<u8>, expires: Option<u64>, at: At) {
        let new = ModelKey { value, expires_ms: expires, version: at.version };
        let Some(keys) = self.buckets.get_mut(&bucket.0) else { return };
        if new.is_live(at.now_ms) {
            keys.insert(key.to_vec(), new);
        } else {
            keys.remove(key);
        }
    }

    fn unset(&mut self, bucket: BucketId, key: &[u8]) {
        self.buckets.get_mut(&bucket.0).map(|keys| keys.remove(key));
    }

    fn run(&mut self, op: &KeyOp<'_>, at: At) -> Answer {
        match op {
            KeyOp::Put { bucket, key, value, expiry, only, old } => {
                let before = self.find(*bucket, key, at)?.cloned();
                let allowed = allows(*only, before.as_ref());
                if allowed {
                    let expires = expires_ms(*expiry, before.as_ref(), at);
                    self.set(*bucket, key, value.to_vec(), expires, at);
                }
                let created = before.is_none();
                Ok(match (old, allowed) {
                    (true, _) => row_or_nothing(before.as_ref(), key),
                    (false, true) => KeyAnswer::Written { version: Stamp(at.version), created },
                    (false, false) => KeyAnswer::Nothing,
                })
            }
            KeyOp::PutAll { bucket, pairs, only_new } => {
                let mut exists = false;
                self.find(*bucket, b"", at)?;
                for (key, _) in pairs {
                    exists |= self.find(*bucket, key, at)?.is_some();
                }
                if *only_new && exists {
                    return Ok(KeyAnswer::Nothing);
                }
                for (key, value) in pairs {
                    self.set(*bucket, key, value.to_vec(), None, at);
                }
                Ok(KeyAnswer::Written { version: Stamp(at.version), created: *only_new })
            }
            KeyOp::Remove { bucket, keys } => {
                let mut removed = 0;
                for key in keys {
                    removed += i64::from(self.find(*bucket, key, at)?.is_some());
                    self.unset(*bucket, key);
                }
                Ok(KeyAnswer::Number(removed))
            }
            KeyOp::Take { bucket, key, only } => {
                let before = self.find(*bucket, key, at)?.cloned();
                if !allows(*only, before.as_ref()) {
                    return Ok(KeyAnswer::Nothing);
                }
                self.unset(*bucket, key);
                Ok(row_or_nothing(before.as_ref(), key))
            }
            KeyOp::Expire { bucket, key, expiry, only, read } => {
                self.expire((*bucket, key), *expiry, *only, *read, at)
            }
            _ => self.run_other(op, at),
        }
    }

    fn run_other(&mut self, op: &KeyOp<'_>, at: At) -> Answer {
        match op {
            KeyOp::Add { bucket, key, by } => self.change(*bucket, key, at, |old| {
                let old = old.map_or(Ok(0), |old| integer(&old.value))?;
                let sum = old.checked_add(*by).ok_or(KeyRefusal::Overflow)?;
                Ok((sum.to_string().into_bytes(), sum))
            }),
            KeyOp::AddFloat { bucket, key, by } => {
                let sum = |old: Option<&ModelKey>| {
                    let old = old.map_or(Ok(0), |old| hundredths(&old.value))?;
                    Ok((decimal(old + hundredths(by)?).into_bytes(), 0))
                };
                self.change(*bucket, key, at, sum)?;
                Ok(row_or_nothing(self.find(*bucket, key, at)?, key))
            }
            KeyOp::Append { bucket, key, bytes } => self.change(*bucket, key, at, |old| {
                let value = [old.map_or(&[][..], |old| &old.value), bytes.as_ref()].concat();
                long_enough(value.len() as u64)?;
                let length = value.len() as i64;
                Ok((value, length))
            }),
            KeyOp::SetRange { bucket, key, offset, bytes } if bytes.is_empty() => {
                let length = self.find(*bucket, key, at)?.map_or(0, |old| old.value.len());
                let _unused = offset;
                Ok(KeyAnswer::Number(length as i64))
            }
            KeyOp::SetRange { bucket, key, offset, bytes } => {
                self.change(*bucket, key, at, |old| {
                    long_enough(offset.saturating_add(bytes.len() as u64))?;
                    let mut value = old.map_or(Vec::new(), |old| old.value.clone());
                    let from = *offset as usize;
                    value.resize(value.len().max(from + bytes.len()), 0);
                    value[from..from + bytes.len()].copy_from_slice(bytes);
                    let length = value.len() as i64;
                    Ok((value, length))
                })
            }
            KeyOp::SetBit { bucket, key, offset, bit } => self.change(*bucket, key, at, |old| {
                long_enough((offset / 8).saturating_add(1))?;
                let (byte, mask) = ((offset / 8) as usize, 0x80_u8 >> (offset % 8));
                let mut value = old.map_or(Vec::new(), |old| old.value.clone());
                value.resize(value.len().max(byte + 1), 0);
                let before = i64::from(value[byte] & mask != 0);
                value[byte] = if *bit { value[byte] | mask } else { value[byte] & !mask };
                Ok((value, before))
            }),
            KeyOp::Rename { bucket, from, to, only_new } => {
                let old = self.find(*bucket, from, at)?.cloned().ok_or(KeyRefusal::KeyNotFound)?;
                if from == to {
                    return Ok(KeyAnswer::Number((!only_new).into()));
                }
                if *only_new && self.find(*bucket, to, at)?.is_some() {
                    return Ok(KeyAnswer::Number(0));
                }
                self.unset(*bucket, from);
                self.set(*bucket, to, old.value, old.expires_ms, at);
                Ok(KeyAnswer::Number(1))
            }
            KeyOp::Copy { bucket, key, to_bucket, to, replace } => {
                self.copy((*bucket, key), (*to_bucket, to), *replace, at)
            }
            KeyOp::Move { bucket, key, to_bucket } => {
                let copied = self.copy((*bucket, key), (*to_bucket, key), false, at)?;
                if copied == KeyAnswer::Number(1) {
                    self.unset(*bucket, key);
                }
                Ok(copied)
            }
            _ => self.run_on_buckets(op),
        }
    }

    fn run_on_buckets(&mut self, op: &KeyOp<'_>) -> Answer {
        match op {
            KeyOp::Flush { bucket } => {
                let keys = self.buckets.get_mut(&bucket.0).ok_or(KeyRefusal::BucketNotFound)?;
                keys.clear();
                Ok(KeyAnswer::Done)
            }
            KeyOp::FlushNumbered => {
                let numbered = self.buckets.range_mut(..u64::from(NUMBERED_BUCKETS));
                numbered.for_each(|(_, keys)| keys.clear());
                Ok(KeyAnswer::Done)
            }
            KeyOp::Swap { a, b } => {
                let of_a = self.buckets.get(&a.0).ok_or(KeyRefusal::BucketNotFound)?.clone();
                let of_b = self.buckets.get(&b.0).ok_or(KeyRefusal::BucketNotFound)?.clone();
                self.buckets.insert(a.0, of_b);
                self.buckets.insert(b.0, of_a);
                Ok(KeyAnswer::Done)
            }
            KeyOp::Begin { .. } => Ok(KeyAnswer::Done),
            KeyOp::Create { name } => {
                if name.numbered().is_some() || self.names.contains_key(name.as_str()) {
                    return Ok(KeyAnswer::Nothing);
                }
                let id = u64::from(NUMBERED_BUCKETS) + self.made;
                self.made += 1;
                self.names.insert(name.as_str().to_owned(), id);
                self.buckets.insert(id, Bucket::new());
                Ok(KeyAnswer::Number(id as i64))
            }
            KeyOp::Drop { name } => {
                if name.numbered().is_some() {
                    return Err(KeyRefusal::BucketStays);
                }
                let id = self.names.remove(name.as_str()).ok_or(KeyRefusal::BucketNotFound)?;
                self.buckets.remove(&id);
                Ok(KeyAnswer::Done)
            }
            _ => unreachable!("no client sends {op:?}"),
        }
    }

    /// Changes a value. Keeps its expiry.
    fn change(
        &mut self,
        bucket: BucketId,
        key: &[u8],
        at: At,
        new: impl FnOnce(Option<&ModelKey>) -> Result<(Vec<u8>, i64), KeyRefusal>,
    ) -> Answer {
        let old = self.find(bucket, key, at)?;
        let expires_ms = old.and_then(|old| old.expires_ms);
        let (value, answer) = new(old)?;
        self.set(bucket, key, value, expires_ms, at);
        Ok(KeyAnswer::Number(answer))
    }

    fn expire(
        &mut self,
        (bucket, key): (BucketId, &[u8]),
        expiry: Expiry,
        only: OnlyExpiry,
        read: bool,
        at: At,
    ) -> Answer {
        let Some(old) = self.find(bucket, key, at)?.cloned() else {
            return Ok(if read { KeyAnswer::Nothing } else { KeyAnswer::Number(0) });
        };
        let new = expires_ms(expiry, Some(&old), at);
        let (before, after) = (old.expires_ms.unwrap_or(u64::MAX), new.unwrap_or(u64::MAX));
        let allowed = match only {
            OnlyExpiry::Always => true,
            OnlyExpiry::IfNone => old.expires_ms.is_none(),
            OnlyExpiry::IfSome => old.expires_ms.is_some(),
            OnlyExpiry::IfLater => after > before,
            OnlyExpiry::IfEarlier => after < before,
            OnlyExpiry::IfSomeAndLater => old.expires_ms.is_some() && after > before,
            OnlyExpiry::IfSomeAndEarlier => old.expires_ms.is_some() && after < before,
        };
        let changes = allowed && (new.is_some() || old.expires_ms.is_some());
        if changes {
            self.set(bucket, key, old.value.clone(), new, at);
        }
        Ok(if read { KeyAnswer::Row(old.row(key)) } else { KeyAnswer::Number(changes.into()) })
    }

    fn copy(
        &mut self,
        (bucket, key): (BucketId, &[u8]),
        (to_bucket, to): (BucketId, &[u8]),
        replace: bool,
        at: At,
    ) -> Answer {
        if bucket == to_bucket && key == to {
            return Err(KeyRefusal::SameKey);
        }
        let exists = self.find(to_bucket, to, at)?.is_some();
        let Some(old) = self.find(bucket, key, at)?.cloned() else {
            return Ok(KeyAnswer::Number(0));
        };
        if exists && !replace {
            return Ok(KeyAnswer::Number(0));
        }
        self.set(to_bucket, to, old.value, old.expires_ms, at);
        Ok(KeyAnswer::Number(1))
    }
}

fn row_or_nothing(found: Option<&ModelKey>, key: &[u8]) -> KeyAnswer {
    found.map_or(KeyAnswer::Nothing, |found| KeyAnswer::Row(found.row(key)))
}

fn allows(only: Only, before: Option<&ModelKey>) -> bool {
    match only {
        Only::Always => true,
        Only::IfAbsent => before.is_none(),
        Only::IfPresent => before.is_some(),
        Only::IfVersion(version) => before.is_some_and(|key| key.version == version.0),
    }
}

fn expires_ms(expiry: Expiry, before: Option<&ModelKey>, at: At) -> Option<u64> {
    match expiry {
        Expiry::Keep => before.and_then(|key| key.expires_ms),
        Expiry::Never => None,
        Expiry::At(ms) => Some(ms),
        Expiry::In(ms) => Some(at.now_ms.saturating_add(ms)),
    }
}
