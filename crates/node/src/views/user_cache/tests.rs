//! Tests of the cache's contents, budget and eviction.

use super::*;

impl Cached for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Cached for u32 {
    fn bytes(&self) -> usize {
        20
    }
}

const COST: usize = ENTRY_BYTES + size_of::<CacheEntry<u32>>() + 20;
const ADA: UserId = UserId(7);

#[test]
fn what_was_read_while_it_changed_is_said_to_be_old_and_not_kept() {
    let cache = UserCache::new(1_000_000);
    let stranger = UserId(ADA.0 + SHARDS as u32);
    let read_meanwhile = |other| {
        cache.change(other, |entry| Some(*entry));
        1
    };
    assert_eq!(cache.get_or_read(ADA, || read_meanwhile(ADA), |entry| *entry), (1, false));
    assert_eq!(cache.reader().get(&ADA).copied(), None);
    let look = |entry: &u32| {
        cache.change(ADA, |_| None);
        *entry
    };
    assert_eq!(cache.get_or_read(ADA, || 2, look), (2, false), "it changed after the read");
    assert_eq!(cache.get_or_read(ADA, || read_meanwhile(stranger), |entry| *entry), (1, true));
    assert_eq!(cache.get_or_read(ADA, || 3, |entry| *entry), (1, true), "now it is cached");
    cache.evict(ADA, |entry| *entry == 2);
    assert_eq!(cache.reader().get(&ADA).copied(), Some(1));
    let read_after_eviction = || {
        cache.evict(ADA, |_| true);
        4
    };
    cache.evict(ADA, |_| true);
    assert_eq!(cache.get_or_read(ADA, read_after_eviction, |entry| *entry), (4, true));
}

