//! Home timelines of 20 posts, read by active users over 64 connections, compared with the control.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{CONNECTIONS, Server, drive, follow_line, post_line, register_lines};

const USERS: u32 = 1_000;
const FOLLOWING: u32 = 50;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &["--durability", "never"]).await?;
    roost.batch(register_lines("u", USERS)).await?;
    let follows = (0..USERS).flat_map(|user| {
        (1..=FOLLOWING).map(move |step| follow_line(user, (user + step * 7) % USERS))
    });
    roost.batch(follows).await?;
    roost.batch((0..20_000).map(|n| post_line(n as u32 % USERS, n))).await?;
    let path = |user: usize| format!("/v1/users/{user}/timeline");
    let body = roost.ask(&roost.get(&path(0))).await?;

    // Each connection reads for several users, so that the responses are not always the same cached one.
    let readers = |connection: usize| {
        (0..15).map(|turn| roost.get(&path((connection * 15 + turn) % USERS as usize))).collect()
    };
    let of = ("home timeline", "posts");
    against_control((plan, report), (roost.address, body.len()), of, 0.8, readers).await
}

/// Reads pages with 20 of `items`, and alternately as many constant bytes from the control; `bytes` is their size.
/// `requests` returns the requests of a connection.
pub(crate) async fn against_control(
    (plan, report): (&Plan, &mut Report),
    (address, bytes): (SocketAddr, usize),
    (name, items): (&str, &str),
    target: f64,
    requests: impl Fn(usize) -> Vec<Vec<u8>>,
) -> anyhow::Result<()> {
    let control = Server::control(bytes, 1).await?;
    let constant = |_: usize| vec![control.get("/")];
    let warm = Duration::from_secs(2);
    drive(address, CONNECTIONS, warm, &requests).await?;
    drive(control.address, CONNECTIONS, warm, constant).await?;
    let time = Duration::from_secs(plan.seconds);
    let (mut rates, mut control_rates, mut ratios, mut p99) = (vec![], vec![], vec![], vec![]);
    for _ in 0..plan.runs {
        let bare = drive(control.address, CONNECTIONS, time, constant).await?;
        let home = drive(address, CONNECTIONS, time, &requests).await?;
        control_rates.push(bare.per_second);
        rates.push(home.per_second);
        ratios.push(home.per_second / bare.per_second);
        p99.push(home.latency.value_at_quantile(0.99) as f64 / 1e6);
    }
    report.add(format!("control: GET of {bytes} constant bytes"), "1/s", control_rates, None);
    report.add(format!("{name}, 20 {items}, {CONNECTIONS} connections"), "1/s", rates, None);
    report.add(format!("{name}, p99"), "ms", p99, None);
    report.add(format!("{name} / control"), "ratio", ratios, Some(Target::AtLeast(target)));
    Ok(())
}
