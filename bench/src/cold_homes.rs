//! The first read of an inactive user's home inside the server, in processor time of the reading thread. The control
//! does what the definition says: it reads the newest posts of every followed user from the store and merges them.
//!
//! 20,000 users of the simulator's population with ten posts each represent a million users. Every memory budget is a
//! fiftieth of the default, so the caches contain the same shares.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use feed::{Bio, Command, Handle, Name, Page, PostText, Shown, UserId, UserRef, scan, timeline};
use node::{Durability, Node, NodeOptions};
use rustix::time::{ClockId, clock_gettime};
use sim::Population;
use sim::population::Making;

use crate::Plan;
use crate::report::{Report, Target};
use crate::stories::submit_all;

const USERS: u32 = 20_000;
/// Ratio of a million users, for which the default budgets are meant, to the number of users here.
const SCALE: usize = 50;
/// Average number of posts of a user.
const POSTS_EACH: u32 = 10;
/// Numbers of additional readers who follow many users, each with the number of users that they follow.
const BIG_READERS: [(u32, u32); 2] = [(200, 2_000), (60, 7_500)];
/// Number of readers from the population, who follow about 120 users.
const READERS: usize = 1_000;
/// Number of readers right after a start, and of those who read again. The budget is enough for their timelines.
const FEW: usize = 20;
const AROUND_120: std::ops::RangeInclusive<usize> = 100..=140;
/// Number of posts gathered for a timeline, as in the server.
const KEPT: usize = feed::limits::PAGE_MAX + 4;
/// Number of users who follow others while other users' homes are read.
const WRITERS: u32 = 100;
/// Number of commands that are submitted together.
const BATCH: usize = 4_000;

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let mut options = NodeOptions::new(data.path());
    options.durability = Durability::Never;
    options.post_memory /= SCALE;
    options.entity_memory /= SCALE;
    options.store_cache /= SCALE;
    options.timeline_memory /= SCALE;
    options.overlay_memory /= SCALE;
    let population = Population::made(&Making::of(USERS, 1));
    load(&options, &population)?;
    let follows = |user: &u32| AROUND_120.contains(&population.following(*user).len());
    let usual: Vec<u32> = (0..USERS).filter(follows).take(READERS).collect();
    measure_readers(plan, report, &options, ("120", &usual, 60.0))?;
    let mut first = USERS;
    for ((count, following), most_us) in BIG_READERS.into_iter().zip([1_000.0, 4_000.0]) {
        let readers: Vec<u32> = (first..first + count).collect();
        measure_readers(plan, report, &options, (&following.to_string(), &readers, most_us))?;
        first += count;
    }
    Ok(())
}

/// Measures the reads of `readers` and compares them with a target in microseconds. `name` says how many users they
/// follow.
fn measure_readers(
    plan: &Plan,
    report: &mut Report,
    options: &NodeOptions,
    (name, readers, most_us): (&str, &[u32], f64),
) -> anyhow::Result<()> {
    let mut figures: [Vec<f64>; 7] = Default::default();
    let (few, rest) = readers.split_at(FEW);
    let (alone_readers, rest) = rest.split_at(rest.len() / 3);
    let (rendered_readers, busy_readers) = rest.split_at(rest.len() / 2);
    for _ in 0..plan.runs {
        let [control, following, at_start, alone, rendered, again, busy] = &mut figures;
        let node = Node::open(options)?;
        let mut out = Vec::new();
        // Each home is read only once.
        let mut page = |user| {
            out.clear();
            black_box(node.home(user, &newest(20), &mut out));
        };
        at_start.push(each_us(few, &mut page));
        settle(&node);
        alone
            .push(each_us(alone_readers, |user| drop(black_box(node.home_ids(user, &newest(20))))));
        rendered.push(each_us(rendered_readers, &mut page));
        let last = rendered_readers.len().saturating_sub(FEW);
        again.push(each_us(rendered_readers.get(last..).unwrap_or_default(), &mut page));
        control.push(each_us(few, |user| from_all_authors(&node, user)));
        following.push(each_us(alone_readers, |user| {
            black_box(node.facts().following_all(user));
        }));
        busy.push(while_follows_are_written(&node, || each_us(busy_readers, &mut page))?);
        node.close();
    }
    let [control, following, at_start, alone, rendered, again, busy] = figures;
    let label = |what: &str| format!("follows {name}: {what}");
    report.add(label("from the rows of all authors (control)"), "us", control, None);
    report.add(label("reading whom the user follows"), "us", following, None);
    report.add(label("first read, at once after a start"), "us", at_start, None);
    report.add(label("first read, ids alone"), "us", alone, None);
    report.add(label("first read"), "us", rendered, Some(Target::AtMost(most_us)));
    report.add(
        label("first read, while follows are written"),
        "us",
        busy,
        Some(Target::AtMost(2.5 * most_us)),
    );
    report.add(label("second read"), "us", again, None);
    Ok(())
}

