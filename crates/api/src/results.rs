//! Bodies of responses to changes with idempotency keys: a retry gets the body of the first response, even if an edit
//! or a rename came in between, as long as the item exists.
//!
//! The node stores the outcome of a change, with its id, for a day. This server keeps the newest bodies in memory, as
//! far as they fit, and renders any other body again from the store.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use feed::{Done, Idempotency};
use parking_lot::Mutex;

/// Maximum size of all bodies with their entries, in bytes. It is part of the memory of the program.
const BYTES_MAX: usize = 4 << 20;
/// Size of an entry without its body, in bytes.
const ENTRY_BYTES: usize = 256;

/// A change with an idempotency key, and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) once: Idempotency,
    pub(crate) done: Done,
}

/// Bodies of the newest responses to changes.
#[derive(Debug, Default)]
pub(crate) struct Results(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    bodies: HashMap<[u8; 16], (Made, Bytes)>,
    /// Keys of `bodies`, oldest first.
    order: VecDeque<[u8; 16]>,
    bytes: usize,
}

impl Results {
    /// Returns the body of the first response to a change, if it is in memory.
    pub(crate) fn get(&self, made: &Made) -> Option<Bytes> {
        let kept = self.0.lock();
        let (known, body) = kept.bodies.get(&made.once.key)?;
        (known == made).then(|| body.clone())
    }

    /// Stores the body of the first response to a change.
    pub(crate) fn keep(&self, made: Made, body: Bytes) {
        let key = made.once.key;
        let mut kept = self.0.lock();
        kept.bytes += ENTRY_BYTES + body.len();
        match kept.bodies.insert(key, (made, body)) {
            Some((_, old)) => kept.bytes -= ENTRY_BYTES + old.len(),
            None => kept.order.push_back(key),
        }
        while kept.bytes > BYTES_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            let removed = kept.bodies.remove(&oldest);
            kept.bytes -= removed.map_or(0, |(_, body)| ENTRY_BYTES + body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use feed::PostId;

    use super::*;

    fn made(number: u64) -> Made {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&number.to_le_bytes());
        let once = Idempotency { key, content: [0; 8] };
        Made { once, done: Done::Posted(PostId(number)) }
    }

    #[test]
    fn the_newest_bodies_that_fit_are_kept() {
        let results = Results::default();
        let body = Bytes::from(vec![b'x'; 1 << 20]);
        for number in 0..100 {
            results.keep(made(number), body.clone());
            assert!(results.0.lock().bytes <= BYTES_MAX);
        }
        let kept: Vec<u64> =
            (0..100).filter(|number| results.get(&made(*number)).is_some()).collect();
        assert_eq!(kept, (97..100).collect::<Vec<_>>());
        let kept = results.0.lock();
        assert_eq!((kept.bodies.len(), kept.order.len()), (3, 3));
    }

    #[test]
    fn a_body_is_of_one_content_and_one_outcome() {
        let (results, first) = (Results::default(), made(1));
        results.keep(first, Bytes::from_static(b"first"));
        let other = Made { once: Idempotency { content: [1; 8], ..first.once }, ..first };
        let later = Made { done: Done::Posted(PostId(2)), ..first };
        assert_eq!(results.get(&first), Some(Bytes::from_static(b"first")));
        assert_eq!((results.get(&other), results.get(&later)), (None, None));
        // After a day, the same key belongs to another change.
        results.keep(later, Bytes::from_static(b"later"));
        assert_eq!((results.get(&first), results.get(&later)), (None, Some("later".into())));
        assert_eq!(results.0.lock().order.len(), 1);
    }
}
