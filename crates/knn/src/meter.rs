//! Counting the memory of samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that all [`Samples`](crate::Samples) made with it hold, their clones included; what
/// clones share counts once. Clones of a meter are the same meter.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicUsize>);

impl Meter {
    /// Bytes held now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // A count alone: it publishes no memory to other threads.
        self.0.load(Ordering::Relaxed)
    }
}

/// The memory that one owner has counted. Dropping it subtracts it, and cloning counts it again.
#[derive(Debug)]
pub(crate) struct Counted {
    meter: Meter,
    bytes: usize,
}

impl Counted {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self { meter: meter.clone(), bytes: 0 }
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Makes it count `bytes`.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.meter.0.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            self.meter.0.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        let mut counted = Self::new(&self.meter);
        counted.set(self.bytes);
        counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}
