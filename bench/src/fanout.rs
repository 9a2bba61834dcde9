//! One post to a million active followers, inside the server: the cost of a delivery, and what
//! other users notice meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use feed::{Bio, Command, Cursor, Handle, Name, Page, PostText, UserId, UserRef};
use hdrhistogram::Histogram;
use node::{Durability, Node, NodeOptions, Request};

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::at_pace;

const FOLLOWERS: u32 = 1_000_000;
/// Other users, who post and read while the post is delivered.
const OTHERS: u32 = 1_000;
/// They do something this often.
const PACE: Duration = Duration::from_micros(250);

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let mut options = NodeOptions::new(data.path());
    options.durability = Durability::Never;
    options.timeline_memory = 4 << 30;
    let node = Node::open(&options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    prepare(&node, &runtime)?;
    let mut each_ns = Vec::new();
    for _ in 0..plan.runs.max(5) {
        each_ns.push(deliver(&node, &runtime)?);
    }
    report.add(
        "delivery, one post to 1,000,000 active followers",
        "ns each",
        each_ns,
        Some(Target::AtMost(60.0)),
    );
    let (mut posts, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        let (post, read) = disturb(&node, &runtime, Duration::from_secs(plan.seconds))?;
        posts.push(post);
        reads.push(read);
    }
    let most = Some(Target::AtMost(10.0));
    report.add("other users' posts meanwhile, p99", "ms", posts, most);
    report.add("other users' home reads meanwhile, p99", "ms", reads, most);
    node.close();
    Ok(())
}

/// User 0 with a million followers, all active, and others who follow each other.
fn prepare(node: &Node, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
    let users = 1 + FOLLOWERS + OTHERS;
    let register = |n: u32| Command::Register {
        handle: Handle::parse(&format!("u{n}")).unwrap_or_else(|_| unreachable!("valid")),
        name: Name::default(),
        bio: Bio::default(),
    };
    let commands = (0..users).map(register);
    let follows = (1..=FOLLOWERS).map(|user| follow(user, 0));
    let among = (FOLLOWERS + 1..users)
        .flat_map(|user| (1..20).map(move |step| follow(user, beside(user + step))));
    let mut commands = commands.chain(follows).chain(among).map(Request::from).peekable();
    while commands.peek().is_some() {
        let piece: Vec<Request> = commands.by_ref().take(4_000).collect();
        runtime.block_on(node.submit_all(piece))?;
    }
    // Full timelines, as those of users who have followed others for a while.
    for _ in 0..120 {
        runtime.block_on(node.submit(post(0)))?;
    }
    for user in 0..users {
        drop(node.home_ids(UserId(user), &newest()));
    }
    Ok(())
}

/// One of the others.
fn beside(number: u32) -> u32 {
    FOLLOWERS + 1 + number % OTHERS
}

fn follow(user: u32, other: u32) -> Command {
    let id = |user| UserRef::Id(UserId(user));
    let other = if other == user { user - 1 } else { other };
    Command::Follow { user: id(user), other: id(other) }
}

fn newest() -> Page {
    Page { cursor: Cursor::Newest, limit: 20 }
}

fn post(author: u32) -> Request {
    let text = PostText::parse("To everyone").unwrap_or_else(|_| unreachable!("valid"));
    let post = feed::NewPost::new(UserRef::Id(UserId(author)), text);
    Request::from(Command::Publish(Box::new(post)))
}

/// Nanoseconds per delivery, from the submission of a post until all of them are done.
fn deliver(node: &Node, runtime: &tokio::runtime::Runtime) -> anyhow::Result<f64> {
    // While an event stream is open, delivery begins at once; the author's own timeline gets it too.
    let watch = node.watch(UserId(0));
    let all = node.sizes().views.deliveries + u64::from(FOLLOWERS) + 1;
    let start = Instant::now();
    let reply = runtime.block_on(node.submit(post(0)))?;
    anyhow::ensure!(reply.outcome.is_ok(), "{:?}", reply.outcome);
    while node.sizes().views.deliveries < all {
        std::thread::sleep(Duration::from_millis(2));
        anyhow::ensure!(start.elapsed() < Duration::from_secs(10), "the deliveries do not end");
    }
    let took = start.elapsed();
    drop(watch);
    Ok(took.as_nanos() as f64 / f64::from(FOLLOWERS))
}

/// Milliseconds, p99, of posts and reads by others while user 0 posts ten times per second.
fn disturb(
    node: &Node,
    runtime: &tokio::runtime::Runtime,
    time: Duration,
) -> anyhow::Result<(f64, f64)> {
    let done = AtomicBool::new(false);
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
                runtime.block_on(node.submit(post(beside(n))))?;
                posts.record(due.elapsed().as_nanos() as u64)?;
            } else {
                drop(node.home_ids(UserId(beside(n * 7)), &newest()));
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
