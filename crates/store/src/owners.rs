//! The owners that have rows in the sets on disk: one bit per owner, in memory. A bit may be set
//! unnecessarily, but is never missing.
//!
//! Most reads of sets concern owners without any rows on disk: a new user who follows others, a user who
//! never posts. With the bit they need no read of the tables on disk. Bits are set by a checkpoint before
//! its rows become visible, are stored with them in blocks of [`BLOCK_OWNERS`], and are never cleared: a
//! bit may be set for an owner whose rows were all removed.
//!
//! Tables whose owners are not dense have no bits, because each bit would need a block.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use parking_lot::RwLock;
use rows::SetTable;

/// Owners per block.
const BLOCK_OWNERS: u64 = 512;
const WORDS: usize = 8;

/// One bitmap per set table.
#[derive(Default)]
pub(crate) struct Owners {
    blocks: RwLock<HashMap<(SetTable, u64), [u64; WORDS]>>,
}

fn place(owner: u64) -> (u64, usize, u64) {
    let within = owner % BLOCK_OWNERS;
    (owner / BLOCK_OWNERS, (within / 64) as usize, 1 << (within % 64))
}

impl Owners {
    /// Whether `owner` may have rows on disk; `false` is certain.
    pub(crate) fn contains(&self, table: SetTable, owner: u64) -> bool {
        if !table.has_dense_owners() {
            return true;
        }
        let (block, word, bit) = place(owner);
        let blocks = self.blocks.read();
        let found = blocks.get(&(table, block)).and_then(|words| words.get(word));
        found.is_some_and(|word| word & bit != 0)
    }

    /// Sets the bits of `owners`; returns the blocks that changed, in order, with their bytes.
    pub(crate) fn note(&self, table: SetTable, owners: &[u64]) -> Vec<(u64, [u8; 64])> {
        let mut blocks = self.blocks.write();
        let mut changed = BTreeSet::new();
        for owner in owners {
            let (block, word, bit) = place(*owner);
            let words = blocks.entry((table, block)).or_default();
            let Some(word) = words.get_mut(word) else { unreachable!("512 bits are 8 words") };
            if *word & bit == 0 {
                *word |= bit;
                changed.insert(block);
            }
        }
        let bytes =
            |block| (block, encode(&blocks.get(&(table, block)).copied().unwrap_or_default()));
        changed.into_iter().map(bytes).collect()
    }

    /// Adds a block read from disk; `false` if its bytes are not a block.
    pub(crate) fn restore(&self, table: SetTable, block: u64, bytes: &[u8]) -> bool {
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let words: Vec<u64> = words.collect();
        let Ok(words) = <[u64; WORDS]>::try_from(words) else { return false };
        self.blocks.write().insert((table, block), words);
        true
    }
}

fn encode(words: &[u64; WORDS]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    bytes
}
