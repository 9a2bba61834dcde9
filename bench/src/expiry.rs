//! 10 million live stories that expire within a day: their memory, the cost of their expiry, and its effect on other
//! users.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use feed::{Lifetime, UserId};
use hdrhistogram::Histogram;
use node::{Clock, Durability, Node, NodeOptions, Request};
use tokio::runtime::Runtime;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{at_pace, memory_mb};
use crate::stories::{befriend, pairs, post_story, read_home, register, submit_all};

const USERS: u32 = 100_000;
const STORIES: u32 = 10_000_000;
const DAY_S: u32 = 86_400;
/// Number of other users, who read and post stories at the same time. Their homes have been read before.
const OTHERS: u32 = 1_000;
/// Pause after loading, so that the store can finish its background work.
const SETTLE: Duration = Duration::from_secs(15);
/// Interval between actions, which alternate between reading a home and posting a story.
const PACE: Duration = Duration::from_micros(500);

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let now_ms = Arc::new(AtomicU64::new(1_800_000_000_000));
    let mut options = NodeOptions::new(data.path());
    options.durability = Durability::Never;
    options.clock = Clock::from_fn({
        let now_ms = Arc::clone(&now_ms);
        move || now_ms.load(Ordering::Acquire)
    });
    let before_mb = memory_mb(std::process::id())?.0;
    let node = Node::open(&options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    submit_all(&node, &runtime, (0..USERS).map(register))?;
    submit_all(&node, &runtime, pairs(USERS, 10).map(|(user, other)| befriend(user, other)))?;
    let start = Instant::now();
    // Times of expiry are scattered, so that the stories that expire in the same second are from many users.
    let life = |n: u32| Lifetime::from_secs(u64::from(n.wrapping_mul(7_919) % DAY_S) + 1);
    let life = |n| life(n).unwrap_or_else(|_| unreachable!("within a day"));
    submit_all(&node, &runtime, (0..STORIES).map(|n| post_story(n % USERS, life(n))))?;
    report.add("posting 10 million stories", "s", vec![start.elapsed().as_secs_f64()], None);
    let mb = memory_mb(std::process::id())?.0 - before_mb;
    report.add("memory with 10 million live stories", "MB", vec![mb], None);
    let mb = node.sizes().store_bytes as f64 / 1e6;
    report.add("store with 10 million live stories", "MB", vec![mb], None);

    std::thread::sleep(SETTLE);
    notice(&node, &runtime, Duration::from_secs(2))?;

    let time = Duration::from_secs(plan.seconds);
    let mut noticed = [
        ("nothing expires", vec![]),
        ("ten times the usual rate", vec![]),
        ("an hour at once", vec![]),
    ];
    let mut each_us = Vec::new();
    for _ in 0..plan.runs {
        for (what, longest) in &mut noticed {
            // In normal operation, stories expire second by second. After a restart, those of an hour expire together.
            let (step_ms, pause) = match *what {
                "nothing expires" => (0, Duration::from_millis(100)),
                "ten times the usual rate" => (1_000, Duration::from_millis(100)),
                _ => (3_600_000, time),
            };
            let swept = AtomicU64::new(0);
            let done = AtomicBool::new(false);
            let noticed = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Acquire) {
                        now_ms.fetch_add(step_ms, Ordering::AcqRel);
                        let (start, before) = (Instant::now(), node.facts().totals().stories);
                        node.do_due();
                        if node.facts().totals().stories < before {
                            swept.fetch_add(start.elapsed().as_micros() as u64, Ordering::AcqRel);
                        }
                        std::thread::park_timeout(pause.saturating_sub(start.elapsed()));
                    }
                });
                let noticed = notice(&node, &runtime, time);
                done.store(true, Ordering::Release);
                noticed
            })?;
            if step_ms == 3_600_000 {
                let stories = f64::from(STORIES) / 24.0;
                each_us.push(swept.load(Ordering::Acquire) as f64 / stories);
            }
            longest.push(noticed);
        }
    }
    report.add("the end of a story, an hour of them at once", "us", each_us, None);
    noticed.iter().for_each(|(what, noticed)| add_waits(what, noticed, report));
    node.close();
    Ok(())
}

/// Adds the latency of other users, while stories expired as `what` says.
fn add_waits(what: &str, noticed: &[Noticed], report: &mut Report) {
    let of = |figure: fn(&Noticed) -> f64| noticed.iter().map(figure).collect::<Vec<f64>>();
    report.add(format!("home reads meanwhile, p99.9: {what}"), "ms", of(|n| n.read.0), None);
    let most = (what != "nothing expires").then_some(Target::AtMost(5.0));
    report.add(format!("home reads meanwhile, longest: {what}"), "ms", of(|n| n.read.1), most);
    report.add(format!("story posts meanwhile, p99.9: {what}"), "ms", of(|n| n.posted.0), None);
    report.add(format!("story posts meanwhile, longest: {what}"), "ms", of(|n| n.posted.1), most);
}

/// Latency of other users in milliseconds: p99.9 and maximum.
struct Noticed {
    read: (f64, f64),
    posted: (f64, f64),
}

/// Alternates between reading a home and posting a story.
fn notice(node: &Node, runtime: &Runtime, time: Duration) -> anyhow::Result<Noticed> {
    let (mut read, mut posted) = (Histogram::<u64>::new(3)?, Histogram::<u64>::new(3)?);
    let mut out = Vec::with_capacity(8_192);
    let life = Lifetime::from_secs(u64::from(DAY_S)).unwrap_or_else(|_| unreachable!("a day"));
    at_pace(PACE, time, |n, due| {
        let user = n % OTHERS;
        if n % 2 == 0 {
            read_home(node, UserId(user), &mut out);
            read.record(due.elapsed().as_nanos() as u64)?;
        } else {
            runtime.block_on(node.submit(Request::from(post_story(user, life))))?;
            posted.record(due.elapsed().as_nanos() as u64)?;
        }
        Ok(())
    })?;
    let of = |times: &Histogram<u64>| {
        (times.value_at_quantile(0.999) as f64 / 1e6, times.max() as f64 / 1e6)
    };
    Ok(Noticed { read: of(&read), posted: of(&posted) })
}
