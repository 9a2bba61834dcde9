//! All accepted posts of checked authors, as far back as a page of a home timeline can reach.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Report;
use crate::api::{PAGE, TimelinePost};
use crate::run::checked::{CheckedReaders, Reader};

/// Number of posts stored per author: more than a page, plus those that may arrive during a check.
const KEPT: usize = 128;
const _: () = assert!(KEPT > PAGE);

/// A fault of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    Missing,
    Doubled,
    OutOfOrder,
    Unexpected,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Missing => "missing",
            Fault::Doubled => "duplicate",
            Fault::OutOfOrder => "out of order",
            Fault::Unexpected => "unexpected",
        })
    }
}

pub(super) struct Book {
    by_author: HashMap<u32, VecDeque<TimelinePost>>,
    /// Authors with incomplete records: a request failed, or older posts were dropped.
    in_doubt: HashSet<u32>,
    /// Set when a report was dropped: then the book is incomplete.
    lost: Arc<AtomicBool>,
    /// Lowest id in the book. Posts with lower ids may be from before the run.
    first: u64,
}

impl Book {
    /// Creates a book without posts. Authors with failed requests in an earlier turn stay in doubt, because their posts
    /// may still arrive.
    pub(super) fn new(lost: Arc<AtomicBool>, checked: &CheckedReaders) -> Book {
        Book { by_author: HashMap::new(), in_doubt: checked.doubted(), lost, first: u64::MAX }
    }

    pub(super) fn note(&mut self, report: &Report) {
        match *report {
            Report::Accepted { entry, .. } => {
                self.first = self.first.min(entry.id);
                let posts = self.by_author.entry(entry.author).or_default();
                if posts.len() == KEPT {
                    posts.pop_front();
                    self.in_doubt.insert(entry.author);
                }
                posts.push_back(entry);
            }
            Report::InDoubt(author) => {
                self.in_doubt.insert(author);
            }
        }
    }

    /// Ids of posts that are missing on the first page of the reader's home.
    pub(super) fn missing(&self, reader: &Reader, page: &[TimelinePost]) -> Vec<u64> {
        let oldest = page.last().filter(|_| page.len() == PAGE).map_or(0, |entry| entry.id);
        let posts = reader.authors().filter_map(|author| self.by_author.get(&author)).flatten();
        let due = posts.filter(|post| post.id > oldest && reader.sees(post.author, post.reply_to));
        let on_page: HashSet<u64> = page.iter().map(|entry| entry.id).collect();
        due.map(|post| post.id).filter(|id| !on_page.contains(id)).collect()
    }

    /// Whether this post was certainly never accepted. False if the records of its time or author are incomplete.
    pub(super) fn knows_nothing_of(&self, entry: &TimelinePost) -> bool {
        let is_known =
            |posts: &VecDeque<TimelinePost>| posts.iter().any(|post| post.id == entry.id);
        entry.id >= self.first
            && !self.in_doubt.contains(&entry.author)
            && !self.lost.load(Ordering::Relaxed)
            && !self.by_author.get(&entry.author).is_some_and(is_known)
    }
}
