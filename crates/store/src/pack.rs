//! Packing many items at once: rows in the order of owners and items become chunks. Also packing a whole store of format 4
//! to 6, which has a row per item.

use rows::SetTable;

use crate::disk::{Disk, Part};
use crate::error::StoreError;
use crate::head::Head;
use crate::layout::{self, WriteRow};
use crate::owners;
use crate::packed::{self, CHUNK_ITEMS, Change};

/// Packed tables with their tags before format 7.
const OLD_TAGS: [(SetTable, u8); 7] = [
    (SetTable::Following, 0x20),
    (SetTable::Followers, 0x21),
    (SetTable::AuthorPosts, 0x22),
    (SetTable::Mentions, 0x23),
    (SetTable::Friends, 0x24),
    (SetTable::AuthorStories, 0x25),
    (SetTable::DeletedUsers, 0x2e),
];

/// Makes chunks of the items of one packed table, whose owners have no rows yet.
pub(crate) struct Packer {
    table: SetTable,
    owner: u64,
    /// Items of `owner` that are not written yet: at most a chunk.
    items: Vec<Change>,
    /// Whether chunks of `owner` are written already.
    begun: bool,
}

impl Packer {
    /// For items of `table`.
    pub(crate) fn new(table: SetTable) -> Self {
        Self { table, owner: 0, items: Vec::new(), begun: false }
    }

    /// Adds an item. Owners ascend, and the items of each.
    pub(crate) fn add(
        &mut self,
        owner: u64,
        (item, number): (u64, u64),
        write: &mut WriteRow<'_>,
    ) -> Result<(), StoreError> {
        if owner != self.owner {
            self.finish(write)?;
            self.owner = owner;
        } else if self.items.len() == CHUNK_ITEMS {
            self.write_chunk(false, write)?;
        }
        self.items.push((item, Some(number)));
        Ok(())
    }

    /// Writes the last chunk of the owner.
    pub(crate) fn finish(&mut self, write: &mut WriteRow<'_>) -> Result<(), StoreError> {
        if !self.items.is_empty() {
            self.write_chunk(!self.begun, write)?;
        }
        self.begun = false;
        Ok(())
    }

    fn write_chunk(&mut self, alone: bool, write: &mut WriteRow<'_>) -> Result<(), StoreError> {
        let first = self.items.first().map_or(0, |(item, _)| *item);
        let low = if self.begun { first } else { 0 };
        let row = packed::encode(low, alone, &self.items);
        self.items.clear();
        self.begun = true;
        write(&layout::chunk(self.table, self.owner, low), Some(&row))
    }
}

/// Packs the lists of a store of format 4 to 6, and writes with them what `buckets` writes. All in one ingestion: a
/// process that ends in between leaves the store as it was.
pub(crate) fn pack(
    disk: &Disk,
    head: &Head,
    buckets: &mut dyn FnMut(&mut WriteRow<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    tracing::info!("packing the lists of users: the store is upgraded to format version 7");
    let mut items = 0;
    disk.ingest(Part::Facts, |write| {
        write(&layout::HEAD, Some(&head.encode()))?;
        let mut blocks = Vec::new();
        for (table, tag) in OLD_TAGS {
            let prefix = layout::owners_prefix(tag);
            for row in disk.prefix(Part::Facts, &prefix) {
                let (key, bits) = row?;
                let malformed = || StoreError::Damaged("a block of owners is malformed");
                let block = key.last_chunk().map(|block| u64::from_be_bytes(*block));
                let states = owners::decode(&bits).ok_or_else(malformed)?;
                blocks.push((layout::owners(table, block.ok_or_else(malformed)?), states));
                write(&key, None)?;
            }
        }
        for (key, states) in &blocks {
            write(key, Some(&owners::encode(states)))?;
        }
        for (_, tag) in OLD_TAGS {
            disk.rows(&[tag], &[tag + 1]).try_for_each(|(key, _)| write(&key, None))?;
        }
        buckets(write)?;
        for (table, tag) in OLD_TAGS {
            let mut packer = Packer::new(table);
            for (key, number) in disk.rows(&[tag], &[tag + 1]) {
                let malformed = || StoreError::Damaged("the key of a set row has 17 bytes");
                let item = layout::item_of(&key).ok_or_else(malformed)?;
                let owner = key.get(1..).and_then(|rest| rest.first_chunk());
                let owner = u64::from_be_bytes(*owner.ok_or_else(malformed)?);
                packer.add(owner, (item, layout::decode_number(&number)), write)?;
                items += 1_u64;
            }
            packer.finish(write)?;
        }
        Ok(())
    })?;
    tracing::info!(items, "packed the lists of users");
    Ok(())
}
