//! The stream of effects: what the writer publishes and every view shard consumes at its own pace.
//!
//! The writer owns the head; publishing costs one short lock, whatever the number of followers.
//! Consumers keep a cursor each. Effects that every shard has consumed stay for a while ([`KEPT_MIN`]), so
//! that a timeline gathered from the facts can be brought up to date.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use feed::Effect;
use smallvec::SmallVec;

use crate::sync::{AtomicU64, Mutex};

/// Consumed effects that stay available: 2 MB, far more than are published while a timeline is gathered.
const KEPT_MIN: u64 = 65_536;
/// Effects read at once: few enough to lie on the stack and not to keep the writer waiting.
const PIECE: usize = 64;

/// Consecutive effects.
pub(super) type Piece = SmallVec<[Effect; PIECE]>;

/// Effects at consecutive positions from 0.
#[derive(Default)]
pub(super) struct Stream {
    head: AtomicU64,
    /// Before it every shard has consumed everything.
    consumed: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    first: u64,
    effects: VecDeque<Effect>,
}

impl Stream {
    /// Appends effects; they are visible to every consumer when this returns.
    pub(super) fn publish(&self, effects: impl IntoIterator<Item = Effect>) {
        let mut kept = self.kept.lock();
        kept.effects.extend(effects);
        self.head.store(kept.first + kept.effects.len() as u64, Ordering::Release);
    }

    /// The position after the last effect.
    pub(super) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// The next effects from `cursor` on: some, unless it is the head. `None` if they are gone.
    pub(super) fn read(&self, cursor: u64) -> Option<Piece> {
        let kept = self.kept.lock();
        let skip = usize::try_from(cursor.checked_sub(kept.first)?).ok()?;
        Some(kept.effects.range(skip.min(kept.effects.len())..).take(PIECE).cloned().collect())
    }

    /// Number of effects that some shard has not consumed yet.
    pub(super) fn backlog(&self) -> u64 {
        // A hint for callers who ask again: the two values may be of different times.
        self.head().saturating_sub(self.consumed.load(Ordering::Relaxed))
    }

    /// Every shard has consumed what is before `consumed`; drops it, except the newest
    /// [`KEPT_MIN`].
    pub(super) fn trim(&self, consumed: u64) {
        self.consumed.store(consumed, Ordering::Relaxed);
        let mut kept = self.kept.lock();
        let head = kept.first + kept.effects.len() as u64;
        let first = consumed.min(head.saturating_sub(KEPT_MIN));
        let gone = first.saturating_sub(kept.first);
        if gone == 0 {
            return;
        }
        kept.effects.drain(..gone as usize);
        kept.first = first;
        if kept.effects.capacity() > 4 * kept.effects.len().max(KEPT_MIN as usize) {
            kept.effects.shrink_to(2 * KEPT_MIN as usize);
        }
    }

    /// Number of retained effects.
    pub(super) fn len(&self) -> usize {
        self.kept.lock().effects.len()
    }
}
