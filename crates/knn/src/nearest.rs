//! The K nearest samples found so far, and bounds that exclude most other samples.
//!
//! **Invariant:** a list of neighbors is sorted by distance, then by id, and has at most K entries.

use crate::bits::BITS;
use crate::labels::Label;

/// Number of distances compared with the bound together. If none is within the bound, none is examined further.
pub(crate) const STRIDE: usize = 32;
/// The distance of a sample that does not exist.
pub(crate) const FAR: u16 = u16::MAX;
/// Number of groups into which [`first_bound`] divides the distances. There are more groups than [`K::MAX`], so that K
/// groups have a minimum that is at most the bound.
const GROUPS: usize = 128;

const _: () = assert!(GROUPS > K::MAX.0);

/// Number of requested neighbors: 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct K(usize);

impl K {
    /// Default number, which suits handwritten digits.
    pub const DEFAULT: Self = Self(15);
    /// Maximum number.
    pub const MAX: Self = Self(100);

    /// Creates a number of neighbors; `None` if it is not between 1 and 100.
    #[must_use]
    pub const fn new(count: usize) -> Option<Self> {
        if count >= 1 && count <= Self::MAX.0 { Some(Self(count)) } else { None }
    }

    /// The number.
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
    /// Label, whose name is in the [`Samples`](crate::Samples) of the neighbor.
    pub label: Label,
    /// Number of bits that differ from the query.
    pub distance: u32,
}

impl Neighbor {
    fn rank(&self) -> (u32, u64) {
        (self.distance, self.id)
    }
}

/// Updates `found`, the `k` nearest samples so far, with more samples. The first `distances` belong to the samples with
/// these `ids` and `labels`, in the same order; all others are [`FAR`]. `within` returns which distances of a stride do
/// not exceed a bound; the lowest bit is the first distance. The function allocates only if the capacity of `found` is
/// below `k`. It and its callees are inlined, so that they are compiled with the caller's instructions.
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

/// Bits of the distances that do not exceed `bound`, computed with instructions that the compiler chooses.
#[inline(always)]
pub(crate) fn within(distances: &[u16; STRIDE], bound: u16) -> u32 {
    // The loop has no early exit, so that the processor compares all distances at once. Usually none is within the
    // bound.
    if !distances.iter().fold(false, |any, distance| any | (*distance <= bound)) {
        return 0;
    }
    distances.iter().rev().fold(0, |bits, distance| bits << 1 | u32::from(*distance <= bound))
}

/// Maximum distance of a sample that can still enter `found`; `None` while `found` is not full.
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
    // Counting to the end has no branch to mispredict, unlike a search.
    let at = found.iter().filter(|other| other.rank() < neighbor.rank()).count();
    found.insert(at, neighbor);
}

/// A bound that at least `k` of the `distances` do not exceed, close to the k-th smallest distance.
///
/// Without this bound, the first samples would enter the list however far they are, and four times as many samples
/// would have to be sorted. The distances are divided into [`GROUPS`] groups. The bound is the k-th smallest of the
/// minimums of the groups, so k groups each have a distance within it. If there are too few distances, the bound is
/// `FAR - 1`.
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
