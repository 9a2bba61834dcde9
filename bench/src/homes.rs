//! Posts and homes inside the server, without a client: the work of the writer's thread; reads of active homes, with
//! and without new posts; reads mixed with posts; and posts by an author with a million active followers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use feed::{Bio, Command, Handle, Name, Page, PostText, UserId, UserRef};
use hdrhistogram::Histogram;
use node::{Durability, Node, NodeOptions, Request};
use tokio::runtime::Runtime;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::at_pace;

/// Number of users, and number of users that each of them follows, if all users are equal.
const USERS: u32 = 20_000;
const FOLLOWING: u32 = 100;
/// Number of readers of a sample.
const READERS: u32 = 2_000;
/// Number of posts that are submitted together in the mixed workload.
const TOGETHER: u32 = 64;
const FOLLOWERS: u32 = 1_000_000;
/// Number of other users, who post and read while the author with a million followers posts.
const OTHERS: u32 = 1_000;
/// Interval between actions of the other users.
const PACE: Duration = Duration::from_micros(250);

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    by_the_writer(plan, report)?;
    among_equals(plan, report)?;
    to_a_million(plan, report)
}

/// Node in a temporary directory.
struct World {
    node: Node,
    runtime: Runtime,
    random: u64,
    _data: tempfile::TempDir,
}

impl World {
    fn new() -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        options.timeline_memory = 4 << 30;
        let node = Node::open(&options)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(Self { node, runtime, random: 1, _data: data })
    }

    fn below(&mut self, end: u32) -> u32 {
        let next = self.random.wrapping_mul(6_364_136_223_846_793_005);
        self.random = next.wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) % u64::from(end)) as u32
    }

    fn submit(&self, requests: impl Iterator<Item = Request>) -> anyhow::Result<()> {
        let mut requests = requests.peekable();
        while requests.peek().is_some() {
            let piece: Vec<Request> = requests.by_ref().take(4_000).collect();
            self.runtime.block_on(self.node.submit_all(piece))?;
        }
        Ok(())
    }

    fn register(&self, users: u32) -> anyhow::Result<()> {
        let register = |n: u32| Command::Register {
            handle: Handle::parse(&format!("u{n}")).unwrap_or_else(|_| unreachable!("valid")),
            name: Name::default(),
            bio: Bio::default(),
        };
        self.submit((0..users).map(register).map(Request::from))
    }

    /// Makes posts by authors among the first `authors` users.
    fn post(&mut self, posts: u32, authors: u32) -> anyhow::Result<()> {
        let posts: Vec<Request> = (0..posts).map(|_| post(self.below(authors))).collect();
        self.submit(posts.into_iter())
    }

    fn read(&self, user: u32) {
        let page = newest();
        if self.node.try_home_ids(UserId(user), &page).is_none() {
            drop(self.node.home_ids(UserId(user), &page));
        }
    }

    /// Average time of these users' reads, in nanoseconds.
    fn timed(&self, users: impl ExactSizeIterator<Item = u32>) -> f64 {
        let count = users.len();
        let start = Instant::now();
        users.for_each(|user| self.read(user));
        start.elapsed().as_nanos() as f64 / count as f64
    }
}

fn processor_ns() -> f64 {
    testkit::proc::processor_seconds(std::process::id()).unwrap_or_default() * 1e9
}

/// Posts in full groups, by authors with 100 active followers. Measures the processor time of the writer's thread: for
/// applying the posts, and for appending them to a log that is not synced.
fn by_the_writer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    const AUTHORS: u32 = 64;
    const READERS: u32 = 100;
    let mut world = World::new()?;
    world.register(AUTHORS + READERS)?;
    let readers = AUTHORS..AUTHORS + READERS;
    let follows =
        readers.clone().flat_map(|user| (0..AUTHORS).map(move |author| follow(user, author)));
    world.submit(follows.map(Request::from))?;
    readers.for_each(|user| world.read(user));
    world.post(TOGETHER, AUTHORS)?;
    let mut rates = Vec::new();
    for _ in 0..plan.runs.max(3) {
        let (start, before, mut done) = (Instant::now(), writer_ns(), 0_u32);
        while start.elapsed() < Duration::from_secs(plan.seconds) {
            world.post(4_000, AUTHORS)?;
            done += 4_000;
        }
        rates.push(f64::from(done) * 1e9 / (writer_ns() - before));
    }
    let name = "posts, 100 active followers, for each second of the writer's processor time";
    report.add(name, "1/s", rates, Some(Target::AtLeast(300_000.0)));
    world.node.close();
    Ok(())
}

fn writer_ns() -> f64 {
    testkit::proc::named_thread_processor_ns("writer").unwrap_or_default() as f64
}

