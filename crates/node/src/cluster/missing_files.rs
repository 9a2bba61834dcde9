//! Which files of pictures a node of a cluster looks for, and when: a function of what happened, with the time as an
//! argument.
//!
//! Every file that a new picture needs is added at once. Rows say which files there must be, so nothing is lost if there
//! are too many of them, or if the node ends: then all rows are looked at again.
//!
//! **Invariant:** what is remembered is bounded, and a file that nobody has delays no other one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use feed::media::FileHash;

/// Most files that are looked for at a time.
pub(crate) const MISSING_MAX: usize = 4_096;
/// Most requests of other nodes.
const REQUESTS_MAX: usize = 256;
/// A file that was not found is looked for again after this time, then after four times as long, and so on.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// One that a reader waits for, after this time.
const READERS_PAUSE: Duration = Duration::from_secs(1);

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Look for a file, which was looked for so often before.
    Fetch(FileHash, u32),
    /// Store a file for another node.
    Offer(FileHash),
    /// Look for files that rows need, from a name on.
    Scan(Vec<u8>),
}

/// See the module.
pub(crate) struct MissingFiles {
    files: HashMap<FileHash, Search>,
    /// All of them, by when to look for them.
    due: BTreeSet<(Duration, FileHash)>,
    requests: VecDeque<FileHash>,
    /// From where rows were not looked at.
    scan: Option<Vec<u8>>,
    /// Whether all rows are to be looked at again.
    scans_again: bool,
}

#[derive(Clone, Copy, Default)]
struct Search {
    due: Duration,
    tries: u32,
    tried: Option<Duration>,
}

impl MissingFiles {
    /// Of a node that has just been opened: all rows are to be looked at.
    pub(crate) fn new() -> Self {
        Self {
            files: HashMap::new(),
            due: BTreeSet::new(),
            requests: VecDeque::new(),
            scan: Some(Vec::new()),
            scans_again: false,
        }
    }

    /// The next task, if there is one now.
    pub(crate) fn next(&mut self, now: Duration) -> Option<Task> {
        if let Some((_, hash)) = self.due.first().filter(|(due, _)| *due <= now).copied() {
            return Some(Task::Fetch(hash, self.files.get(&hash).map_or(0, |search| search.tries)));
        }
        if let Some(hash) = self.requests.pop_front() {
            return Some(Task::Offer(hash));
        }
        // Half of the places are for new pictures.
        self.scan.clone().filter(|_| self.files.len() < MISSING_MAX / 2).map(Task::Scan)
    }

    /// When there is a task, unless something happens before.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// A picture needs a file, which may not be here.
    pub(crate) fn add(&mut self, hash: FileHash, now: Duration) {
        if self.files.contains_key(&hash) {
            return;
        }
        if self.files.len() >= MISSING_MAX {
            // One that is under way may have passed its row.
            match self.scan {
                Some(_) => self.scans_again = true,
                None => self.scan = Some(Vec::new()),
            }
            return;
        }
        self.put(hash, Search { due: now, ..Search::default() });
    }

    /// A reader waits for a file; false if there are too many others.
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

    /// A file is here, or nobody needs it.
    pub(crate) fn found(&mut self, hash: &FileHash) {
        if let Some(search) = self.files.remove(hash) {
            self.due.remove(&(search.due, *hash));
        }
    }

    /// A file was not found, or could not be stored.
    pub(crate) fn not_found(&mut self, hash: &FileHash, now: Duration) {
        if let Some(Search { tries, .. }) = self.files.get(hash).copied() {
            let pause = PAUSE.saturating_mul(4_u32.saturating_pow(tries)).min(PAUSE_MAX);
            let tries = tries.saturating_add(1);
            self.put(*hash, Search { due: now + pause, tries, tried: Some(now) });
        }
    }

    /// Another node asks for a file. More than there is room for are not answered: it asks again.
    pub(crate) fn request(&mut self, hash: FileHash) {
        if self.requests.len() < REQUESTS_MAX && !self.requests.contains(&hash) {
            self.requests.push_back(hash);
        }
    }

    /// Rows were looked at up to a name, or to the end.
    pub(crate) fn scanned(&mut self, next: Option<Vec<u8>>) {
        self.scan = next;
        if self.scan.is_none() && std::mem::take(&mut self.scans_again) {
            self.scan = Some(Vec::new());
        }
    }

    /// Whether a file is looked for.
    pub(crate) fn contains(&self, hash: &FileHash) -> bool {
        self.files.contains_key(hash)
    }

    /// Number of files that are looked for.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether the node lacks no file, as far as it knows, and has looked at all rows.
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

    /// One that has looked at all rows.
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
        // The rows wait until there is room.
        for number in 0..MISSING_MAX as u32 {
            assert!(matches!(missing.next(ms(10_000)), Some(Task::Fetch(..))));
            missing.found(&hash(number));
        }
        assert_eq!(missing.next(ms(10_000)), Some(Task::Scan(Vec::new())));
        assert!(!missing.is_complete());
        missing.scanned(Some(vec![5]));
        assert_eq!(missing.next(ms(10_000)), Some(Task::Scan(vec![5])));
        // Again while the rows are looked at.
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
