//! Choice of the unsynced changes that survive: all, none, those before some moment, or a random part.
//!
//! State: a random number generator with a seed. The same seed gives the same result.

use std::collections::BTreeSet;

use rand::RngExt as _;
use rand::rngs::StdRng;

const SECTOR_BYTES: u64 = 512;
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The part of all unsynced changes that survives a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// No unsynced change.
    Nothing,
    /// All changes, as after `kill -9`.
    Everything,
    /// All changes before a moment, and none after it.
    Before,
    /// Any changes, whatever their order: on average this many of a thousand.
    Parts(u32),
}

#[derive(Clone)]
pub(crate) enum Change {
    /// Bytes at an offset; zeros if there is no data.
    Write {
        offset: u64,
        bytes: u64,
        data: Option<Vec<u8>>,
    },
    Resize(u64),
}

impl Change {
    /// Range of changed bytes; empty for a change of the length.
    fn range(&self) -> (u64, u64) {
        match self {
            Self::Write { offset, bytes, .. } => (*offset, offset + bytes),
            Self::Resize(bytes) => (*bytes, *bytes),
        }
    }

    pub(crate) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { .. } => self.apply_part(content, 0, u64::MAX),
            Self::Resize(bytes) => content.resize(*bytes as usize, 0),
        }
    }

    /// Writes the part of the changed bytes that is between `from` and `to`.
    fn apply_part(&self, content: &mut Vec<u8>, from: u64, to: u64) {
        let Self::Write { offset, data, .. } = self else { return };
        let (low, high) = self.range();
        let (low, high) = (low.max(from), high.min(to));
        if low >= high {
            return;
        }
        if (content.len() as u64) < high {
            content.resize(high as usize, 0);
        }
        let Some(into) = content.get_mut(low as usize..high as usize) else { return };
        match data {
            Some(data) => {
                let data = data.get((low - offset) as usize..(high - offset) as usize);
                into.copy_from_slice(data.expect("the record is whole"));
            }
            None => into.fill(0),
        }
    }
}

/// The random choice of surviving changes.
pub(crate) struct Choice {
    pub(crate) loss: Loss,
    /// Moment of [`Loss::Before`].
    pub(crate) moment: u64,
    pub(crate) rng: StdRng,
}

impl Choice {
    pub(crate) fn keeps(&mut self, time: u64) -> bool {
        match self.loss {
            Loss::Nothing => false,
            Loss::Everything => true,
            Loss::Before => time <= self.moment,
            Loss::Parts(share) => self.rng.random_range(0..1000) < share,
        }
    }

    pub(crate) fn content(&mut self, durable: &[u8], unsynced: &[(u64, Change)]) -> Vec<u8> {
        if matches!(self.loss, Loss::Parts(_)) {
            return self.any_parts(durable, unsynced);
        }
        let mut content = durable.to_vec();
        for (time, change) in unsynced {
            if self.keeps(*time) {
                change.apply(&mut content);
            }
        }
        content
    }

    /// Content whose parts, and whose length, are each from a random moment of their own.
    fn any_parts(&mut self, durable: &[u8], unsynced: &[(u64, Change)]) -> Vec<u8> {
        let part = if self.rng.random() { SECTOR_BYTES } else { PAGE_BYTES };
        let mut parts = BTreeSet::new();
        let (mut length, mut lengths) = (durable.len() as u64, vec![durable.len() as u64]);
        for (_, change) in unsynced {
            let (from, to) = change.range();
            parts.extend((from / part)..to.div_ceil(part));
            length = if let Change::Resize(bytes) = change { *bytes } else { length.max(to) };
            lengths.push(length);
        }
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        let mut content = durable.to_vec();
        content.resize(longest.max(durable.len()), 0);
        for number in parts {
            let (from, to) = (number * part, (number + 1) * part);
            for (_, change) in unsynced.get(..self.moment_of(unsynced.len())).unwrap_or_default() {
                match change {
                    Change::Write { .. } => change.apply_part(&mut content, from, to),
                    Change::Resize(bytes) => cut(&mut content, from.max(*bytes), to),
                }
            }
        }
        let kept = lengths.get(self.moment_of(unsynced.len())).copied().unwrap_or_default();
        content.resize(kept as usize, 0);
        content
    }

    /// Draws how many of the `changes` to one part are kept. These are all changes, with the probability of
    /// [`Loss::Parts`]; otherwise a random number of the first ones, which is 0 half of the time.
    fn moment_of(&mut self, changes: usize) -> usize {
        if self.keeps(0) {
            changes
        } else {
            self.rng.random_range(0..=changes) * self.rng.random_range(0..=1)
        }
    }
}

/// Sets bytes to zero that are beyond a shorter length.
fn cut(content: &mut [u8], from: u64, to: u64) {
    let to = to.min(content.len() as u64);
    if let Some(gone) = content.get_mut(from as usize..to.max(from) as usize) {
        gone.fill(0);
    }
}
