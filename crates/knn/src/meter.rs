//! Counter of the memory of samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the memory of all [`Samples`](crate::Samples) created with this meter and of their clones, in bytes. Memory
/// that clones share is counted once. A clone of a meter shares its count.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicUsize>);

impl Meter {
    /// Number of bytes counted now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // Relaxed: only the count matters, because it publishes no memory to other threads.
        self.0.load(Ordering::Relaxed)
    }
}

/// Counted memory of one owner. A clone is counted too; dropping an owner subtracts its memory.
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

    /// Sets the memory of this owner, in bytes.
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
