//! Prints the costs of the store on this machine: `cargo run --profile dist -p store --example store_figures --
//! [FOLLOWS] [grouped|random]`. Uses a temporary directory.
//!
//! Loads 100,000 users, FOLLOWS follows (default 12,000,000), by follower or in random order, and 1,000,000 posts by 60
//! % of the users. Like the node, it freezes the overlay at 100 MB, and makes checkpoints on a second thread. Then it
//! reads.

use allocator as _;
use std::error::Error;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use feed::Counts;
use rows::{NameTable, Order, PointTable, PutRows, Rows, SetTable, Span, Value};
use store::{CheckpointStats, Store, StoreError, StoreOptions, StoreWriter};

const PEOPLE: u64 = 100_000;
const POSTS: u64 = 1_000_000;
const OVERLAY_BYTES: usize = 100 << 20;
const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 128 << 20, bucket_bytes: 0 };

/// Xorshift64 generator with a fixed seed.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The writer and its checkpoints, which run as in a node.
struct Load {
    writer: StoreWriter,
    running: Option<JoinHandle<Result<CheckpointStats, StoreError>>>,
    position: u64,
    checkpoints: u32,
    rows: u64,
}

impl Load {
    fn settle(&mut self) -> Result<(), Box<dyn Error>> {
        if let Some(running) = self.running.take() {
            let stats = running.join().map_err(|_| "a checkpoint panicked")??;
            self.rows += stats.put;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), Box<dyn Error>> {
        self.settle()?;
        self.position += 1;
        let Some(checkpoint) = self.writer.freeze(self.position) else { return Ok(()) };
        self.checkpoints += 1;
        self.running = Some(std::thread::spawn(|| checkpoint.run()));
        Ok(())
    }

    fn checkpoint_if_large(&mut self) -> Result<(), Box<dyn Error>> {
        if self.writer.overlay_bytes() >= OVERLAY_BYTES { self.checkpoint() } else { Ok(()) }
    }

    fn count(&mut self, user: u64, change: impl Fn(&mut Counts)) {
        let row = self.writer.point(PointTable::Counts, user);
        let mut counts = row.map_or_else(Counts::default, |row| Counts::decode(&row));
        change(&mut counts);
        self.writer.put_point(PointTable::Counts, user, Some(counts.encode()));
    }

    fn follow(&mut self, user: u64, other: u64) {
        if self.writer.member(SetTable::Following, user, other).is_none() {
            self.writer.put_member(SetTable::Following, user, other, Some(0));
            self.writer.put_member(SetTable::Followers, other, user, Some(0));
            self.count(user, |counts| counts.following += 1);
            self.count(other, |counts| counts.followers += 1);
        }
    }
}

/// Runs `work` `times` times, and prints the mean time.
fn each(what: &str, times: u64, mut work: impl FnMut()) {
    let start = Instant::now();
    (0..times).for_each(|_| work());
    let nanos = start.elapsed().as_nanos() as f64 / times as f64;
    println!("{what:<58} {:>10.2} us", nanos / 1_000.0);
}

/// Returns the resident and peak memory of this process in MiB.
fn memory_mb() -> (u64, u64) {
    let memory = testkit::proc::memory(std::process::id());
    memory.map_or((0, 0), |memory| (memory.resident >> 20, memory.peak >> 20))
}

fn load_users(load: &mut Load) {
    for user in 0..PEOPLE {
        let name = format!("person_{user}");
        load.writer.put_point(PointTable::User, user, Some(Value::from_slice(&[1; 40])));
        let id = Value::from_slice(&user.to_le_bytes());
        load.writer.put_name(NameTable::Handle, name.as_bytes(), Some(id));
    }
}

fn load_follows(load: &mut Load, follows: u64, random: bool) -> Result<(), Box<dyn Error>> {
    let mut noise = Noise(42);
    let start = Instant::now();
    let (mut slowest, mut first) = (Duration::ZERO, None);
    for follow in 0..follows {
        let user = if random { noise.below(PEOPLE) } else { follow * PEOPLE / follows };
        // Choose the lower of two numbers, so that some users have many followers but none has all.
        let other = noise.below(PEOPLE).min(noise.below(PEOPLE));
        let began = Instant::now();
        load.follow(user, other);
        slowest = slowest.max(began.elapsed());
        load.checkpoint_if_large()?;
        if load.checkpoints == 1 && first.is_none() {
            first = Some((start.elapsed(), follow + 1, memory_mb().0));
        }
    }
    if let Some((took, count, resident)) = first {
        let nanos = took.as_nanos() / u128::from(count);
        println!("follow, empty store below: {nanos} ns each; {count} follows fill 100 MiB of");
        println!("  overlay by its own estimate; resident then {resident} MiB");
    }
    let nanos = start.elapsed().as_nanos() / u128::from(follows);
    println!("follow, over the whole load of {follows}: {nanos} ns each, slowest {slowest:?}");
    Ok(())
}

fn load_posts(load: &mut Load) -> Result<(), Box<dyn Error>> {
    let mut noise = Noise(7);
    for post in 0..POSTS {
        let author = noise.below(PEOPLE * 6 / 10);
        let text: Vec<u8> = (0..120).map(|_| b'a' + noise.below(26) as u8).collect();
        load.writer.put_point(PointTable::Post, post << 16, Some(Value::from_vec(text)));
        load.writer.put_member(SetTable::AuthorPosts, author, post << 16, Some(0));
        load.checkpoint_if_large()?;
    }
    Ok(())
}

fn reads(store: &Store) {
    let mut noise = Noise(9);
    let newest = Span { limit: 20, order: Order::Descending, ..Span::ALL };
    let absent = |noise: &mut Noise| PEOPLE + noise.below(PEOPLE);
    each("member, absent", 300_000, || {
        let (user, other) = (noise.below(PEOPLE), absent(&mut noise));
        assert!(store.member(SetTable::Following, user, other).is_none());
    });
    each("member, owner without rows", 300_000, || {
        assert!(store.member(SetTable::Following, absent(&mut noise), 1).is_none());
    });
    each("point, a user", 100_000, || {
        assert!(store.point(PointTable::User, noise.below(PEOPLE)).is_some());
    });
    each("point, any post", 100_000, || {
        assert!(store.point(PointTable::Post, noise.below(POSTS) << 16).is_some());
    });
    each("name, a handle", 100_000, || {
        let name = format!("person_{}", noise.below(PEOPLE));
        assert!(store.name(NameTable::Handle, name.as_bytes()).is_some());
    });
    each("members, newest 20 posts of someone who posts", 50_000, || {
        store.members(SetTable::AuthorPosts, noise.below(PEOPLE * 6 / 10), newest);
    });
    each("members, newest 20 posts of each of 500 users", 100, || {
        for _ in 0..500 {
            store.members(SetTable::AuthorPosts, noise.below(PEOPLE), newest);
        }
    });
    each("members, all that someone follows", 20_000, || {
        store.members(SetTable::Following, noise.below(PEOPLE), Span::ALL);
    });
}

fn memory(store: &Store, when: &str) {
    let (now, peak) = memory_mb();
    println!(
        "{when}: resident {now} MiB (peak {peak}), disk {} MB",
        store.disk_bytes() / 1_000_000
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let follows = arguments.next().map_or(Ok(12_000_000), |count| count.parse())?;
    let random = arguments.next().is_some_and(|order| order == "random");
    let dir = tempfile::tempdir()?;
    let (writer, _) = Store::open(dir.path(), OPTIONS)?;
    let mut load = Load { writer, running: None, position: 0, checkpoints: 0, rows: 0 };
    load_users(&mut load);
    let start = Instant::now();
    load_follows(&mut load, follows, random)?;
    let took = start.elapsed();
    load_posts(&mut load)?;
    memory(&load.writer.store(), "loaded");
    load.settle()?;
    let last = Instant::now();
    load.checkpoint()?;
    let before = load.rows;
    load.settle()?;
    let rate = (load.rows - before) as f64 / last.elapsed().as_secs_f64() / 1e6;
    println!(
        "{} checkpoints, follows loaded in {took:?}, last {rate:.2} million rows/s",
        load.checkpoints
    );
    let store = load.writer.store();
    println!("-- reads straight after the load");
    reads(&store);
    memory(&store, "at rest");
    drop(store);
    drop(load);
    let start = Instant::now();
    let (writer, _) = Store::open(dir.path(), OPTIONS)?;
    println!("-- reopened in {:?}", start.elapsed());
    reads(&writer.store());
    reads(&writer.store());
    memory(&writer.store(), "reopened");
    Ok(())
}