fn among_equals(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let mut world = World::new()?;
    world.register(USERS)?;
    let others: Vec<(u32, u32)> = (0..USERS)
        .flat_map(|user| (0..FOLLOWING).map(move |_| user))
        .map(|user| (user, world.below(USERS)))
        .collect();
    world.submit(others.into_iter().map(|(user, other)| Request::from(follow(user, other))))?;
    world.post(2 * USERS, USERS)?;
    (0..USERS).for_each(|user| world.read(user));
    for new in [0_u32, 1, 16, 128, 1_024, 16_384] {
        let mut samples = Vec::new();
        for _ in 0..plan.runs.max(3) {
            (0..READERS).for_each(|user| world.read(user));
            world.post(new, USERS)?;
            samples.push(world.timed(0..READERS));
        }
        report.add(
            format!("home with {new} posts by all since the last read"),
            "ns",
            samples,
            None,
        );
    }
    for reads in [1, 10, 100] {
        let (mut wall, mut processor) = (Vec::new(), Vec::new());
        for _ in 0..plan.runs.max(3) {
            let (start, before, mut done) = (Instant::now(), processor_ns(), 0_u32);
            while start.elapsed() < Duration::from_secs(plan.seconds) {
                world.post(TOGETHER, USERS)?;
                for _ in 0..TOGETHER * reads {
                    let user = world.below(USERS);
                    world.read(user);
                }
                done += TOGETHER * (1 + reads);
            }
            wall.push(f64::from(done) / start.elapsed().as_secs_f64());
            processor.push((processor_ns() - before) / f64::from(done));
        }
        let name = format!("{reads} reads of homes for each post, 100 active followers");
        report.add(format!("{name}, requests"), "1/s", wall, None);
        report.add(format!("{name}, processor time"), "ns each", processor, None);
    }
    world.node.close();
    Ok(())
}

/// Posts of user 0, who has a million active followers. Other users follow each other.
fn to_a_million(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let mut world = World::new()?;
    let users = 1 + FOLLOWERS + OTHERS;
    world.register(users)?;
    let follows = (1..=FOLLOWERS).map(|user| follow(user, 0));
    let among = (FOLLOWERS + 1..users)
        .flat_map(|user| (1..20).map(move |step| follow(user, beside(user + step))));
    world.submit(follows.chain(among).map(Request::from))?;
    // Fill the timelines, as those of users who have followed others for a while.
    world.post(120, 1)?;
    (0..users).for_each(|user| world.read(user));
    let (mut posts, mut processor, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..plan.runs.max(5) {
        let (start, before) = (Instant::now(), processor_ns());
        world.post(1, 1)?;
        posts.push(start.elapsed().as_secs_f64() * 1e6);
        // In this second, the server does the work that the post has deferred.
        std::thread::sleep(Duration::from_secs(1));
        processor.push((processor_ns() - before) / 1e6);
        world.post(1, 1)?;
        let first = 1 + run as u32 % 100 * READERS;
        reads.push(world.timed(first..first + READERS));
    }
    let name = "post to 1,000,000 active followers";
    report.add(format!("{name}, until it is visible"), "us", posts, None);
    report.add(format!("{name}, processor time"), "ms", processor, None);
    report.add(format!("{name}, first read of a follower"), "ns", reads, None);
    let (mut posts, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        let (post, read) = disturb(&world, Duration::from_secs(plan.seconds))?;
        posts.push(post);
        reads.push(read);
    }
    let most = Some(Target::AtMost(10.0));
    report.add("other users' posts meanwhile, p99", "ms", posts, most);
    report.add("other users' home reads meanwhile, p99", "ms", reads, most);
    world.node.close();
    Ok(())
}

/// Id of one of the other users.
fn beside(number: u32) -> u32 {
    FOLLOWERS + 1 + number % OTHERS
}

fn follow(user: u32, other: u32) -> Command {
    let id = |user| UserRef::Id(UserId(user));
    let other = if other == user { (user + USERS / 2) % USERS } else { other };
    Command::Follow { user: id(user), other: id(other) }
}

fn newest() -> Page {
    Page::newest(20)
}

fn post(author: u32) -> Request {
    let text = PostText::parse("To everyone").unwrap_or_else(|_| unreachable!("valid"));
    let post = feed::Draft::new(UserRef::Id(UserId(author)), text);
    Request::from(Command::Publish(Box::new(post)))
}

/// The 99th percentile of the latency of other users' posts and reads while user 0 makes ten posts per second, in
/// milliseconds.
fn disturb(world: &World, time: Duration) -> anyhow::Result<(f64, f64)> {
    let (node, done) = (&world.node, AtomicBool::new(false));
    let (mut posts, mut reads) = (Histogram::<u64>::new(3)?, Histogram::<u64>::new(3)?);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            runtime.block_on(async {
                let mut every = tokio::time::interval(Duration::from_millis(100));
                while !done.load(Ordering::Acquire) {
                    every.tick().await;
                    node.submit(post(0)).await?;
                }
                anyhow::Ok(())
            })
        });
        at_pace(PACE, time, |n, due| {
            if n % 2 == 0 {
                world.runtime.block_on(node.submit(post(beside(n))))?;
                posts.record(due.elapsed().as_nanos() as u64)?;
            } else {
                world.read(beside(n * 7));
                reads.record(due.elapsed().as_nanos() as u64)?;
            }
            Ok(())
        })?;
        done.store(true, Ordering::Release);
        match other.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("the author's thread panicked"),
        }
    })?;
    let ms = |histogram: &Histogram<u64>| histogram.value_at_quantile(0.99) as f64 / 1e6;
    Ok((ms(&posts), ms(&reads)))
}
