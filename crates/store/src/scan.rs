//! Reads of whole tables, for checks of all rows. They return the rows on disk with the changes of the overlays, but
//! not rows that are only in an overlay.

use kv::{Bucket, BucketId, KeyRows, KeyScan, Space};
use rows::{MemberRow, PointTable, Scan, SetTable, Span, Value};

use crate::disk::KeyspaceKind;
use crate::error::{StoreError, unreadable};
use crate::layout;
use crate::shared::Store;
use crate::writer::StoreWriter;

/// Owner and item of a row of a set.
type Place = (u64, u64);

impl Store {
    /// Decodes the rows between two keys of the disk. Also returns the first key that was not read.
    fn scan<T, K>(
        &self,
        part: KeyspaceKind,
        keys: std::ops::RangeInclusive<impl AsRef<[u8]>>,
        limit: usize,
        decode: impl Fn(&[u8], &[u8]) -> Option<(K, T)>,
    ) -> (Vec<(K, T)>, Option<K>) {
        let mut found = Vec::new();
        for row in self.shared().disk.range(part, keys) {
            let row = row.unwrap_or_else(|error| unreadable("reading a table", &error));
            let Some((key, value)) = decode(&row.0, &row.1) else {
                unreadable("reading a table", &StoreError::Damaged("the key of a row is malformed"))
            };
            if found.len() == limit {
                return (found, Some(key));
            }
            found.push((key, value));
        }
        (found, None)
    }

    /// Returns the items of a packed table from (owner, item) on, with their numbers. Also returns the first item that
    /// was not read.
    fn scan_packed(
        &self,
        table: SetTable,
        (mut owner, mut low): (u64, u64),
        limit: usize,
    ) -> (Vec<(Place, u64)>, Option<Place>) {
        let (disk, mut found) = (&self.shared().disk, Vec::new());
        while let Some(key) = disk.first_key(&layout::delta(table, owner, 0), &[table.tag() + 1]) {
            let Some((next, _)) = layout::read_packed(&key) else {
                unreadable("reading a table", &StoreError::Damaged("the key of a row is malformed"))
            };
            if next > owner {
                (owner, low) = (next, 0);
            }
            let state = self.shared().owners.state(table, owner);
            for (item, number) in disk.set(table, owner, state).items(Span { low, ..Span::ALL }) {
                if found.len() == limit {
                    return (found, Some((owner, item)));
                }
                found.extend(number.map(|number| ((owner, item), number)));
            }
            match owner.checked_add(1) {
                Some(next) => (owner, low) = (next, 0),
                None => break,
            }
        }
        (found, None)
    }

    /// Whether the position of the ephemeral rows is later than that of the facts, which is possible after a crash
    /// during a checkpoint.
    ///
    /// # Errors
    /// The rows that describe the store cannot be read.
    pub fn is_ephemeral_ahead(&self) -> Result<bool, StoreError> {
        Ok(self.snapshot()?.is_none())
    }
}

impl Scan for StoreWriter {
    fn points_from(
        &self,
        table: PointTable,
        from: u64,
        limit: usize,
    ) -> (Vec<(u64, Value)>, Option<u64>) {
        let keys = layout::point(table, from)..=layout::point(table, u64::MAX);
        let (found, next) =
            self.store().scan(KeyspaceKind::of_point(table), keys, limit, |key, value| {
                let number = key.get(1..).and_then(|number| number.try_into().ok());
                Some((u64::from_be_bytes(number?), Value::from_slice(value)))
            });
        let layers = self.store();
        let layers = layers.shared().layers.load();
        let now = |(key, value)| match layers.find(|layer| layer.point(table, key)) {
            Some(changed) => changed.map(|value| (key, value)),
            None => Some((key, value)),
        };
        (found.into_iter().filter_map(now).collect(), next)
    }

    fn members_from(
        &self,
        table: SetTable,
        (owner, item): (u64, u64),
        limit: usize,
    ) -> (Vec<MemberRow>, Option<(u64, u64)>) {
        let (found, next) = if table.is_packed() {
            self.store().scan_packed(table, (owner, item), limit)
        } else {
            let keys = layout::set(table, owner, item)..=layout::set(table, u64::MAX, u64::MAX);
            self.store().scan(KeyspaceKind::of_set(table), keys, limit, |key, value| {
                let (_, owner) = layout::owner_of(key)?;
                Some(((owner, layout::item_of(key)?), layout::decode_number(value)))
            })
        };
        let layers = self.store();
        let layers = layers.shared().layers.load();
        let now =
            |((owner, item), number)| match layers.find(|layer| layer.member(table, owner, item)) {
                Some(changed) => changed.map(|number| (owner, item, number)),
                None => Some((owner, item, number)),
            };
        (found.into_iter().filter_map(now).collect(), next)
    }
}

impl KeyScan for StoreWriter {
    fn spaces(&self) -> Vec<Space> {
        let (mut spaces, store) = (Vec::new(), self.store());
        let (mut low, end) = (layout::KEYS_PREFIX.to_vec(), layout::KEYS_PREFIX.map(|tag| tag + 1));
        while let Some(key) = store.shared().disk.first_key(&low, &end) {
            let Some((space, ..)) = layout::read_key(&key) else {
                unreadable(
                    "reading keys",
                    &StoreError::Damaged("the name of a key's row is too short"),
                )
            };
            spaces.push(space);
            low = layout::space_end(space);
        }
        spaces
    }

    fn buckets(&self) -> Vec<(BucketId, Bucket)> {
        let ids = self.store().shared().buckets.read().ids();
        ids.into_iter().filter_map(|id| Some((id, self.bucket(id)?))).collect()
    }
}
