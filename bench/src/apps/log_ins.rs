//! Home timelines at a fixed rate, without and with 100 log-ins by password per second: shows how password hashes
//! affect other users. The server hashes as many passwords as its limit allows, and refuses the other log-ins.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use sim::client::Connection;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::{World, home};
use crate::Plan;
use crate::report::{Report, Target};

/// Home timelines per second. This is a small share of the server's capacity, so that it has time for log-ins too.
const HOMES_PER_SECOND: u32 = 1_000;
const READERS: usize = 32;
const LOG_INS_PER_SECOND: u32 = 100;
/// Number of connections that log in. Each connection waits for its log-in before the next.
const LOG_IN_CONNECTIONS: usize = 64;
/// Number of accounts that log in, so that none reaches the limit of its log-ins.
const ACCOUNTS: usize = 64;
const PASSWORD: &str = "a password for the benchmark";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let world = home::world(plan, data.path()).await?;
    for account in 0..ACCOUNTS {
        create(plan, data.path(), &format!("person{account}")).await?;
    }
    let log_ins = log_in_requests(&world).await?;
    let requests = (0..READERS).map(|connection| home::readers(&world, connection));
    let requests = requests.collect::<anyhow::Result<Vec<_>>>()?;
    let (address, time) = (world.server.address, Duration::from_secs(plan.seconds));
    let (mut alone, mut beside, mut ratios) = (vec![], vec![], vec![]);
    let (mut done, mut refused) = (vec![], vec![]);
    let p99 = |answers: &Answers| answers.latency.value_at_quantile(0.99) as f64 / 1e6;
    for run in 0..=plan.runs {
        let without = homes(address, &requests, time).await?;
        let offered = log_ins.clone();
        let (offer, taken) = std::sync::mpsc::channel();
        // Log in on a separate thread, so that readers are not delayed.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let answers = paced(address, &offered, LOG_INS_PER_SECOND, time);
            offer.send(runtime.block_on(answers)).context("nobody waits for the log-ins")
        });
        let with = homes(address, &requests, time).await?;
        let people = tokio::task::spawn_blocking(move || taken.recv()).await???;
        thread.join().map_err(|_| anyhow::anyhow!("the log-ins panicked"))??;
        if run > 0 {
            alone.push(p99(&without));
            beside.push(p99(&with));
            ratios.push(p99(&with) / p99(&without));
            let seconds = time.as_secs_f64();
            done.push((people.latency.len() - people.refused) as f64 / seconds);
            refused.push(people.refused as f64 / seconds);
        }
    }
    report.add("1,000 homes for apps per second, p99", "ms", alone, None);
    report.add("the same with 100 log-ins offered per second, p99", "ms", beside, None);
    let name = "homes with log-ins / without, p99";
    report.add(name, "ratio", ratios, Some(Target::AtMost(1.3)));
    report.add("log-ins that succeeded", "1/s", done, None);
    report.add("log-ins that were refused as too many", "1/s", refused, None);
    Ok(())
}

async fn homes(
    address: SocketAddr,
    requests: &[Vec<Vec<u8>>],
    time: Duration,
) -> anyhow::Result<Answers> {
    let answers = paced(address, requests, HOMES_PER_SECOND, time).await?;
    anyhow::ensure!(answers.refused == 0, "{} homes were refused", answers.refused);
    Ok(answers)
}

/// Responses to requests at a rate.
struct Answers {
    /// Latency in nanoseconds, measured from sending a request. If the connection was still busy, it is measured from
    /// the due time.
    latency: Histogram<u64>,
    /// Number of responses with status 503.
    refused: u64,
}

/// Sends requests at a fixed rate, with one connection for each list.
async fn paced(
    address: SocketAddr,
    requests: &[Vec<Vec<u8>>],
    per_second: u32,
    time: Duration,
) -> anyhow::Result<Answers> {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    let connections = requests.len() as u32;
    for (number, mine) in (0..).zip(requests) {
        let mine = mine.clone();
        tasks.spawn(async move {
            let mut connection = Connection::connect(address).await?;
            let (mut latency, mut refused) = (Histogram::<u64>::new(3)?, 0);
            let mut answered = start;
            for (turn, request) in (0..).zip(mine.iter().cycle()) {
                let turn: u32 = turn;
                let due =
                    start + Duration::from_secs(1) * (turn * connections + number) / per_second;
                if due - start >= time {
                    break;
                }
                // Sleep only if necessary: even the shortest sleep takes a tick of the runtime, a millisecond.
                if due > Instant::now() {
                    tokio::time::sleep_until(due.into()).await;
                }
                let since = if answered > due { due } else { Instant::now() };
                let response = connection.send(request).await?;
                answered = Instant::now();
                match response.status {
                    200 => {}
                    503 => refused += 1,
                    status => {
                        let body = String::from_utf8_lossy(response.body);
                        anyhow::bail!("{status}: {body}");
                    }
                }
                latency.record((answered - since).as_nanos() as u64)?;
            }
            anyhow::Ok(Answers { latency, refused })
        });
    }
    let mut all = Answers { latency: Histogram::new(3)?, refused: 0 };
    while let Some(done) = tasks.join_next().await {
        let done = done??;
        all.latency.add(done.latency)?;
        all.refused += done.refused;
    }
    Ok(all)
}

/// Creates an account with the password.
async fn create(plan: &Plan, data: &std::path::Path, handle: &str) -> anyhow::Result<()> {
    let mut command = Command::new(&plan.roost);
    command.args(["account", "create", handle, "--password-stdin", "--data"]).arg(data);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    input.write_all(PASSWORD.as_bytes()).await?;
    drop(input);
    anyhow::ensure!(child.wait().await?.success(), "cannot make the account {handle}");
    Ok(())
}

/// Log-in requests of the accounts. Each account has its own address, because a proxy on this machine is trusted.
async fn log_in_requests(world: &World) -> anyhow::Result<Vec<Vec<Vec<u8>>>> {
    let app = "{\"client_name\":\"bench\",\"redirect_uris\":\"urn:ietf:wg:oauth:2.0:oob\"}";
    let app = world.server.ask(&world.server.post("/api/v1/apps", app)).await?;
    let app: serde_json::Value = serde_json::from_slice(&app)?;
    let text = |name: &str| {
        let text = app.get(name).and_then(serde_json::Value::as_str);
        text.map(str::to_owned).context("the app has no such field")
    };
    let (id, secret) = (text("client_id")?, text("client_secret")?);
    let address = world.server.address;
    let log_in = |connection: usize, turn: usize| {
        let account = (connection + turn) % ACCOUNTS;
        let body = serde_json::json!({
            "grant_type": "password", "client_id": id, "client_secret": secret,
            "username": format!("person{account}"), "password": PASSWORD, "scope": "read",
        });
        let (body, from) = (body.to_string(), format!("198.18.{connection}.{turn}"));
        format!(
            "POST /oauth/token HTTP/1.1\r\nHost: {address}\r\nX-Forwarded-For: {from}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    };
    let of = |connection: usize| (0..64).map(|turn| log_in(connection, turn)).collect();
    Ok((0..LOG_IN_CONNECTIONS).map(of).collect())
}
