//! Experiment 7: a drawing is compared with 2,339 samples, and the answer is the nearest 15. The designs differ in the
//! instructions that compute distances, and in the boundary (such as threads or processes) that a request crosses.

mod experiment;
mod inline;
mod java;
mod pool;
pub(crate) mod port;
mod tasks;

#[cfg(test)]
mod tests;

use knn::{Bits, K};

pub(crate) use experiment::{LATENCY, THROUGHPUT};

/// Distance and id of each of the nearest samples, nearest first.
type Nearest = Vec<(u32, u64)>;

/// Number of nearest samples.
const NEIGHBORS: K = K::DEFAULT;

/// Design of the recognizer.
trait Design: Send + Sync + 'static {
    /// Finds the samples nearest to a drawing.
    fn nearest(&self, query: Bits) -> impl Future<Output = Nearest> + Send;
}

/// Reference samples, each with its id.
fn references() -> Vec<(u64, Bits)> {
    knn::digits().iter().map(|(id, _, bits)| (id, bits)).collect()
}

/// Selects the nearest samples from all distances.
fn select(mut distances: Nearest) -> Nearest {
    distances.sort_unstable();
    distances.truncate(NEIGHBORS.count());
    distances
}
