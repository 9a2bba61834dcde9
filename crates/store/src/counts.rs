//! The writer's cache of the rows of `PointTable::Counts`, which have the numbers of posts, followers and so on of each
//! user. Nearly every change reads and updates some of these rows; without the cache, each row would be read from disk
//! again after every checkpoint.
//!
//! **Invariant:** a cached row is the newest version: only the writer uses the cache, and it updates cache and store
//! together.

use std::cell::RefCell;

use rows::{PointTable, Rows as _, Value};

use crate::shared::Store;

/// Number of users whose counts are read together.
const PAGE_USERS: usize = 512;
/// Maximum number of pages: for 2 million users, 64 MiB.
const PAGES_MAX: usize = 4_096;

type Page = Box<[Option<Value>]>;

/// Cached rows by user id, in pages of adjacent ids. Ids beyond the last page are not cached.
#[derive(Default)]
pub(crate) struct CountsCache {
    pages: RefCell<Vec<Option<Page>>>,
}

/// Returns the page of a row and the index in it, if the row may be cached.
fn place(table: PointTable, key: u64) -> Option<(usize, usize)> {
    let key = usize::try_from(key).ok().filter(|_| table == PointTable::Counts)?;
    Some((key / PAGE_USERS, key % PAGE_USERS)).filter(|(page, _)| *page < PAGES_MAX)
}

impl CountsCache {
    /// Returns the row `key` of `table`, from the cache or from the store.
    pub(crate) fn point(&self, store: &Store, table: PointTable, key: u64) -> Option<Value> {
        let Some((number, place)) = place(table, key) else { return store.point(table, key) };
        let mut pages = self.pages.borrow_mut();
        if pages.len() <= number {
            pages.resize_with(number + 1, || None);
        }
        let page = pages.get_mut(number)?;
        let page = page.get_or_insert_with(|| {
            let first = (number * PAGE_USERS) as u64;
            let mut rows = vec![None; PAGE_USERS].into_boxed_slice();
            store.points_between(table, first..=first + PAGE_USERS as u64 - 1, &mut |key, row| {
                if let Some(kept) = rows.get_mut((key - first) as usize) {
                    *kept = row;
                }
            });
            rows
        });
        page.get(place)?.clone()
    }

    /// Updates row `key` of `table` in the cache, if its page is cached.
    pub(crate) fn put(&mut self, table: PointTable, key: u64, value: Option<&Value>) {
        let Some((number, place)) = place(table, key) else { return };
        let page = self.pages.get_mut().get_mut(number).and_then(Option::as_mut);
        if let Some(row) = page.and_then(|page| page.get_mut(place)) {
            *row = value.cloned();
        }
    }
}
