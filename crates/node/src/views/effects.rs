//! Ring of the newest effects, for consumers that follow at their own pace.
//!
//! The writer appends the effects of each group and never waits for consumers. A consumer stores the position of the
//! last group that it has handled, in memory or in its own files, and asks for the next ones. If some of these have
//! left the ring, the consumer is notified, derives its state from the facts again, and continues with the kept
//! effects.
//!
//! **Invariant:** when a consumer gets effects, or is notified that some are lost, the facts and the views show them.

use std::collections::VecDeque;
use std::sync::Arc;

use commitlog::Position;
use feed::{Effect, UserId};

use super::sync::Mutex;

/// Maximum size of the kept effects in bytes, including the users of direct posts and of boosts. It is the size of
/// 262,144 effects without users. The newest group is kept even if it is larger.
pub(crate) const BYTES_MAX: usize = 262_144 * size_of::<Effect>();
const _: () = assert!(size_of::<Effect>() <= 32);

/// Error of a consumer whose next effects are no longer kept: it must derive its state from the facts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// Ring of the newest effects.
pub(super) struct Effects(Mutex<Kept>);

struct Kept {
    /// Groups with their positions, ascending.
    groups: VecDeque<(Position, Arc<[Effect]>)>,
    bytes: usize,
    /// Position up to which effects are not kept.
    lost: Position,
    /// Position of the last group.
    end: Position,
}

impl Effects {
    /// Creates an empty ring for the effects after the position `applied`.
    pub(super) fn new(applied: Position) -> Self {
        let (groups, bytes) = (VecDeque::new(), 0);
        Self(Mutex::new(Kept { groups, bytes, lost: applied, end: applied }))
    }

    /// Appends the effects of a group.
    pub(super) fn publish(&self, position: Position, effects: Vec<Effect>) {
        let new: Option<Arc<[Effect]>> = (!effects.is_empty()).then(|| effects.into());
        let new_bytes = new.as_deref().map_or(0, bytes);
        // Declared before the guard, so that evicted groups are dropped after the lock is released.
        let mut evicted = Vec::new();
        let mut kept = self.0.lock();
        kept.end = position;
        let Some(new) = new else { return };
        kept.bytes += new_bytes;
        kept.groups.push_back((position, new));
        while kept.bytes > BYTES_MAX
            && kept.groups.len() > 1
            && let Some((position, oldest)) = kept.groups.pop_front()
        {
            kept.bytes -= bytes(&oldest);
            kept.lost = position;
            evicted.push(oldest);
        }
    }

    /// Returns the position of the last group.
    pub(super) fn end(&self) -> Position {
        self.0.lock().end
    }

    /// Returns the effects of the next group after `cursor` that has any, and sets `cursor` to that group. If there is
    /// no such group, returns `None` and sets `cursor` to the last group.
    ///
    /// # Errors
    /// [`Lost`]; `cursor` is then before the oldest kept group, or at the last group if it was after that.
    pub(super) fn next(&self, cursor: &mut Position) -> Result<Option<Arc<[Effect]>>, Lost> {
        let kept = self.0.lock();
        let nearest = (*cursor).clamp(kept.lost, kept.end);
        if std::mem::replace(cursor, nearest) != nearest {
            return Err(Lost);
        }
        let next = kept.groups.partition_point(|(position, _)| position <= cursor);
        let next = kept.groups.get(next);
        *cursor = next.map_or(kept.end, |(position, _)| *position);
        Ok(next.map(|(_, effects)| Arc::clone(effects)))
    }
}

/// Returns the size of a group in bytes.
fn bytes(effects: &[Effect]) -> usize {
    let of_users = |effect: &Effect| match effect {
        Effect::Post { users: Some(users), .. } => users.len() * size_of::<UserId>(),
        _ => 0,
    };
    // The two counters of the `Arc` precede the effects.
    let own = size_of::<(Position, Arc<[Effect]>)>() + 2 * size_of::<usize>();
    own + size_of_val(effects) + effects.iter().map(of_users).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use feed::{PostChange, PostId};

    use super::*;

    fn posts(posts: std::ops::Range<u64>) -> Vec<Effect> {
        let (author, listed, change) = (UserId(1), Default::default(), PostChange::Published);
        let post = |post| Effect::Post { post: PostId(post), author, listed, users: None, change };
        posts.map(post).collect()
    }

    /// Returns the result for a consumer at a position, and its next position.
    fn next(effects: &Effects, cursor: u64) -> (Result<usize, Lost>, u64) {
        let mut cursor = Position(cursor);
        let next = effects.next(&mut cursor);
        (next.map(|group| group.map_or(0, |group| group.len())), cursor.0)
    }

    #[test]
    fn consumers_get_each_group_once_wherever_they_are() {
        let effects = Effects::new(Position(3));
        for (position, posts_of_group) in [(4, 2), (5, 0), (6, 1), (7, 0)] {
            effects.publish(Position(position), posts(0..posts_of_group));
        }
        assert_eq!(next(&effects, 3), (Ok(2), 4));
        assert_eq!(next(&effects, 4), (Ok(1), 6));
        assert_eq!(next(&effects, 5), (Ok(1), 6), "a group without effects is a place too");
        assert_eq!(next(&effects, 6), (Ok(0), 7));
        assert_eq!(next(&effects, 7), (Ok(0), 7));
        assert_eq!(next(&effects, 2), (Err(Lost), 3), "of before the start");
        assert_eq!(next(&effects, 8), (Err(Lost), 7), "of other facts");
    }

    #[test]
    fn a_consumer_that_lags_by_more_than_is_kept_is_told_and_gets_all_that_is_kept() {
        let effects = Effects::new(Position(0));
        let per_group = 1_000;
        let groups = (BYTES_MAX / size_of::<Effect>()) as u64 / per_group + 1;
        (1..=groups).for_each(|group| effects.publish(Position(group), posts(0..per_group)));
        let (lost, oldest) = next(&effects, 0);
        assert_eq!(lost, Err(Lost));
        assert_eq!(next(&effects, oldest), (Ok(per_group as usize), oldest + 1));
        assert_eq!(next(&effects, oldest - 1), (Err(Lost), oldest));
        assert_eq!(next(&effects, groups), (Ok(0), groups));
        assert_eq!(next(&effects, groups - 1), (Ok(per_group as usize), groups));
        let kept = (0..=groups).filter(|from| next(&effects, *from).0.is_ok()).count() as u64;
        assert!(kept + 3 > groups, "{kept} of {groups}");
        // This group alone exceeds the limit.
        effects.publish(Position(groups + 1), posts(0..300_000));
        assert_eq!(next(&effects, groups - 1), (Err(Lost), groups));
        assert_eq!(next(&effects, groups), (Ok(300_000), groups + 1), "who keeps up loses nothing");
    }
}
