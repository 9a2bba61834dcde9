//! States of the owners of sets, in memory. The state of an owner has four bits and says which kinds of rows the owner
//! may have on disk.
//!
//! Most reads of sets are for owners without rows on disk: new users who follow others, and users who never post. With
//! the states, such reads need not search the tables on disk. States are stored with the rows of a checkpoint, in
//! blocks of [`BLOCK_OWNERS`] owners.
//!
//! **Invariant:** if rows exist, the state says so; it may also say so if they do not exist. A checkpoint therefore
//! raises states before its rows become visible, and lowers states after that.
//!
//! Tables without dense owners have no states, because each owner would need its own block.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use parking_lot::RwLock;
use rows::SetTable;

/// Number of owners per block.
const BLOCK_OWNERS: u64 = 512;
const WORDS: usize = 32;
const OWNERS_PER_WORD: u64 = 16;
const STATE_BITS: u64 = 4;
const STATE_MASK: u64 = 0xf;

/// Kinds of rows that an owner may have on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State(u8);

impl State {
    /// No rows.
    pub(crate) const NONE: Self = Self(0);
    /// Rows. In a packed table, these are chunks without deltas.
    pub(crate) const ROWS: Self = Self(1);
    /// All kinds of rows.
    #[cfg(feature = "simulation")]
    pub(crate) const MOST: Self = Self(STATE_MASK as u8);
    /// Maximum number of deltas of an owner.
    pub(crate) const DELTAS_MAX: u8 = STATE_MASK as u8 - 1;

    /// Returns the state of an owner that has rows and `deltas` deltas (at most the maximum).
    pub(crate) fn with_deltas(deltas: u8) -> Self {
        Self(deltas.min(Self::DELTAS_MAX) + 1)
    }

    /// Returns the number of deltas.
    pub(crate) fn deltas(self) -> u8 {
        self.0.saturating_sub(1)
    }

    /// Returns the state with one more delta, unless there are too many.
    pub(crate) fn with_delta(self) -> Option<Self> {
        (self >= Self::ROWS && self.deltas() < Self::DELTAS_MAX).then_some(Self(self.0 + 1))
    }
}

/// States of [`BLOCK_OWNERS`] owners.
pub(crate) type Block = [u64; WORDS];

/// States of all owners of each table.
#[derive(Default)]
pub(crate) struct Owners {
    blocks: RwLock<HashMap<(SetTable, u64), Block>>,
}

/// Returns the block, the word in it, and the shift in the word.
fn place(owner: u64) -> (u64, usize, u64) {
    let within = owner % BLOCK_OWNERS;
    let shift = within % OWNERS_PER_WORD * STATE_BITS;
    (owner / BLOCK_OWNERS, (within / OWNERS_PER_WORD) as usize, shift)
}

fn get(block: &Block, word: usize, shift: u64) -> State {
    let word = block.get(word).copied().unwrap_or_default();
    State((word >> shift & STATE_MASK) as u8)
}

fn set(block: &mut Block, word: usize, shift: u64, state: State) {
    let Some(word) = block.get_mut(word) else { unreachable!("512 states are 32 words") };
    *word = *word & !(STATE_MASK << shift) | u64::from(state.0) << shift;
}

impl Owners {
    /// Returns the kinds of rows that `owner` may have on disk.
    pub(crate) fn state(&self, table: SetTable, owner: u64) -> State {
        if !table.has_dense_owners() {
            return State::ROWS;
        }
        let (block, word, shift) = place(owner);
        let blocks = self.blocks.read();
        blocks.get(&(table, block)).map_or(State::NONE, |block| get(block, word, shift))
    }

    /// Whether `owner` may have rows on disk. If false, it certainly has none.
    pub(crate) fn contains(&self, table: SetTable, owner: u64) -> bool {
        self.state(table, owner) != State::NONE
    }

    /// Raises states to those in `changes`; called before the rows become visible. Returns the number of each changed
    /// block, in order, and the bytes to store for it. In these bytes, states are also lowered.
    pub(crate) fn raise(&self, table: SetTable, changes: &[(u64, State)]) -> Vec<(u64, Vec<u8>)> {
        let mut blocks = self.blocks.write();
        let mut changed = BTreeMap::new();
        for (owner, state) in changes {
            let (number, word, shift) = place(*owner);
            let block = blocks.entry((table, number)).or_insert([0; WORDS]);
            let old = get(block, word, shift);
            if old != *state {
                set(changed.entry(number).or_insert(*block), word, shift, *state);
                set(block, word, shift, old.max(*state));
            }
        }
        changed.into_iter().map(|(number, block)| (number, encode(&block))).collect()
    }

    /// Sets states to those in `changes`; called after the rows became visible.
    pub(crate) fn settle(&self, table: SetTable, changes: &[(u64, State)]) {
        let mut blocks = self.blocks.write();
        for (owner, state) in changes {
            let (number, word, shift) = place(*owner);
            set(blocks.entry((table, number)).or_insert([0; WORDS]), word, shift, *state);
        }
    }

    /// Adds a block that was read from disk. Returns `false` if its bytes are not a block.
    pub(crate) fn restore(&self, table: SetTable, number: u64, bytes: &[u8]) -> bool {
        let Some(block) = decode(bytes) else { return false };
        self.blocks.write().insert((table, number), block);
        true
    }
}

/// Encodes a block.
pub(crate) fn encode(block: &Block) -> Vec<u8> {
    block.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Reverses [`encode`].
pub(crate) fn decode(bytes: &[u8]) -> Option<Block> {
    let mut block = [0; WORDS];
    let (words, rest) = bytes.as_chunks::<8>();
    if words.len() != WORDS || !rest.is_empty() {
        return None;
    }
    for (word, bytes) in block.iter_mut().zip(words) {
        *word = u64::from_le_bytes(*bytes);
    }
    Some(block)
}
