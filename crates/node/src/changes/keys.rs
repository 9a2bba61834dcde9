//! Changed keys of the buckets that the change feed has. Empty, and of no cost, if there are none.

use kv::{BucketId, BucketName, Facts, KeyAnswer, KeyOp, KeyOps, KeyRows};

use super::KeyRef;

/// Change of a key, or of all keys of a bucket.
#[derive(Debug)]
pub(crate) struct KeyChange {
    /// Number of effects of the group that come before it.
    pub(crate) at: usize,
    pub(crate) key: KeyRef,
}

/// Buckets whose keys the feed has, and the changes of a group so far.
#[derive(Debug, Default)]
pub(crate) struct ChangedKeys {
    buckets: Vec<BucketName>,
    /// Ids of these buckets before the operations that are being applied.
    before: Vec<Option<BucketId>>,
    changes: Vec<KeyChange>,
}

impl ChangedKeys {
    /// Begins without changes.
    pub(crate) fn of(buckets: Vec<BucketName>) -> Self {
        Self { buckets, before: Vec::new(), changes: Vec::new() }
    }

    /// Called before operations are applied.
    pub(crate) fn begin<R: KeyRows + ?Sized>(&mut self, facts: Facts<'_, R>) {
        self.before.clear();
        self.before.extend(self.buckets.iter().map(|name| facts.bucket_named(name)));
    }

    /// Adds the keys that applied operations may have changed.
    pub(crate) fn end<R: KeyRows + ?Sized>(
        &mut self,
        facts: Facts<'_, R>,
        (ops, answers): (&KeyOps, &[KeyAnswer]),
        at: usize,
    ) {
        if self.buckets.is_empty() {
            return;
        }
        let Self { buckets, before, changes } = self;
        // A bucket may be created and removed by these operations.
        let after: Vec<_> = buckets.iter().map(|name| facts.bucket_named(name)).collect();
        let named = |id: BucketId| {
            let is_it = |found: &Option<BucketId>| *found == Some(id);
            let at = before.iter().position(is_it).or_else(|| after.iter().position(is_it));
            at.and_then(|at| buckets.get(at)).cloned()
        };
        let mut add = |bucket: Option<BucketName>, key: &[u8]| {
            let key = bucket.map(|bucket| KeyRef { bucket, key: key.into() });
            changes.extend(key.map(|key| KeyChange { at, key }));
        };
        for (op, answer) in ops.iter().zip(answers) {
            if matches!(answer, KeyAnswer::Nothing | KeyAnswer::Skipped | KeyAnswer::Refused(_)) {
                continue;
            }
            match &op {
                KeyOp::Begin { .. } => {}
                KeyOp::Flush { bucket } => add(named(*bucket), &[]),
                KeyOp::Swap { a, b } => {
                    add(named(*a), &[]);
                    add(named(*b), &[]);
                }
                KeyOp::Drop { name } => {
                    add(buckets.iter().find(|of| *of == name).cloned(), &[]);
                }
                KeyOp::FlushNumbered => {
                    let numbered = buckets.iter().filter(|name| name.numbered().is_some());
                    numbered.for_each(|name| add(Some(name.clone()), &[]));
                }
                op => op.each_key(&mut |bucket, key| add(named(bucket), key)),
            }
        }
    }

    /// Takes the changes of a group.
    pub(crate) fn take(&mut self) -> Vec<KeyChange> {
        std::mem::take(&mut self.changes)
    }
}
