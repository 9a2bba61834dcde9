//! Posts that clients have reported as seen by their users: the last reports of each user, as fingerprints.
//!
//! **Invariant:** a user has one place, which further reports do not leave. A new user takes the place of one of
//! [`COMPARED`] users: of one who has reported once if there is one, else of the one whose last report is the oldest.
//! So new users who report once each displace at most one of them. Which users are compared differs by server and
//! start.

use std::hash::{BuildHasher as _, RandomState};

use feed::{PostId, UserId};
use hashbrown::HashMap;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

/// Number of reports that are kept for each user.
pub(super) const SEEN_MAX: usize = 64;
/// Size of a user in the table, in bytes.
pub(super) const READER_BYTES: usize = size_of::<Reader>();
const _: () = assert!(READER_BYTES <= 144);
/// Number of places that a user may have.
const COMPARED: usize = 8;

/// A user whose client reports posts.
#[derive(Clone)]
struct Reader {
    /// `None` for an empty place.
    user: Option<UserId>,
    /// Time of the last report, in seconds since 1970.
    reported_s: u32,
    /// Whether the user has reported more than once.
    has_more: bool,
    /// Place of the next report.
    next: u8,
    /// Fingerprints of posts: see [`fingerprint`]. 0 for none.
    prints: [u16; SEEN_MAX],
}

const EMPTY: Reader =
    Reader { user: None, reported_s: 0, has_more: false, next: 0, prints: [0; SEEN_MAX] };

/// Reports about all users.
pub(crate) struct Seen {
    readers: Mutex<Vec<Reader>>,
    max: usize,
    /// Random, so that nobody can choose accounts that take the places of a user.
    seed: RandomState,
}

/// Fingerprint of a post. Another post among the last reports of a user has the same one in at most 1 of 1,000 cases.
fn fingerprint(post: PostId) -> u16 {
    (xxh3_64(&post.0.to_le_bytes()) as u16).max(1)
}

impl Seen {
    /// Makes a table for at most `max` users. It takes memory with the first report.
    pub(super) fn new(max: usize) -> Self {
        let max = max - max % COMPARED;
        Self { readers: Mutex::default(), max, seed: RandomState::new() }
    }

    /// Adds reports that a user has seen posts. A post that is reported again counts again.
    pub(crate) fn report(&self, user: UserId, posts: &[PostId], now_ms: u64) {
        let mut readers = self.readers.lock();
        if readers.is_empty() {
            readers.resize(self.max, EMPTY);
        }
        let places = self.places(user);
        let Some(readers) = readers.get_mut(places) else { return };
        let place = readers.iter().position(|reader| reader.user == Some(user));
        let replaced = || {
            let order =
                |reader: &Reader| (reader.user.is_some(), reader.has_more, reader.reported_s);
            readers.iter().enumerate().min_by_key(|(_, reader)| order(reader))
        };
        let place = place.or_else(|| replaced().map(|(place, _)| place));
        let Some(reader) = place.and_then(|place| readers.get_mut(place)) else { return };
        match reader.user == Some(user) {
            true => reader.has_more = true,
            false => *reader = Reader { user: Some(user), ..EMPTY },
        }
        reader.reported_s = (now_ms / 1_000) as u32;
        for post in posts {
            if let Some(print) = reader.prints.get_mut(usize::from(reader.next)) {
                *print = fingerprint(*post);
            }
            reader.next = (reader.next + 1) % SEEN_MAX as u8;
        }
    }

    /// Numbers of reports for these posts, without posts that were not reported.
    pub(crate) fn counts(
        &self,
        user: UserId,
        posts: impl Iterator<Item = PostId>,
    ) -> HashMap<PostId, u32> {
        let readers = self.readers.lock();
        let found = readers.get(self.places(user)).and_then(|readers| {
            let found = readers.iter().find(|reader| reader.user == Some(user));
            found.map(|reader| reader.prints)
        });
        drop(readers);
        let Some(prints) = found else { return HashMap::new() };
        let mut counts = HashMap::<u16, u32>::new();
        for print in prints {
            *counts.entry(print).or_default() += 1;
        }
        posts.filter_map(|post| Some((post, *counts.get(&fingerprint(post))?))).collect()
    }

