//! Counting the memory of samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes of all [`Samples`](crate::Samples) created with it, including their clones; memory shared by clones
/// counts once. Clones of a meter are the same meter.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicUsize>);

impl Meter {
    /// Bytes counted now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // Relaxed, because only the count matters, and it publishes no memory to other threads.
        self.0.load(Ordering::Relaxed)
    }
}

/// Counted memory of one owner. Dropping it subtracts it, and cloning counts it again.
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

    /// Sets the counted bytes.
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
