//! Reads of homes of stories inside the server, while stories have a TTL of 1, 5, 30 or 300 seconds: 6,000 users have
//! 10 friends and 10 stories each, and post each story again when it expires. A shorter TTL means more posts, so the
//! shortest TTL is also compared with the longest at the same rate of posts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use feed::{Lifetime, UserId};
use hdrhistogram::Histogram;
use node::{Node, NodeOptions, Request};
use tokio::runtime::Runtime;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::at_pace;
use crate::stories::{USERS_INSIDE, befriend, pairs, post_story, read_home, register, submit_all};

/// Number of live stories.
const STORIES: u32 = USERS_INSIDE * 10;
/// TTLs in seconds, each with the number of stories posted per second, which is the number that expires. The last is
/// the control: it posts as many as the first, but with the longest TTL.
const RUNS: [(u32, u32); 5] =
    [(1, STORIES), (5, STORIES / 5), (30, STORIES / 30), (300, STORIES / 300), (300, STORIES)];
/// Interval between reads of homes, the shortest that a thread can sleep.
const PACE: Duration = Duration::from_micros(500);
/// Interval between batches of story posts.
const POST_PACE: Duration = Duration::from_millis(5);
/// Maximum ratio of latency with the shortest TTL to latency with the longest.
const SLOWER_MAX: f64 = 1.3;

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let mut p99 = RUNS.map(|_| Vec::new());
    let mut p50 = RUNS.map(|_| Vec::new());
    for _ in 0..plan.runs {
        for (at, (life_s, posted_per_second)) in RUNS.into_iter().enumerate() {
            let read = simulate(plan, life_s, posted_per_second)?;
            let us = |quantile| read.value_at_quantile(quantile) as f64 / 1e3;
            if let (Some(p50), Some(p99)) = (p50.get_mut(at), p99.get_mut(at)) {
                p50.push(us(0.5));
                p99.push(us(0.99));
            }
        }
    }
    let ratios = |longer: &[f64]| p99[0].iter().zip(longer).map(|(a, b)| a / b).collect();
    let (as_asked, as_often) = (ratios(&p99[3]), ratios(&p99[4]));
    for (((life_s, posted), p50), p99) in RUNS.into_iter().zip(p50).zip(p99) {
        let what = format!("stories that live {life_s} s, {posted} posted per second");
        report.add(format!("home p50, {what}"), "us", p50, None);
        report.add(format!("home p99, {what}"), "us", p99, None);
    }
    let target = Some(Target::AtMost(SLOWER_MAX));
    report.add("home p99, TTL 1 s / 300 s, same post rate", "ratio", as_often, target);
    report.add("home p99, TTL 1 s / 300 s, reposted on expiry", "ratio", as_asked, target);
    Ok(())
}

/// Measures the latency of reads of homes from their due times, in nanoseconds.
fn simulate(plan: &Plan, life_s: u32, posted_per_second: u32) -> anyhow::Result<Histogram<u64>> {
    let data = tempfile::tempdir()?;
    let node = Node::open(&NodeOptions::new(data.path()))?;
    let runtime = || tokio::runtime::Builder::new_current_thread().build();
    let (here, there) = (runtime()?, runtime()?);
    submit_all(&node, &here, (0..USERS_INSIDE).map(register))?;
    submit_all(&node, &here, pairs(USERS_INSIDE, 10).map(|(one, other)| befriend(one, other)))?;
    let life = Lifetime::from_secs(life_s.into()).unwrap_or_else(|_| unreachable!("valid"));
    submit_all(&node, &here, (0..STORIES).map(|n| post_story(n % USERS_INSIDE, life)))?;
    let done = AtomicBool::new(false);
    let read = std::thread::scope(|scope| {
        let poster = scope.spawn(|| keep_posting(&node, &there, life, posted_per_second, &done));
        // Read every home once, and then until the first stories have expired.
        let mut out = Vec::with_capacity(8_192);
        (0..USERS_INSIDE).for_each(|user| read_home(&node, UserId(user), &mut out));
        read_homes(&node, Duration::from_millis(2_500))?;
        let read = read_homes(&node, Duration::from_secs(2 * plan.seconds));
        done.store(true, Ordering::Release);
        match poster.join() {
            Ok(posted) => posted?,
            Err(_) => anyhow::bail!("the posting thread panicked"),
        }
        read
    })?;
    node.close();
    Ok(read)
}

/// Posts this number of stories per second until `done`.
fn keep_posting(
    node: &Node,
    runtime: &Runtime,
    life: Lifetime,
    per_second: u32,
    done: &AtomicBool,
) -> anyhow::Result<()> {
    let (start, mut posted) = (Instant::now(), 0);
    while !done.load(Ordering::Acquire) {
        let due = (start.elapsed().as_secs_f64() * f64::from(per_second)) as u32;
        let piece: Vec<Request> = (posted..due)
            .map(|n| Request::from(post_story(n % USERS_INSIDE, life)))
            .take(4_000)
            .collect();
        if !piece.is_empty() {
            posted += piece.len() as u32;
            runtime.block_on(node.submit_all(piece))?;
        }
        std::thread::sleep(POST_PACE);
    }
    let due = (start.elapsed().as_secs_f64() * f64::from(per_second)) as u32;
    anyhow::ensure!(
        due - posted <= per_second / 10 + 4_000,
        "only {posted} of {due} could be posted"
    );
    Ok(())
}

/// Reads homes at a fixed rate, in an open loop.
fn read_homes(node: &Node, time: Duration) -> anyhow::Result<Histogram<u64>> {
    let mut times = Histogram::<u64>::new(3)?;
    let mut out = Vec::with_capacity(8_192);
    at_pace(PACE, time, |n, due| {
        read_home(node, UserId(n.wrapping_mul(7_919) % USERS_INSIDE), &mut out);
        times.record(due.elapsed().as_nanos() as u64)?;
        Ok(())
    })?;
    Ok(times)
}
