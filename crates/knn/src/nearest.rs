//! The K nearest samples so far, and the bounds that exclude most distances.
//!
//! **Invariant:** a list of neighbors is sorted by distance, then by id, and has at most K entries.

use crate::bits::BITS;
use crate::labels::Label;

/// Number of distances checked together: if none is near enough, none is checked alone.
pub(crate) const STRIDE: usize = 32;
/// The distance of a sample that does not exist.
pub(crate) const FAR: u16 = u16::MAX;
/// Number of groups in which the first distances compete. More than [`K::MAX`], so that the K-th best winner bounds the
/// K nearest.
const GROUPS: usize = 128;

const _: () = assert!(GROUPS > K::MAX.0);

/// Number of requested neighbors: 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct K(usize);

impl K {
    /// Default, which suits handwritten digits.
    pub const DEFAULT: Self = Self(15);
    /// Maximum.
    pub const MAX: Self = Self(100);

    /// Creates a number of neighbors; `None` unless it is 1 to 100.
    #[must_use]
    pub const fn new(count: usize) -> Option<Self> {
        if count >= 1 && count <= Self::MAX.0 { Some(Self(count)) } else { None }
    }

    /// Value as a number.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0
    }
}

/// Sample near a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Id of the sample.
    pub id: u64,
    /// Label, to be looked up in the [`Samples`](crate::Samples) of the neighbor.
    pub label: Label,
    /// Number of bits that differ from the query.
    pub distance: u32,
}

impl Neighbor {
    fn rank(&self) -> (u32, u64) {
        (self.distance, self.id)
    }
}

/// Inserts the samples that are among the `k` nearest so far into `found`. `ids` and `labels` belong to the samples
/// whose `distances` are below [`FAR`], in the same order. Allocates only if `found` has a capacity below `k`. `within`
/// returns the distances of a stride that do not exceed a bound, the first one in the lowest bit. Inlined with its
/// callees, so that it is built with the caller's instructions.
#[inline(always)]
pub(crate) fn select(
    distances: &[[u16; STRIDE]],
    ids: &[u64],
    labels: &[Label],
    k: K,
    found: &mut Vec<Neighbor>,
    within: impl Fn(&[u16; STRIDE], u16) -> u32,
) {
    found.reserve(k.0.saturating_sub(found.len()));
    let mut bound = reach(found, k).unwrap_or_else(|| first_bound(distances, k));
    for (stride, distances) in distances.iter().enumerate() {
        let mut near = within(distances, bound);
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let at = stride * STRIDE + lane;
            let (Some(id), Some(label)) = (ids.get(at), labels.get(at)) else { break };
            let Some(distance) = distances.get(lane) else { break };
            let distance = u32::from(*distance);
            insert(Neighbor { id: *id, label: *label, distance }, k, found);
            bound = reach(found, k).map_or(bound, |reach| reach.min(bound));
        }
    }
}

/// Distances that do not exceed `bound`, with instructions chosen by the compiler.
#[inline(always)]
pub(crate) fn within(distances: &[u16; STRIDE], bound: u16) -> u32 {
    // No early exit, so that the processor compares them all at once; rarely is there any.
    if !distances.iter().fold(false, |any, distance| any | (*distance <= bound)) {
        return 0;
    }
    distances.iter().rev().fold(0, |bits, distance| bits << 1 | u32::from(*distance <= bound))
}

/// Distance above which nothing can enter `found` any more; `None` while it is not full.
#[inline(always)]
fn reach(found: &[Neighbor], k: K) -> Option<u16> {
    let last = found.get(k.0 - 1)?;
    u16::try_from(last.distance).ok()
}

#[inline(always)]
fn insert(neighbor: Neighbor, k: K, found: &mut Vec<Neighbor>) {
    if found.len() == k.0 {
        if found.last().is_some_and(|last| last.rank() < neighbor.rank()) {
            return;
        }
        found.pop();
    }
    // Counted to the end instead of searched, so that there is no branch to mispredict.
    let at = found.iter().filter(|other| other.rank() < neighbor.rank()).count();
    found.insert(at, neighbor);
}

/// A distance that at least `k` of `distances` do not exceed, close to the k-th smallest.
///
/// Without it the first samples would enter the list whatever their distance, and four times as many would have to be
/// sorted. The smallest of each of [`GROUPS`] groups is found by comparing whole rows; the k-th smallest of these has k
/// distances at or below it. With too few distances, the only guarantee is that it is below [`FAR`].
#[inline(always)]
fn first_bound(distances: &[[u16; STRIDE]], k: K) -> u16 {
    let mut winners = [[FAR; STRIDE]; GROUPS / STRIDE];
    for row in distances.chunks(GROUPS / STRIDE) {
        for (winners, distances) in winners.iter_mut().zip(row) {
            for (winner, distance) in winners.iter_mut().zip(distances) {
                *winner = (*winner).min(*distance);
            }
        }
    }
    let winners = winners.as_flattened();
    let within = |bound: u16| winners.iter().map(|winner| u16::from(*winner <= bound)).sum::<u16>();
    let enough = |bound| usize::from(within(bound)) >= k.0;
    let (mut low, mut high) = (0, BITS as u16);
    if !enough(high) {
        return FAR - 1;
    }
    while low < high {
        let middle = low.midpoint(high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}
