//! Decision which missing files of pictures a node of a cluster fetches, and when: a function of the events, with the
//! time as an argument.
//!
//! Every file that a new picture needs is added at once. Rows list all needed files, so nothing is lost if there are
//! too many of them, or if the node ends: then all rows are scanned again.
//!
//! **Invariant:** the state is bounded, and a file that no node has delays no other one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use feed::media::FileHash;

/// Maximum number of files that are searched for at a time.
pub(crate) const MISSING_MAX: usize = 4_096;
/// Maximum number of pending requests of other nodes.
const REQUESTS_MAX: usize = 256;
/// Pause before the second search for a file; each further pause is four times as long.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Minimum pause between searches for a file that a reader waits for.
const READERS_PAUSE: Duration = Duration::from_secs(1);

/// Next action of the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Fetch a file, after this number of earlier searches.
    Fetch(FileHash, u32),
    /// Store a file for another node.
    Offer(FileHash),
    /// Scan rows for needed files, from a name on.
    Scan(Vec<u8>),
}

/// State of the search for missing files.
pub(crate) struct MissingFiles {
    files: HashMap<FileHash, Search>,
    /// All files, by the time of their next search.
    due: BTreeSet<(Duration, FileHash)>,
    requests: VecDeque<FileHash>,
    /// Name from which rows are still to be scanned.
    scan: Option<Vec<u8>>,
    /// Whether all rows must be scanned again.
    scans_again: bool,
}

#[derive(Clone, Copy, Default)]
struct Search {
    due: Duration,
    tries: u32,
    tried: Option<Duration>,
}

impl MissingFiles {
    /// Creates the state of a node that was just opened: all rows are to be scanned.
    pub(crate) fn new() -> Self {
        Self {
            files: HashMap::new(),
            due: BTreeSet::new(),
            requests: VecDeque::new(),
            scan: Some(Vec::new()),
            scans_again: false,
        }
    }

    /// Returns the next task, if one is due.
    pub(crate) fn next(&mut self, now: Duration) -> Option<Task> {
        if let Some((_, hash)) = self.due.first().filter(|(due, _)| *due <= now).copied() {
            return Some(Task::Fetch(hash, self.files.get(&hash).map_or(0, |search| search.tries)));
        }
        if let Some(hash) = self.requests.pop_front() {
            return Some(Task::Offer(hash));
        }
        // Half of the capacity is for new pictures.
        self.scan.clone().filter(|_| self.files.len() < MISSING_MAX / 2).map(Task::Scan)
    }

    /// Returns the time of the next task, unless another event comes first.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Adds a file that a picture needs and that may be missing.
    pub(crate) fn add(&mut self, hash: FileHash, now: Duration) {
        if self.files.contains_key(&hash) {
            return;
        }
        if self.files.len() >= MISSING_MAX {
            // A running scan may have passed the file's row.
            match self.scan {
                Some(_) => self.scans_again = true,
                None => self.scan = Some(Vec::new()),
            }
            return;
        }
        self.put(hash, Search { due: now, ..Search::default() });
    }

    /// Adds a file that a reader waits for; returns false if there are too many others.
    pub(crate) fn add_urgent(&mut self, hash: FileHash) -> bool {
        let search = self.files.get(&hash).copied();
        if search.is_none() && self.files.len() >= MISSING_MAX {
            return false;
        }
        let search = search.unwrap_or_default();
        let due = search.tried.map_or(Duration::ZERO, |tried| tried + READERS_PAUSE);
        self.put(hash, Search { due: search.due.min(due), ..search });
        true
    }

    /// Removes a file that exists here or is no longer needed.
    pub(crate) fn found(&mut self, hash: &FileHash) {
        if let Some(search) = self.files.remove(hash) {
            self.due.remove(&(search.due, *hash));
        }
    }

    /// Records that a file was not found, or could not be stored.
    pub(crate) fn not_found(&mut self, hash: &FileHash, now: Duration) {
        if let Some(Search { tries, .. }) = self.files.get(hash).copied() {
            let pause = PAUSE.saturating_mul(4_u32.saturating_pow(tries)).min(PAUSE_MAX);
            let tries = tries.saturating_add(1);
            self.put(*hash, Search { due: now + pause, tries, tried: Some(now) });
        }
    }

    /// Adds the request of another node. It is dropped beyond the limit: the node asks again.
    pub(crate) fn request(&mut self, hash: FileHash) {
        if self.requests.len() < REQUESTS_MAX && !self.requests.contains(&hash) {
            self.requests.push_back(hash);
        }
    }

    /// Records that rows were scanned up to the name `next`, or to the end.
    pub(crate) fn scanned(&mut self, next: Option<Vec<u8>>) {
        self.scan = next;
        if self.scan.is_none() && std::mem::take(&mut self.scans_again) {
            self.scan = Some(Vec::new());
        }
    }

