//! Ids by name, as readers found them.
//!
//! **Invariant:** an id that was returned was the one of its name, and stays it: no other user gets a handle, and no other
//! bucket an id. Whether what it names was deleted is checked at each use. Only a command that was taken back made a name for
//! nothing: so an entry is valid while none was taken back since before it was read.

use std::hash::Hash;

use quick_cache::sync::Cache;
use store::Store;

/// Number of names that are remembered.
const NAMES: usize = 65_536;

/// Ids by name.
pub(crate) struct Ids<N, I>(Cache<N, Found<I>>);

#[derive(Clone, Copy)]
struct Found<I> {
    /// The store's number of changes that were taken back, before the id was read.
    undone: u64,
    id: I,
}

impl<N: Hash + Eq + Clone, I: Copy> Ids<N, I> {
    pub(crate) fn new() -> Self {
        Self(Cache::new(NAMES))
    }

    /// The id of a name, if it is known in memory.
    pub(crate) fn get(&self, store: &Store, name: &N) -> Option<I> {
        let found = self.0.get(name)?;
        (found.undone == store.undone()).then_some(found.id)
    }

    /// The result of `read` for a name, which is remembered.
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