/// Runs `act` while another thread follows and unfollows as fast as it can, so that there are checkpoints and
/// compactions. The measured users are not involved.
fn while_follows_are_written(node: &Node, act: impl FnOnce() -> f64) -> anyhow::Result<f64> {
    let done = AtomicBool::new(false);
    let first = USERS + BIG_READERS.iter().map(|(count, _)| count).sum::<u32>();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            let id = |user| UserRef::Id(UserId(user));
            for round in 0.. {
                let pairs = (0..BATCH as u32)
                    .map(|n| (first + n % WRITERS, (n * 31 + round / 2 * 997) % USERS));
                let command = |(user, other)| match round % 2 {
                    0 => Command::Follow { user: id(user), other: id(other) },
                    _ => Command::Unfollow { user: id(user), other: id(other) },
                };
                submit_all(node, &runtime, pairs.map(command))?;
                if done.load(Ordering::Acquire) {
                    break;
                }
            }
            Ok(())
        });
        std::thread::sleep(Duration::from_secs(1));
        let result = act();
        done.store(true, Ordering::Release);
        match writer.join() {
            Ok(written) => written.map(|()| result),
            Err(_) => anyhow::bail!("the writer's thread panicked"),
        }
    })
}

/// Creates a store with all users, follows and posts.
fn load(options: &NodeOptions, population: &Population) -> anyhow::Result<()> {
    let node = Node::open(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let id = |user| UserRef::Id(UserId(user));
    let register = |n: u32| Command::Register {
        handle: Handle::parse(&format!("u{n}")).unwrap_or_else(|_| unreachable!("valid")),
        name: Name::default(),
        bio: Bio::default(),
    };
    let readers = BIG_READERS.iter().flat_map(|(count, following)| (0..*count).map(|_| *following));
    let all = USERS + readers.clone().count() as u32 + WRITERS;
    submit_all(&node, &runtime, (0..all).map(register))?;
    let follow = |user, other| Command::Follow { user: id(user), other: id(other) };
    let usual = (0..USERS)
        .flat_map(|user| population.following(user).iter().map(move |other| follow(user, *other)));
    submit_all(&node, &runtime, usual)?;
    let big = (USERS..).zip(readers).flat_map(|(user, following)| {
        (0..following).map(move |n| follow(user, (n * 7 + user * 13) % USERS))
    });
    submit_all(&node, &runtime, big)?;
    let mut state = 1_u64;
    let posts = (0..USERS * POSTS_EACH).map(|n| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let author = (state >> 33) as u32 % USERS;
        let text =
            format!("{n}: {state:x} is what somebody had to say, about as long as most posts are");
        let text = PostText::parse(&text).unwrap_or_else(|_| unreachable!("valid"));
        Command::Publish(Box::new(feed::Draft::new(id(author), text)))
    });
    submit_all(&node, &runtime, posts)?;
    node.close();
    Ok(())
}

/// Waits until compaction and reading into memory have finished.
pub(crate) fn settle(node: &Node) {
    let mut state = (0, 0);
    let mut changed = Instant::now();
    while changed.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(100));
        let sizes = node.sizes();
        let now = (sizes.store_bytes, sizes.views.recent_bytes + sizes.views.rendered_bytes);
        if now != state {
            (state, changed) = (now, Instant::now());
        }
    }
}

fn newest(limit: usize) -> Page {
    Page::newest(limit)
}

fn from_all_authors(node: &Node, user: UserId) {
    let facts = node.facts();
    let authors = facts.home_authors(user);
    let source = timeline::source(facts, user, &authors);
    black_box(scan(&newest(KEPT), source, Shown::Yes));
}

/// Average processor time of this thread per `read`, in microseconds.
fn each_us(readers: &[u32], mut read: impl FnMut(UserId)) -> f64 {
    let start = processor_ns();
    readers.iter().for_each(|reader| read(UserId(*reader)));
    (processor_ns() - start) as f64 / 1e3 / readers.len() as f64
}

/// Processor time used by this thread, in nanoseconds.
fn processor_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
