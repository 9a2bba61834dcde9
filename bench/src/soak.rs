//! Hours of mixed load at half of the server's capacity, with restarts. Checks that memory, descriptors, disk and
//! latency do not grow, and that the files do not contain deleted and expired texts.
//!
//! The load does not grow: each client deletes as many posts as it makes, stories and keys expire, and follows end.

mod clients;
mod plots;
mod traces;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::watch;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{Server, follow_line, register_lines};
use clients::{Clients, KINDS};

/// Number of users, and number of users that each of them follows.
const USERS: u32 = 10_000;
const FOLLOWS: u32 = 20;
/// Length of the closed loop that measures the server's capacity.
const CAPACITY: Duration = Duration::from_secs(30);
/// Interval between two samples.
const SAMPLE: Duration = Duration::from_secs(10);
/// Interval between two restarts. The server is killed and stopped in turns.
const RESTART: Duration = Duration::from_secs(600);
/// Settings of the server. A text that was deleted or expired for twice the erasure time must not be in a file.
const SETTINGS: [&str; 4] = ["--erase-within", "2m", "--redis-listen", "127.0.0.1:0"];
const ERASED_AFTER: Duration = Duration::from_secs(240);

/// Figures of one period.
struct Sample {
    /// Seconds since the start.
    at_s: f64,
    resident_mb: f64,
    descriptors: f64,
    disk_mb: f64,
    per_second: f64,
    /// Latency of all requests, measured from their due times, in milliseconds.
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// Whether the server was started in this period.
    restarted: bool,
}

/// Name, unit and value of a quantity that should not change.
type Quantity = (&'static str, &'static str, fn(&Sample) -> f64);
const QUANTITIES: [Quantity; 5] = [
    ("Resident memory", "MB", |sample| sample.resident_mb),
    ("Disk", "MB", |sample| sample.disk_mb),
    ("Descriptors", "", |sample| sample.descriptors),
    ("p50", "ms", |sample| sample.p50_ms),
    ("p99", "ms", |sample| sample.p99_ms),
];

/// Runs for `minutes`, and writes `soak.csv` and `soak.html` into `out`.
pub(crate) async fn measure(
    plan: &Plan,
    minutes: u64,
    out: Option<&Path>,
    report: &mut Report,
) -> anyhow::Result<()> {
    println!("soak: about {} minutes", minutes + 2);
    let data = tempfile::tempdir()?;
    let mut server = Server::roost(&plan.roost, data.path(), &SETTINGS).await?;
    server.batch(register_lines("s", USERS)).await?;
    let follows = (0..USERS).flat_map(|user| (1..=FOLLOWS).map(move |n| (user, user + n * n * 13)));
    server.batch(follows.map(|(user, other)| follow_line(user, other % USERS))).await?;

    let (address, addresses) = watch::channel(Some(clients::Addresses::of(&server)?));
    let clients = Arc::new(Clients::new(USERS));
    let capacity = clients.run(&addresses, CAPACITY, None, || async { Ok(()) }).await?;
    report.add("soak: capacity of the mixed load", "1/s", vec![capacity], None);

    let (time, mut samples) = (Duration::from_secs(60 * minutes), Vec::new());
    let process = async || {
        let (start, mut restart_at, mut restarts) = (Instant::now(), RESTART, 0);
        clients.take_waits();
        while start.elapsed() + SAMPLE < time {
            tokio::time::sleep(SAMPLE).await;
            samples.push(sample(&server, data.path(), &clients, start)?);
            if start.elapsed() > restart_at {
                address.send_replace(None);
                end(&mut server, restarts % 2 == 0).await?;
                server = Server::roost(&plan.roost, data.path(), &SETTINGS).await?;
                address.send_replace(Some(clients::Addresses::of(&server)?));
                restart_at += RESTART;
                restarts += 1;
                samples.last_mut().into_iter().for_each(|sample| sample.restarted = true);
            }
        }
        Ok(())
    };
    let rate = clients.run(&addresses, time, Some(capacity / 2.0), process).await?;
    end(&mut server, false).await?;
    report.add("soak: requests", "1/s", vec![rate], None);
    report.add("soak: restarts", "", vec![count(&samples)], None);
    report.add("soak: requests lost or refused in restarts", "", vec![clients.failed()], None);
    compare(&samples, report);
    for (kind, tokens) in clients.gone(ERASED_AFTER) {
        let found = traces::count(data.path(), &tokens)?;
        let name = format!("soak: {kind} still on disk, of {}", tokens.len());
        report.add(name, "", vec![found as f64], Some(Target::AtMost(0.0)));
    }
    out.map_or(Ok(()), |out| plots::save(out, &samples))
}

fn count(samples: &[Sample]) -> f64 {
    samples.iter().filter(|sample| sample.restarted).count() as f64
}

/// Ends the server: kills it, or stops it as an operator does.
async fn end(server: &mut Server, kill: bool) -> anyhow::Result<()> {
    if !kill {
        let process = server.child.id().and_then(|id| i32::try_from(id).ok());
        let process = process.and_then(rustix::process::Pid::from_raw);
        let process = process.context("the server has ended")?;
        rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        server.child.wait().await?;
    }
    // This does nothing if the process has ended.
    server.child.kill().await.or(anyhow::Ok(()))
}

fn sample(
    server: &Server,
    data: &Path,
    clients: &Clients,
    start: Instant,
) -> anyhow::Result<Sample> {
    let process = server.child.id().context("the server has ended")?;
    let waits = clients.take_waits();
    let ms = |quantile| waits.value_at_quantile(quantile) as f64 / 1e6;
    Ok(Sample {
        at_s: start.elapsed().as_secs_f64(),
        resident_mb: server.memory_mb()?.0,
        descriptors: std::fs::read_dir(format!("/proc/{process}/fd"))?.count() as f64,
        disk_mb: crate::scale::disk_mb(data)?,
        per_second: waits.len() as f64 / SAMPLE.as_secs_f64(),
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        max_ms: waits.max() as f64 / 1e6,
        restarted: false,
    })
}

/// Compares the median of the last quarter with the median of the second quarter; the first quarter is for warm-up.
fn compare(samples: &[Sample], report: &mut Report) {
    let quarter = samples.len() / 4;
    let median = |from: usize, value: fn(&Sample) -> f64| {
        let values: Vec<f64> = samples.iter().skip(from).take(quarter).map(value).collect();
        stats::median(&values).unwrap_or(f64::NAN)
    };
    for (name, unit, value) in QUANTITIES {
        let (second, last) = (median(quarter, value), median(3 * quarter, value));
        report.add(format!("soak: {name}, second quarter"), unit, vec![second], None);
        report.add(format!("soak: {name}, last quarter"), unit, vec![last], None);
        let ratio = Some(Target::AtMost(1.1));
        report.add(format!("soak: {name}, last / second"), "ratio", vec![last / second], ratio);
    }
}

/// Kinds of requests, as named on the page.
pub(crate) fn kinds() -> String {
    KINDS.map(|(name, share)| format!("{share} % {name}")).join(", ")
}
