//! A queue of effects for one consumer that follows at its own pace.
//!
//! The writer appends and waits for nobody: if the queue has no room, all of it is dropped, and the consumer is notified and
//! goes on from what the facts show.

use std::collections::VecDeque;

use feed::{Effect, HomeUsers, UserId};
use smallvec::SmallVec;

use crate::sync::Mutex;

/// Bytes of the effects that wait at most, with the users of direct posts and of boosts: 65,536 effects without users.
pub(super) const BYTES_MAX: usize = 65_536 * size_of::<Effect>();
/// Effects taken at once: few enough to lie on the stack and not to keep the writer waiting.
const PIECE: usize = 64;
const _: () = assert!(size_of::<Effect>() <= 32);

/// Consecutive effects.
pub(super) type Piece = SmallVec<[Effect; PIECE]>;

/// See the module.
#[derive(Default)]
pub(super) struct Effects(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    effects: VecDeque<Effect>,
    bytes: usize,
    are_lost: bool,
}

impl Effects {
    /// Appends effects.
    pub(super) fn publish<'a>(&self, effects: impl IntoIterator<Item = &'a Effect>) {
        let mut waiting = self.0.lock();
        for effect in effects {
            if waiting.bytes + bytes(effect) > BYTES_MAX {
                *waiting = Waiting { are_lost: true, ..Waiting::default() };
            }
            waiting.bytes += bytes(effect);
            waiting.effects.push_back(effect.clone());
        }
    }

    /// Takes the next effects, oldest first: some, unless there are none. `None` if effects before them were lost.
    pub(super) fn take(&self) -> Option<Piece> {
        let mut waiting = self.0.lock();
        if std::mem::take(&mut waiting.are_lost) {
            return None;
        }
        let taken = waiting.effects.len().min(PIECE);
        let piece: Piece = waiting.effects.drain(..taken).collect();
        waiting.bytes -= piece.iter().map(bytes).sum::<usize>();
        Some(piece)
    }
}

fn bytes(effect: &Effect) -> usize {
    let users = match effect {
        Effect::Posted { users, .. } | Effect::BoostShown { users, .. } => users.as_ref(),
        _ => None,
    };
    let of_users = |users: &HomeUsers| users.len() * size_of::<UserId>();
    size_of::<Effect>() + users.map_or(0, of_users)
}
