//! The ranked feed `for-you`, read over 64 connections by active users, compared with the home timelines of the same
//! users in the same run: first pages, of which each makes a ranking, and next pages of a ranking. And what ranked feeds
//! cost others: homes and posts on this server, compared with a server on which nobody has read a ranked feed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use sim::client::Connection;
use tokio::task::JoinSet;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{CONNECTIONS, Server, drive, follow_all_line, register_lines, send_all, text};

const USERS: u32 = 20_000;
const FOLLOWING: u32 = 100;
const POSTS: u64 = 60_000;
/// Number of favourites of each user.
const FAVOURITES: u32 = 6;
/// Number of hashtags, one of which is in every second post.
const TAGS: u64 = 200;
/// Number of users who read over each connection, and of those who read next pages, whose rankings must be kept.
const READERS: usize = 150;
const NEXT_READERS: usize = 8;
const PAGE: &str = "/feeds/for-you?limit=20";

type Requests = Vec<Vec<Vec<u8>>>;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &["--durability", "never"]).await?;
    fill(&roost).await?;
    let of = |readers: usize, path: &dyn Fn(usize) -> String| -> Requests {
        let request = |user| roost.get(&format!("/v1/users/{user}{}", path(user)));
        let of = |connection| connection * READERS..connection * READERS + readers;
        (0..CONNECTIONS).map(|connection| of(connection).map(request).collect()).collect()
    };
    let homes = of(READERS, &|_| "/timeline?limit=20".to_owned());
    let first = of(READERS, &|_| PAGE.to_owned());
    // The first read starts the load of the view; then all homes are read, so that they are active.
    roost.ask(first.concat().first().context("no reader")?).await?;
    send_all(roost.address, homes.concat()).await?;
    drive(roost.address, CONNECTIONS, Duration::from_secs(5), |n| get(&first, n)).await?;

    let other = tempfile::tempdir()?;
    let without = Server::roost(&plan.roost, other.path(), &["--durability", "never"]).await?;
    fill(&without).await?;
    send_all(without.address, homes.concat()).await?;
    let posts: Requests = (0..CONNECTIONS).map(|connection| posts(&roost, connection)).collect();

    let time = Duration::from_secs(plan.seconds);
    let closed_at = async |server: &Server, requests: &Requests| {
        drive(server.address, CONNECTIONS, time, |connection| get(requests, connection)).await
    };
    let closed = async |requests: &Requests| closed_at(&roost, requests).await;
    let (mut home_cost, mut post_cost) = (Vec::new(), Vec::new());
    let names = ["home timeline", "for-you, first page", "for-you, next page"];
    let mut all = names.map(|name| Samples { name, ..Samples::default() });
    for _ in 0..plan.runs {
        let home_without = closed_at(&without, &homes).await?.per_second;
        let home = closed(&homes).await?.per_second;
        home_cost.push(home / home_without);
        let made = closed(&first).await?.per_second;
        let made_for_next = of(NEXT_READERS, &|_| PAGE.to_owned());
        let next = next_pages(&roost, &made_for_next).await?;
        let continued = closed(&next).await?.per_second;
        // Half of the rate of the slowest one, which all can keep.
        let pace = Duration::from_secs_f64(2.0 * CONNECTIONS as f64 / made.min(continued));
        let mut p99_of_home = None;
        let [of_home, of_first, of_next] = &mut all;
        for (samples, rate, requests) in [
            (of_home, home, Some(&homes)),
            (of_first, made, Some(&first)),
            (of_next, continued, None),
        ] {
            // Reads of first pages have displaced the rankings of next pages.
            let made_again;
            let requests = match requests {
                Some(requests) => requests,
                None => {
                    made_again = next_pages(&roost, &made_for_next).await?;
                    &made_again
                }
            };
            let p99 = paced(roost.address, pace, time, requests).await?;
            samples.rates.push(rate);
            samples.ratios.push(rate / home);
            samples.p99s.push(p99 / *p99_of_home.get_or_insert(p99));
        }
    }
    // After the reads, because a server that gets posts faster than the view reads changes has older ones in the view.
    for _ in 0..plan.runs {
        let posted = closed(&posts).await?.per_second;
        post_cost.push(posted / closed_at(&without, &posts).await?.per_second);
    }
    report_pages(all, report);
    for (name, ratios) in [("home timeline", home_cost), ("posts, never", post_cost)] {
        let name = format!("{name}, with / without use of ranked feeds, rate");
        report.add(name, "ratio", ratios, Some(Target::AtLeast(0.97)));
    }
    Ok(())
}

fn report_pages(all: [Samples; 3], report: &mut Report) {
    let [_, made, continued] = &all;
    let three = made.rates.iter().zip(&continued.rates);
    let three: Vec<_> = three.map(|(made, next)| 3.0 / (1.0 / made + 2.0 / next)).collect();
    for (at, Samples { name, rates, ratios, p99s }) in all.into_iter().enumerate() {
        report.add(format!("{name}, 20 posts"), "1/s", rates, None);
        if at > 0 {
            let name = format!("{name} / home timeline");
            report.add(format!("{name}, rate"), "ratio", ratios, None);
            let most = Some(Target::AtMost(1.5));
            report.add(format!("{name}, p99 at the same rate"), "ratio", p99s, most);
        }
    }
    // Computed from the rates: a reader reads three pages of a ranking.
    let least = Some(Target::AtLeast(10_000.0));
    report.add("for-you, a first page and two next ones", "1/s", three, least);
}