#[test]
fn changes_are_applied_or_the_entry_is_removed() {
    let cache = UserCache::new(1_000_000);
    cache.get_or_read(ADA, || 1, |_| ());
    cache.change(ADA, |entry| Some(entry + 4));
    assert_eq!(cache.reader().get(&ADA).copied(), Some(5));
    cache.change(ADA, |_| None);
    assert_eq!(cache.reader().get(&ADA).copied(), None);
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn the_budget_holds_whichever_users_are_read() {
    let cache = UserCache::new(SHARDS * (3 * COST + COST / 2));
    for user in (0..10_000).map(UserId) {
        assert_eq!(cache.get_or_read(user, || user.0, |entry| *entry).0, user.0);
    }
    assert_eq!(cache.bytes(), SHARDS * 3 * COST, "three per shard");
    let none = UserCache::new(SHARDS * (COST - 1));
    assert_eq!(none.get_or_read(ADA, || 1, |entry| *entry).0, 1);
    assert_eq!(none.bytes(), 0, "an entry that fits in no shard is not kept");
}

#[test]
fn an_entry_that_grows_stays_within_the_budget_or_goes() {
    let max = SHARDS * 1_000;
    let cache = UserCache::new(max);
    for user in (0..10).map(|n| UserId(n * SHARDS as u32)) {
        cache.get_or_read(user, || vec![0; 10], |_| ());
    }
    for bytes in (10..2_000).step_by(10) {
        cache.change(UserId(0), |_| Some(vec![1; bytes]));
        assert!(cache.bytes() <= max, "{} bytes", cache.bytes());
    }
    let kept = |n: u32| cache.reader().get(&UserId(n * SHARDS as u32)).is_some();
    assert!(!kept(0), "larger than all there is");
}

#[test]
fn users_who_are_read_often_stay_in_memory() {
    let (users, fit) = (20_000, 2_000);
    let cache = UserCache::new(fit * COST);
    let mut zipf = Zipf::new(users);
    for _ in 0..100_000 {
        hit(&cache, zipf.next());
    }
    let reads = 200_000;
    let hits = (0..reads).filter(|_| hit(&cache, zipf.next())).count();
    let ratio = hits as f64 / f64::from(reads);
    let best = zipf.share(fit);
    assert!(ratio > 0.9 * best, "{ratio:.3} of reads are hits, {best:.3} are possible");
}

#[test]
fn a_scan_evicts_no_user_who_is_read_meanwhile() {
    let cache = UserCache::new(SHARDS * 10 * COST);
    let hot = || (0..4 * SHARDS as u32).map(UserId);
    let mut scanned = 1_000_000..;
    for round in 0..100 {
        let hits = hot().filter(|user| hit(&cache, *user)).count();
        assert!(round < 2 || hits == hot().count(), "round {round}: {hits} hits");
        for user in scanned.by_ref().take(4 * SHARDS) {
            hit(&cache, UserId(user));
        }
    }
}

#[test]
fn the_hand_passes_few_entries_at_a_time() {
    let fit = 4 * HAND_STEPS_MAX;
    let cache = UserCache::new(SHARDS * fit * COST);
    let one_shard = |n: usize| UserId((n * SHARDS) as u32);
    for n in 0..fit {
        for _ in 0..=HEAT_MAX {
            hit(&cache, one_shard(n));
        }
    }
    let heat = || -> usize {
        let users = cache.users.pin();
        users.values().map(|entry| usize::from(entry.heat.load(Ordering::Relaxed))).sum()
    };
    for n in fit..2 * fit {
        let before = heat();
        hit(&cache, one_shard(n));
        assert!(before.saturating_sub(heat()) <= HAND_STEPS_MAX, "read {n}");
        assert_eq!(cache.bytes(), SHARDS * fit * COST / SHARDS);
    }
}

#[test]
fn every_entry_has_its_index_in_the_ring() {
    let cache = UserCache::new(SHARDS * 5 * COST);
    let mut zipf = Zipf::new(1_000);
    for n in 0..20_000 {
        let user = zipf.next();
        match n % 3 {
            0 => cache.change(user, |entry| (n % 2 == 0).then_some(*entry)),
            _ => drop(hit(&cache, user)),
        }
    }
    let users = cache.users.pin();
    let mut entries = 0;
    for shard in &cache.shards {
        for (place, user) in shard.lock().ring.iter().enumerate() {
            let entry = users.get(user).unwrap();
            assert_eq!(entry.place.load(Ordering::Relaxed) as usize, place);
            entries += 1;
        }
    }
    assert_eq!((users.len(), cache.bytes()), (entries, entries * COST));
}

/// Zipf distribution of numbers below `users`: the number `n` has the weight 1 / (n + 1).
struct Zipf {
    up_to: Vec<f64>,
    state: u64,
}

impl Zipf {
    fn new(users: u32) -> Self {
        let weights = (0..users).map(|n| 1.0 / (f64::from(n) + 1.0));
        let up_to = weights
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        Self { up_to, state: 0x2545_f491_4f6c_dd1d }
    }

    /// Returns the share of the numbers below `first`.
    fn share(&self, first: usize) -> f64 {
        self.up_to[first - 1] / self.up_to[self.up_to.len() - 1]
    }

    fn next(&mut self) -> UserId {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let at = (self.state >> 11) as f64 / (1_u64 << 53) as f64;
        let weight = at * self.up_to[self.up_to.len() - 1];
        UserId(self.up_to.partition_point(|sum| *sum <= weight) as u32)
    }
}

/// Reads `user`; returns whether the entry was in memory.
fn hit(cache: &UserCache<u32>, user: UserId) -> bool {
    let mut read = false;
    cache.get_or_read(
        user,
        || {
            read = true;
            user.0
        },
        |entry| assert_eq!(*entry, user.0),
    );
    !read
}

#[test]
#[ignore = "measures hit ratios"]
fn measure_hit_ratios() {
    for percent in [1, 5, 20] {
        let users = 200_000;
        let fit = users as usize * percent / 100;
        let cache = UserCache::new(fit * COST);
        let mut zipf = Zipf::new(users);
        let mut hits = [0.0, 0.0];
        for count in &mut hits {
            for _ in 0..1_000_000 {
                *count += f64::from(u8::from(hit(&cache, zipf.next())));
            }
        }
        println!(
            "{percent} % fit: best possible {:.3}, first million {:.3}, second {:.3}",
            zipf.share(fit),
            hits[0] / 1e6,
            hits[1] / 1e6
        );
    }
}