    /// Removes the reports of a user.
    pub(crate) fn forget(&self, user: UserId) {
        let places = self.places(user);
        let mut readers = self.readers.lock();
        let mut places = readers.get_mut(places).unwrap_or_default().iter_mut();
        if let Some(reader) = places.find(|reader| reader.user == Some(user)) {
            *reader = EMPTY;
        }
    }

    /// Places that a user may have; none if the table has none.
    fn places(&self, user: UserId) -> std::ops::Range<usize> {
        let groups = (self.max / COMPARED).max(1) as u64;
        let start = (self.seed.hash_one(user.0) % groups) as usize * COMPARED;
        start..start + COMPARED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(seen: &Seen, user: u32, post: u64) -> u32 {
        let counts = seen.counts(UserId(user), [PostId(post)].into_iter());
        counts.get(&PostId(post)).copied().unwrap_or_default()
    }

    fn posts(numbers: std::ops::Range<u64>) -> Vec<PostId> {
        numbers.map(PostId).collect()
    }

    #[test]
    fn the_last_reports_of_a_user_count_for_this_user_alone() {
        let seen = Seen::new(80);
        assert_eq!(count(&seen, 1, 5), 0, "before the first report");
        seen.report(UserId(1), &posts(0..3), 1_000);
        seen.report(UserId(1), &posts(2..4), 2_000);
        assert_eq!([0, 1, 2, 3, 4].map(|post| count(&seen, 1, post)), [1, 1, 2, 1, 0]);
        assert_eq!(count(&seen, 2, 2), 0);
        // A client that reports everything displaces its own reports.
        for _ in 0..1_000 {
            seen.report(UserId(2), &posts(100..200), 3_000);
        }
        assert_eq!(count(&seen, 1, 2), 2);
        let kept = (100..200).filter(|post| count(&seen, 2, *post) > 0).count();
        assert!((SEEN_MAX..SEEN_MAX + 3).contains(&kept), "{kept}");
        assert!(count(&seen, 2, 199) > 0 && count(&seen, 2, 130) == 0);
        seen.forget(UserId(2));
        assert_eq!([count(&seen, 1, 2), count(&seen, 2, 199)], [2, 0]);
    }

    #[test]
    fn users_who_report_once_displace_at_most_one_who_reports_more() {
        let seen = Seen::new(COMPARED);
        let regular = 0..COMPARED as u32;
        for user in regular.clone() {
            seen.report(UserId(user), &posts(7..8), 1_000);
            seen.report(UserId(user), &posts(8..9), 2_000);
        }
        for user in 100..1_000 {
            seen.report(UserId(user), &posts(7..8), 3_000);
        }
        let kept = regular.clone().filter(|user| count(&seen, *user, 7) == 1).count();
        assert_eq!(kept, COMPARED - 1);
        assert_eq!(count(&seen, 999, 7), 1);
    }

    #[test]
    fn the_compared_users_differ_by_table() {
        let places = || {
            let seen = Seen::new(COMPARED << 20);
            (0..4).map(|user| seen.places(UserId(user)).start).collect::<Vec<_>>()
        };
        assert_ne!(places(), places());
    }

    #[test]
    fn a_new_user_replaces_one_whose_last_report_is_old() {
        let seen = Seen::new(COMPARED + 3);
        for user in 0..COMPARED as u32 {
            seen.report(UserId(user), &posts(7..8), 1_000 * u64::from(user));
            seen.report(UserId(user), &posts(9..10), 1_000 * u64::from(user));
        }
        seen.report(UserId(0), &posts(8..9), 99_000);
        seen.report(UserId(100), &posts(7..8), 100_000);
        let kept: Vec<_> =
            (0..COMPARED as u32).filter(|user| count(&seen, *user, 7) == 1).collect();
        assert_eq!(kept, [0, 2, 3, 4, 5, 6, 7], "without the user of the oldest report");
        assert_eq!(count(&seen, 100, 7), 1);
        assert_eq!(seen.readers.lock().len(), COMPARED);
        let none = Seen::new(3);
        none.report(UserId(1), &posts(0..3), 1);
        assert_eq!(count(&none, 1, 1), 0);
    }
}