/// Samples of a kind of page.
#[derive(Default)]
struct Samples {
    name: &'static str,
    /// Pages per second.
    rates: Vec<f64>,
    /// Quotients of this and of the rate of homes.
    ratios: Vec<f64>,
    /// Quotients of the 99th percentiles of latency.
    p99s: Vec<f64>,
}

/// Posts by users who read over a connection.
fn posts(server: &Server, connection: usize) -> Vec<Vec<u8>> {
    let users = connection * READERS..(connection + 1) * READERS;
    let post = |user: usize| {
        let body = format!("{{\"text\":\"{}\"}}", text(user as u64));
        server.post(&format!("/v1/users/{user}/posts"), &body)
    };
    users.map(post).collect()
}

fn get(requests: &Requests, connection: usize) -> Vec<Vec<u8>> {
    requests.get(connection).cloned().unwrap_or_default()
}

/// Makes users who follow others near them and far from them, posts with hashtags, and favourites of posts by users
/// near them.
async fn fill(roost: &Server) -> anyhow::Result<()> {
    roost.batch(register_lines("u", USERS)).await?;
    let others = |user: u32| (1..=FOLLOWING).map(move |step| (user + step * step) % USERS);
    roost.batch((0..USERS).map(|user| follow_all_line(user, others(user)))).await?;
    let post = |n: u64| {
        let author = n as u32 % USERS;
        let tag =
            if n.is_multiple_of(2) { format!(" #topic{}", n / 100 % TAGS) } else { String::new() };
        format!("{{\"op\":\"post\",\"user\":{author},\"text\":\"{}{tag}\"}}\n", text(n))
    };
    roost.batch((0..POSTS).map(post)).await?;
    let newest = |user: u32| roost.get(&format!("/v1/users/{user}/posts?limit=1"));
    let pages = send_all(roost.address, (0..USERS).map(newest).collect()).await?;
    let posts = pages.iter().map(|page| first_id(page)).collect::<anyhow::Result<Vec<_>>>()?;
    let favourite = |n: u32| {
        let (user, step) = (n % USERS, n / USERS + 1);
        let liked = posts.get(((user + step * step) % USERS) as usize)?;
        Some(roost.put(&format!("/v1/users/{user}/favourites/{liked}")))
    };
    let favourites = (0..USERS * FAVOURITES).filter_map(favourite).collect();
    send_all(roost.address, favourites).await.map(drop)
}

fn first_id(page: &[u8]) -> anyhow::Result<String> {
    let page: serde_json::Value = serde_json::from_slice(page)?;
    let id = page.pointer("/items/0/id").and_then(|id| id.as_str());
    Ok(id.context("a page with a post")?.to_owned())
}

/// Makes rankings, and returns the requests for their second pages.
async fn next_pages(roost: &Server, first: &Requests) -> anyhow::Result<Requests> {
    let mut requests = Vec::new();
    for first in first {
        let mut of_connection = Vec::new();
        for (request, page) in first.iter().zip(send_all(roost.address, first.clone()).await?) {
            let page: serde_json::Value = serde_json::from_slice(&page)?;
            let cursor = page.get("next").and_then(|next| next.as_str());
            let cursor = cursor.context("a ranking with a second page")?;
            let request = String::from_utf8_lossy(request);
            let next = request.replacen("limit=20", &format!("limit=20&cursor={cursor}"), 1);
            of_connection.push(next.into_bytes());
        }
        requests.push(of_connection);
    }
    Ok(requests)
}

/// Sends a request over each connection at every multiple of `pace`, however long a response takes. Returns the 99th
/// percentile of the time from the due time to the response, in nanoseconds.
async fn paced(
    address: SocketAddr,
    pace: Duration,
    time: Duration,
    requests: &Requests,
) -> anyhow::Result<f64> {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for (number, requests) in (0..).zip(requests.iter().cloned()) {
        tasks.spawn(async move {
            let mut connection = Connection::connect(address).await?;
            let mut latency = Histogram::<u64>::new(3)?;
            let first = start + pace * number / CONNECTIONS as u32;
            for (request, n) in requests.iter().cycle().zip(0..) {
                let due = first + pace * n;
                if due - start >= time {
                    break;
                }
                tokio::time::sleep_until(due.into()).await;
                let response = connection.send(request).await?;
                anyhow::ensure!(response.is_success(), "status {}", response.status);
                latency.record(due.elapsed().as_nanos() as u64)?;
            }
            anyhow::Ok(latency)
        });
    }
    let mut latency = Histogram::<u64>::new(3)?;
    while let Some(done) = tasks.join_next().await {
        latency.add(done??)?;
    }
    Ok(latency.value_at_quantile(0.99) as f64)
}
