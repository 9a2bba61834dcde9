//! Cache of ids by name, filled by readers.
//!
//! **Invariant:** a name keeps its id, because handles and ids of buckets are never reused. Each use of an entry checks
//! whether the user or bucket was deleted. Only an undone command can make an id wrong, so an entry is valid only while
//! no command was undone since before the id was read.

use std::hash::Hash;

use quick_cache::sync::Cache;
use store::Store;

/// Maximum number of cached names.
const NAMES: usize = 65_536;

/// Cache of ids by name.
pub(crate) struct Ids<N, I>(Cache<N, Found<I>>);

#[derive(Clone, Copy)]
struct Found<I> {
    /// The store's number of undone commands before the id was read.
    undone: u64,
    id: I,
}

impl<N: Hash + Eq + Clone, I: Copy> Ids<N, I> {
    pub(crate) fn new() -> Self {
        Self(Cache::new(NAMES))
    }

    /// Returns the cached id of a name.
    pub(crate) fn get(&self, store: &Store, name: &N) -> Option<I> {
        let found = self.0.get(name)?;
        (found.undone == store.undone()).then_some(found.id)
    }

    /// Returns and caches the result of `read` for a name.
    pub(crate) fn read(
        &self,
        store: &Store,
        name: &N,
        read: impl FnOnce() -> Option<I>,
    ) -> Option<I> {
        let undone = store.undone();
        let id = read()?;
        self.0.insert(name.clone(), Found { undone, id });
        Some(id)
    }
}
