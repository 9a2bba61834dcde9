//! Searches for accounts and hashtags by prefix, among a million users and 10,000 hashtags.

use std::time::Duration;

use super::World;
use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{drive, register_lines};

const USERS: u32 = 1_000_000;
/// Number of users who search, so that none reaches the limit of one user.
const SEARCHERS: u32 = 800;
const TAGS: u64 = 10_000;
const POSTS: u64 = 100_000;
const CONNECTIONS: usize = 8;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let settings = ["--durability", "never"];
    let world = World::new(plan, data.path(), &settings, SEARCHERS).await?;
    world.server.batch(register_lines("u", USERS - SEARCHERS)).await?;
    let post = |n: u64| {
        let (author, tag) = (n * 7_919 % u64::from(USERS), n * 31 % TAGS);
        format!("{{\"op\":\"post\",\"user\":{author},\"text\":\"A post number {n} #tag{tag}\"}}\n")
    };
    world.server.batch((0..POSTS).map(post)).await?;
    let queries = |kind: &str, start: &str| -> anyhow::Result<Vec<Vec<Vec<u8>>>> {
        let of = |connection: usize| {
            let mine = (0..SEARCHERS as usize).skip(connection).step_by(CONNECTIONS);
            let request = |user: usize| {
                // Prefixes have one to four digits, so the number of matches varies.
                let number = user * 7_919 % 10_usize.pow(1 + user as u32 % 4);
                let path = format!("/api/v2/search?type={kind}&limit=20&q={start}{number}");
                world.get(user, &path)
            };
            mine.map(request).collect()
        };
        (0..CONNECTIONS).map(of).collect()
    };
    let accounts = queries("accounts", "u")?;
    let hashtags = queries("hashtags", "%23tag")?;
    let (address, time) = (world.server.address, Duration::from_secs(plan.seconds));
    let mut figures = [(vec![], vec![]), (vec![], vec![])];
    for run in 0..=plan.runs {
        for (requests, (rates, p99)) in [&accounts, &hashtags].into_iter().zip(&mut figures) {
            let time = if run == 0 { Duration::from_millis(500) } else { time };
            let mine = |n: usize| requests.get(n).cloned().unwrap_or_default();
            let driven = drive(address, CONNECTIONS, time, mine).await?;
            if run > 0 {
                rates.push(driven.per_second);
                p99.push(driven.latency.value_at_quantile(0.99) as f64 / 1e6);
            }
        }
    }
    for (what, (rates, p99)) in ["accounts", "hashtags"].into_iter().zip(figures) {
        report.add(format!("search for {what}, 8 connections"), "1/s", rates, None);
        let name = format!("search for {what} among a million users, p99");
        report.add(name, "ms", p99, Some(Target::AtMost(10.0)));
    }
    Ok(())
}
