//! The latest effects, for consumers that follow them at their own pace, each with a cursor that it keeps.
//!
//! The writer appends and waits for nobody: a consumer that lags by more than [`KEPT_MAX`] effects finds that the next
//! ones are gone, and goes on from what the facts show.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use feed::Effect;
use smallvec::SmallVec;

use crate::sync::{AtomicU64, Mutex};

/// Effects that are kept: 2 MiB, with the users of direct posts and of boosts besides.
pub(super) const KEPT_MAX: usize = 65_536;
/// Effects read at once: few enough to lie on the stack and not to keep the writer waiting.
const PIECE: usize = 64;
const _: () = assert!(size_of::<Effect>() <= 32);

/// Consecutive effects.
pub(super) type Piece = SmallVec<[Effect; PIECE]>;

/// Effects at consecutive positions from 0.
#[derive(Default)]
pub(super) struct Effects {
    /// Written while the lock is held; who loads it sees, by acquire and release, all effects before it.
    head: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    first: u64,
    effects: VecDeque<Effect>,
}

impl Effects {
    /// Appends effects.
    pub(super) fn publish(&self, effects: impl IntoIterator<Item = Effect>) {
        let mut kept = self.kept.lock();
        for effect in effects {
            if kept.effects.len() == KEPT_MAX {
                kept.effects.pop_front();
                kept.first += 1;
            }
            kept.effects.push_back(effect);
        }
        self.head.store(kept.first + kept.effects.len() as u64, Ordering::Release);
    }

    /// The position after the last effect.
    pub(super) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// The next effects from `cursor` on: some, unless it is the head. `None` if they are gone.
    pub(super) fn read(&self, cursor: u64) -> Option<Piece> {
        if cursor == self.head() {
            return Some(Piece::new());
        }
        let kept = self.kept.lock();
        let skip = usize::try_from(cursor.checked_sub(kept.first)?).ok()?;
        Some(kept.effects.range(skip.min(kept.effects.len())..).take(PIECE).cloned().collect())
    }
}
