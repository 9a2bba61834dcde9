//! The first read of an inactive user's home, inside the server, in processor time of the reading thread.
//! The control, in the same run, is the definition: the newest posts of every followed user are read from
//! the store and merged.
//!
//! 20,000 users of the simulator's population with ten posts each stand for a million: every memory budget
//! is a fiftieth of the default, so the caches hold the same shares as there.

use std::hint::black_box;
use std::time::{Duration, Instant};

use feed::timeline::gather;
use feed::{Bio, Command, Cursor, Handle, Name, Page, PostText, UserId, UserRef};
use node::{Durability, Node, NodeOptions, Request};
use sim::Population;
use sim::population::Making;
use tokio::runtime::Runtime;

use crate::Plan;
use crate::report::{Report, Target};

const USERS: u32 = 20_000;
/// The default budgets are for so many times the users.
const SCALE: usize = 50;
/// Posts of a user, on average.
const POSTS_EACH: u32 = 10;
/// Readers who follow many, beside the population.
const BIG_READERS: u32 = 200;
const BIG_FOLLOWING: u32 = 2_000;
/// Readers of the population who follow about 120.
const READERS: usize = 1_000;
const AROUND_120: std::ops::RangeInclusive<usize> = 100..=140;
/// Posts that are gathered for a timeline, as the server does.
const KEPT: usize = feed::limits::PAGE_MAX + 4;
/// Commands submitted together.
const BATCH: usize = 4_000;

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let mut options = NodeOptions::new(data.path());
    options.durability = Durability::Never;
    options.post_memory /= SCALE;
    options.store_cache /= SCALE;
    options.timeline_memory /= SCALE;
    let population = Population::made(&Making::of(USERS, 1));
    load(&options, &population)?;
    let follows = |user: &u32| AROUND_120.contains(&population.following(*user).len());
    let usual: Vec<u32> = (0..USERS).filter(follows).take(READERS).collect();
    let big: Vec<u32> = (USERS..USERS + BIG_READERS).collect();
    for (readers, name, most_us) in [(usual, "120", 60.0), (big, "2,000", 1_000.0)] {
        let mut figures: [Vec<f64>; 5] = Default::default();
        for _ in 0..plan.runs {
            let [control, following, alone, rendered, again] = &mut figures;
            let node = Node::open(&options)?;
            settle(&node);
            control.push(each_us(&readers, |user| from_all_authors(&node, user))?);
            following.push(each_us(&readers, |user| {
                black_box(node.facts().following_all(user));
            })?);
            node.close();
            drop(node);
            let node = Node::open(&options)?;
            settle(&node);
            // The halves, so that each home is read for the first time.
            let (first, second) = readers.split_at(readers.len() / 2);
            alone.push(each_us(first, |user| drop(black_box(node.home_ids(user, &newest(20)))))?);
            let mut out = Vec::new();
            let mut page = |user| {
                out.clear();
                black_box(node.home(user, &newest(20), &mut out));
            };
            rendered.push(each_us(second, &mut page)?);
            // Their timelines are in memory, if they fit the budget: the first half's posts are rendered.
            again.push(each_us(first, &mut page)?);
            node.close();
        }
        let [control, following, alone, rendered, again] = figures;
        let most = Some(Target::AtMost(most_us));
        let label = |what: &str| format!("home of a user who follows {name}: {what}");
        report.add(label("gathered from all authors' rows (control)"), "us", control, None);
        report.add(label("of which reading whom they follow"), "us", following, None);
        report.add(label("first read, ids alone"), "us", alone, most);
        report.add(label("first read, rendered"), "us", rendered, most);
        report.add(label("rendered, ids gathered before"), "us", again, None);
    }
    Ok(())
}

/// A store with all users, follows and posts.
fn load(options: &NodeOptions, population: &Population) -> anyhow::Result<()> {
    let node = Node::open(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let id = |user| UserRef::Id(UserId(user));
    let register = |n: u32| Command::Register {
        handle: Handle::parse(&format!("u{n}")).unwrap_or_else(|_| unreachable!("valid")),
        name: Name::default(),
        bio: Bio::default(),
    };
    submit(&node, &runtime, (0..USERS + BIG_READERS).map(register))?;
    let follow = |user, other| Command::Follow { user: id(user), other: id(other) };
    let usual = (0..USERS)
        .flat_map(|user| population.following(user).iter().map(move |other| follow(user, *other)));
    submit(&node, &runtime, usual)?;
    let big = (USERS..USERS + BIG_READERS).flat_map(|user| {
        (0..BIG_FOLLOWING).map(move |n| follow(user, (n * 7 + user * 13) % USERS))
    });
    submit(&node, &runtime, big)?;
    let mut state = 1_u64;
    let posts = (0..USERS * POSTS_EACH).map(|n| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let author = (state >> 33) as u32 % USERS;
        let text =
            format!("{n}: {state:x} is what somebody had to say, about as long as most posts are");
        let text = PostText::parse(&text).unwrap_or_else(|_| unreachable!("valid"));
        Command::Post { author: id(author), text }
    });
    submit(&node, &runtime, posts)?;
    node.close();
    Ok(())
}

fn submit(
    node: &Node,
    runtime: &Runtime,
    commands: impl Iterator<Item = Command>,
) -> anyhow::Result<()> {
    let mut commands = commands.map(Request::from).peekable();
    while commands.peek().is_some() {
        let piece: Vec<Request> = commands.by_ref().take(BATCH).collect();
        let replies = runtime.block_on(node.submit_all_waiting(piece))?;
        if let Some(refusal) = replies.iter().find_map(|reply| reply.outcome.err()) {
            anyhow::bail!("refused: {refusal:?}");
        }
    }
    Ok(())
}

/// Waits until the store is not compacted any more, and nothing is read into memory in the background.
fn settle(node: &Node) {
    let state = || {
        let sizes = node.sizes();
        (sizes.store_bytes, sizes.views.recent_bytes)
    };
    let (mut before, mut since) = (state(), Instant::now());
    while since.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(100));
        let now = state();
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
}

fn newest(limit: usize) -> Page {
    Page { cursor: Cursor::Newest, limit }
}

fn from_all_authors(node: &Node, user: UserId) {
    let facts = node.facts();
    let following = facts.following_all(user);
    let by = |author, span| facts.posts_by(author, span);
    black_box(gather(user, &following, &newest(KEPT), by));
}

/// Microseconds of processor time that `read` takes of this thread, on average.
fn each_us(readers: &[u32], mut read: impl FnMut(UserId)) -> anyhow::Result<f64> {
    let start = processor_ns()?;
    readers.iter().for_each(|reader| read(UserId(*reader)));
    let took = processor_ns()? - start;
    Ok(took as f64 / 1e3 / readers.len() as f64)
}

/// Nanoseconds of processor time that this thread has used.
fn processor_ns() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().unwrap_or_default();
    Ok(first.parse()?)
}
