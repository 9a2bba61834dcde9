//! Follows of a population while they are being assigned.
//!
//! Each user has a place. Members of a community have adjacent places, so that the data of a community stays in the CPU
//! cache. Each place has capacity for the planned number of followees. **Invariant:** no user follows themselves or
//! another user twice; the caller of `add` checks this.

use std::ops::Range;

/// Follows by place, in the order in which they were assigned.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Start of each place's slots in `targets`, and the end of the last one.
    offsets: Vec<u32>,
    /// First free slot of each place.
    ends: Vec<u32>,
    /// Start of each place's followees within the community; followees elsewhere precede them.
    locals: Vec<u32>,
    targets: Vec<u32>,
    /// Last follower for whom each place was marked as taken.
    marks: Vec<u32>,
}

impl Draft {
    /// Creates a draft without follows. `following` has the capacity of each place.
    pub(crate) fn with_room(following: &[u32]) -> Draft {
        let offsets = offsets(following);
        let places = following.len();
        Draft {
            ends: offsets.iter().take(places).copied().collect(),
            locals: offsets.iter().take(places).copied().collect(),
            targets: vec![0; offsets.last().map_or(0, |&end| end as usize)],
            marks: vec![u32::MAX; places],
            offsets,
        }
    }

    pub(crate) fn places(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The followees of `place` so far.
    pub(crate) fn following(&self, place: u32) -> &[u32] {
        let span = at(&self.offsets, place) as usize..at(&self.ends, place) as usize;
        self.targets.get(span).unwrap_or_default()
    }

    /// The followees that were added since [`Draft::begin_locals`].
    pub(crate) fn locals(&self, place: u32) -> &[u32] {
        let span = at(&self.locals, place) as usize..at(&self.ends, place) as usize;
        self.targets.get(span).unwrap_or_default()
    }

    /// Begins the followees within the community, for these places.
    pub(crate) fn begin_locals(&mut self, places: Range<u32>) {
        let places = places.start as usize..places.end as usize;
        if let (Some(locals), Some(ends)) =
            (self.locals.get_mut(places.clone()), self.ends.get(places))
        {
            locals.copy_from_slice(ends);
        }
    }

    /// The number of free slots of `place`.
    pub(crate) fn room(&self, place: u32) -> u32 {
        at(&self.offsets, place + 1) - at(&self.ends, place)
    }

    /// Makes `follower` follow `followed`. There must be a free slot.
    pub(crate) fn add(&mut self, follower: u32, followed: u32) {
        assert!(self.room(follower) > 0, "more followees than planned");
        let Some(end) = self.ends.get_mut(follower as usize) else { return };
        if let Some(target) = self.targets.get_mut(*end as usize) {
            *target = followed;
            *end += 1;
        }
    }

    /// Marks `follower` and all their followees as taken.
    pub(crate) fn mark(&mut self, follower: u32) {
        let span = at(&self.offsets, follower) as usize..at(&self.ends, follower) as usize;
        for &followed in self.targets.get(span).unwrap_or_default() {
            set(&mut self.marks, followed, follower);
        }
        set(&mut self.marks, follower, follower);
    }

    /// Marks `followed` as taken, and makes `follower` follow them.
    pub(crate) fn add_marked(&mut self, follower: u32, followed: u32) {
        set(&mut self.marks, followed, follower);
        self.add(follower, followed);
    }

    /// Whether `followed` is marked as taken for `follower`.
    pub(crate) fn is_marked(&self, follower: u32, followed: u32) -> bool {
        at(&self.marks, followed) == follower
    }
}

/// Returns the starts of consecutive spans of these lengths, and the end of the last one.
///
/// # Panics
/// If the total does not fit 32 bits.
pub(crate) fn offsets(lengths: &[u32]) -> Vec<u32> {
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    let mut end = 0_u32;
    offsets.push(end);
    for &length in lengths {
        let Some(next) = end.checked_add(length) else {
            panic!("more follows than a population can have");
        };
        end = next;
        offsets.push(end);
    }
    offsets
}

/// Returns the number of an existing place.
pub(crate) fn at(numbers: &[u32], place: u32) -> u32 {
    numbers.get(place as usize).copied().unwrap_or_default()
}

/// Sets the number of a place.
pub(crate) fn set(numbers: &mut [u32], place: u32, number: u32) {
    if let Some(kept) = numbers.get_mut(place as usize) {
        *kept = number;
    }
}

/// Decrements the number of a place, which is at least 1.
pub(crate) fn take_one(numbers: &mut [u32], place: u32) {
    if let Some(kept) = numbers.get_mut(place as usize) {
        *kept -= 1;
    }
}