    /// Whether a file is being searched for.
    pub(crate) fn contains(&self, hash: &FileHash) -> bool {
        self.files.contains_key(hash)
    }

    /// Returns the number of files that are searched for.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether the node knows of no missing file and has scanned all rows.
    pub(crate) fn is_complete(&self) -> bool {
        self.files.is_empty() && self.scan.is_none()
    }

    fn put(&mut self, hash: FileHash, search: Search) {
        if let Some(before) = self.files.insert(hash, search) {
            self.due.remove(&(before.due, hash));
        }
        self.due.insert((search.due, hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u32) -> FileHash {
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        FileHash(hash)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Returns a state after a complete scan.
    fn idle() -> MissingFiles {
        let mut missing = MissingFiles::new();
        assert_eq!(missing.next(ms(0)), Some(Task::Scan(Vec::new())));
        missing.scanned(None);
        assert_eq!((missing.next(ms(0)), missing.is_complete()), (None, true));
        missing
    }

    #[test]
    fn files_that_are_not_found_are_looked_for_less_and_less_often() {
        let mut missing = idle();
        missing.add(hash(1), ms(1_000));
        missing.add(hash(1), ms(1_001));
        let mut now = 1_000;
        for (tries, pause) in [250, 1_000, 4_000, 16_000, 60_000, 60_000].into_iter().enumerate() {
            assert_eq!(missing.next(ms(now - 1)), None, "{tries}");
            assert_eq!(missing.next(ms(now)), Some(Task::Fetch(hash(1), tries as u32)));
            missing.not_found(&hash(1), ms(now));
            now += pause;
            assert_eq!(missing.next_at(), Some(ms(now)));
        }
        missing.found(&hash(1));
        assert!(missing.is_complete() && missing.due.is_empty() && !missing.contains(&hash(1)));
        missing.not_found(&hash(1), ms(now));
        assert!(missing.is_complete(), "it arrived meanwhile");
    }

    #[test]
    fn a_file_that_a_reader_waits_for_comes_first_but_not_all_the_time() {
        let mut missing = idle();
        missing.add(hash(1), ms(10));
        missing.request(hash(9));
        assert!(missing.add_urgent(hash(2)));
        assert_eq!(missing.next(ms(20)), Some(Task::Fetch(hash(2), 0)));
        missing.not_found(&hash(2), ms(20));
        assert!(missing.add_urgent(hash(2)));
        assert_eq!(missing.next(ms(20)), Some(Task::Fetch(hash(1), 0)), "the others are next");
        missing.found(&hash(1));
        assert_eq!(missing.next(ms(20)), Some(Task::Offer(hash(9))));
        (0..4).for_each(|_| missing.not_found(&hash(2), ms(100)));
        assert!(missing.add_urgent(hash(2)));
        assert_eq!(missing.next(ms(1_099)), None);
        assert_eq!(missing.next(ms(1_100)), Some(Task::Fetch(hash(2), 5)));
    }

    #[test]
    fn what_does_not_fit_is_found_by_another_look_at_the_rows() {
        let mut missing = idle();
        for number in 0..MISSING_MAX as u32 {
            missing.add(hash(number), ms(u64::from(number)));
        }
        missing.add(hash(u32::MAX), ms(0));
        assert!(!missing.add_urgent(hash(u32::MAX)) && missing.add_urgent(hash(7)));
        assert_eq!(missing.len(), MISSING_MAX);
        // The scan waits until there is room.
        for number in 0..MISSING_MAX as u32 {
            assert!(matches!(missing.next(ms(10_000)), Some(Task::Fetch(..))));
            missing.found(&hash(number));
        }
        assert_eq!(missing.next(ms(10_000)), Some(Task::Scan(Vec::new())));
        assert!(!missing.is_complete());
        missing.scanned(Some(vec![5]));
        assert_eq!(missing.next(ms(10_000)), Some(Task::Scan(vec![5])));
        // Repeated while the rows are scanned.
        (0..=MISSING_MAX as u32).for_each(|number| missing.add(hash(number), ms(0)));
        missing.scanned(None);
        (0..MISSING_MAX as u32).for_each(|number| missing.found(&hash(number)));
        assert_eq!(missing.next(ms(10_000)), Some(Task::Scan(Vec::new())));
        missing.scanned(None);
        assert!(missing.is_complete());
    }

    #[test]
    fn what_others_ask_for_is_bounded_and_each_is_answered_once() {
        let mut missing = idle();
        (0..1_000).for_each(|number| missing.request(hash(number % 500)));
        let mut offered = 0;
        while let Some(Task::Offer(found)) = missing.next(ms(0)) {
            assert_eq!(found, hash(offered));
            offered += 1;
        }
        assert_eq!(offered as usize, REQUESTS_MAX);
    }
}
