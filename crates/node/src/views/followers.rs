//! The active users of a shard who follow each author, as lists of their slots.
//!
//! Removal from a list costs the same however long it is: a short one is searched, and a long one has an
//! index of its places.

use feed::UserId;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// A place in a shard's table of timelines.
pub(super) type Slot = u32;

/// Longest list that is searched: 4 KiB, 0.1 µs.
const SEARCHED_MAX: usize = 1_024;
/// A list this short has no index any more. Less than [`SEARCHED_MAX`], so that a list does not gain and
/// lose its index repeatedly.
const INDEXED_MIN: usize = SEARCHED_MAX / 2;

/// Followers by author. No order within a list.
#[derive(Default)]
pub(super) struct Followers {
    lists: HashMap<UserId, SmallVec<[Slot; 4]>>,
    /// Of long lists: the place of each slot.
    places: HashMap<UserId, HashMap<Slot, u32>>,
}

impl Followers {
    /// The slots of those who follow `author`.
    pub(super) fn of(&self, author: UserId) -> &[Slot] {
        self.lists.get(&author).map(SmallVec::as_slice).unwrap_or_default()
    }

    /// Adds a slot, which must not be in the list.
    pub(super) fn add(&mut self, author: UserId, slot: Slot) {
        let list = self.lists.entry(author).or_default();
        list.push(slot);
        if list.len() <= SEARCHED_MAX {
            return;
        }
        let place = list.len() as u32 - 1;
        let index = || list.iter().copied().zip(0..).collect();
        self.places.entry(author).or_insert_with(index).insert(slot, place);
    }

    /// Removes a slot; the last one of the list takes its place.
    pub(super) fn remove(&mut self, author: UserId, slot: Slot) {
        let Some(list) = self.lists.get_mut(&author) else { return };
        let mut places = self.places.get_mut(&author);
        let place = match &mut places {
            Some(places) => places.remove(&slot).map(|place| place as usize),
            None => list.iter().position(|other| *other == slot),
        };
        let Some(place) = place else { return };
        list.swap_remove(place);
        if let Some(moved) = list.get(place)
            && let Some(places) = places
        {
            places.insert(*moved, place as u32);
        }
        if list.len() < INDEXED_MIN {
            self.places.remove(&author);
        }
        if list.is_empty() {
            self.lists.remove(&author);
        }
    }

    /// Number of slots that are searched to remove one from the list of `author`.
    #[cfg(test)]
    pub(super) fn searched(&self, author: UserId) -> usize {
        if self.places.contains_key(&author) { 1 } else { self.of(author).len() }
    }

    /// All entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        for (author, places) in &self.places {
            assert_eq!(places.len(), self.of(*author).len());
            for (place, slot) in self.of(*author).iter().enumerate() {
                assert_eq!(places[slot] as usize, place);
            }
        }
        self.lists.values().map(SmallVec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ADA: UserId = UserId(1);

    #[test]
    fn removal_from_a_list_costs_the_same_however_long_it_is() {
        let mut followers = Followers::default();
        let mut model = BTreeSet::new();
        let mut state = 1_u64;
        // Up to three times the length, back to nothing, and up again.
        for step in 0..30_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let slot = (state >> 33) as Slot % 3_500;
            let grows = step / 10_000 != 1;
            if grows && model.insert(slot) {
                followers.add(ADA, slot);
            } else if !grows && model.remove(&slot) {
                followers.remove(ADA, slot);
            }
            assert!(followers.searched(ADA) <= SEARCHED_MAX, "{} followers", model.len());
            if step % 1_000 == 0 {
                assert_eq!(followers.len(), model.len());
            }
        }
        assert!(model.len() > 2 * SEARCHED_MAX);
        assert_eq!(followers.of(ADA).iter().copied().collect::<BTreeSet<_>>(), model);
        for slot in model {
            followers.remove(ADA, slot);
            followers.remove(ADA, slot);
        }
        assert!(followers.lists.is_empty() && followers.places.is_empty());
    }
}
