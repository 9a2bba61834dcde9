//! How figures grow with the number of users: loading, memory, disk, capacity, and how soon a killed server
//! answers again and gathers home timelines that are not in memory.
//!
//! A power law is fitted to each figure over the sizes: an exponent of 1 means that it grows as the users do.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use charts::units::Format;
use hdrhistogram::Histogram;
use sim::client::Connection;
use sim::population::Making;
use sim::workload::Load;
use sim::{ApiOptions, Drive, SimulateOptions, simulate};
use stats::Interval;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{KEY, Server, post_line};

/// Posts of a user, on average.
const POSTS_EACH: u64 = 10;
/// Connections that read cold homes.
const READERS: u32 = 16;
/// Posts between a checkpoint and a kill: what a start replays.
const POSTS_REPLAYED: u64 = 20_000;
/// The largest size, for which there are absolute targets.
const MILLION: u32 = 1_000_000;

/// What was measured for one number of users, for the fits.
struct Size {
    users: u32,
    figures: Vec<(&'static str, f64)>,
}

/// Measures each size. Writes a page with a plot of each figure over the sizes into `out`.
pub(crate) async fn measure(
    plan: &Plan,
    sizes: &[u32],
    out: Option<&Path>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut measured = Vec::new();
    for users in sizes {
        measured.push(measure_size(plan, *users, report).await?);
    }
    let Some(first) = measured.first() else { return Ok(()) };
    let mut plots = Vec::new();
    for (at, (name, _)) in first.figures.iter().enumerate() {
        let points: Vec<(f64, f64)> = measured
            .iter()
            .filter_map(|size| Some((f64::from(size.users), size.figures.get(at)?.1)))
            .filter(|(_, value)| *value > 0.0)
            .collect();
        if points.len() > 1 {
            let law = PowerLaw::of(&points);
            report.add(format!("exponent of: {name}"), "", vec![law.exponent], None);
            plots.extend(plot(name, &points, &law));
        }
    }
    if let Some(out) = out.filter(|_| !plots.is_empty()) {
        std::fs::create_dir_all(out)?;
        let page = charts::page::document(
            "roost bench",
            "Growth with the number of users",
            &charts::rows(&plots),
        );
        std::fs::write(out.join("growth.html"), page)?;
    }
    Ok(())
}

/// A figure over the number of users, with the law that was fitted.
fn plot(name: &str, points: &[(f64, f64)], law: &PowerLaw) -> Option<charts::Figure> {
    let exact = |value| Interval { estimate: value, low: value, high: value };
    let points: Vec<_> = points.iter().map(|(users, value)| (*users, exact(*value))).collect();
    let fit = |users: f64| law.at(users);
    let label = format!("users^{:.2}", law.exponent);
    let series = charts::Series { label: &label, points: &points, fit: Some(&fit) };
    let names = charts::Names {
        id: &name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
        title: name,
        unit: "over users",
    };
    charts::power_law(names, &[series], Format::NUMBER, Format::NUMBER)
}

async fn measure_size(plan: &Plan, users: u32, report: &mut Report) -> anyhow::Result<Size> {
    let mut size = Size { users, figures: Vec::new() };
    let is_million = users == MILLION;
    let target = |target| is_million.then_some(target);
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &[]).await?;
    let process = roost.child.id().context("the server has ended")?;
    let cpu = || testkit::proc::processor_seconds(process).unwrap_or(f64::NAN);

    let summary = load(&roost, users).await?;
    let mut add = |name, unit, samples: Vec<f64>, target| {
        size.figures.push((name, stats::median(&samples).unwrap_or(f64::NAN)));
        report.add(format!("{users} users: {name}"), unit, samples, target);
    };
    add("loading", "s", vec![summary.load_s], target(Target::AtMost(150.0)));
    add("processor time of the server while loading", "s", vec![cpu()], None);
    add("peak memory while loading", "MB", vec![roost.memory_mb()?.1], target(Target::AtMost(2e3)));
    let start = Instant::now();
    let posts = POSTS_EACH * u64::from(users);
    roost.batch((0..posts).map(|n| post_line((n * 7 % u64::from(users)) as u32, n))).await?;
    add("ten posts of each user by batch", "s", vec![start.elapsed().as_secs_f64()], None);
    add("memory with these posts", "MB", vec![roost.memory_mb()?.0], target(Target::AtMost(2e3)));
    add("disk", "MB", vec![disk_mb(data.path())?], None);
    let [mean, low, high] = capacity(plan, &roost, users, data.path()).await?;
    add("capacity", "1/s", vec![low, mean, high], target(Target::AtLeast(25e3)));
    add("memory after the search", "MB", vec![roost.memory_mb()?.0], target(Target::AtMost(2e3)));

    let (mut answers, mut rates, mut p99s) = (Vec::new(), Vec::new(), Vec::new());
    let mut running = roost;
    for run in 0..plan.runs {
        running.batch((0..POSTS_REPLAYED).map(|n| post_line(n as u32 % users, n))).await?;
        running.child.kill().await?;
        let start = Instant::now();
        running = Server::roost(&plan.roost, data.path(), &[]).await?;
        running.ask(&running.get("/v1/users/5/timeline")).await?;
        answers.push(start.elapsed().as_secs_f64());
        // Each run reads other users, half of them as fast as it can, and half of them at half that rate.
        let share = users / (2 * plan.runs as u32 + 2);
        let first = 2 * run as u32 * share;
        let fast = cold_homes(&running, spread(first, share, users), plan.seconds, None).await?;
        rates.push(fast.per_second);
        let second = spread(first + share, share, users);
        let half = Some(fast.per_second / 2.0);
        let slow = cold_homes(&running, second, plan.seconds, half).await?;
        p99s.push(slow.latency.value_at_quantile(0.99) as f64 / 1e6);
    }
    add("kill -9 to the first home read", "s", answers, target(Target::AtMost(2.0)));
    add("cold homes after that", "1/s", rates, target(Target::AtLeast(20e3)));
    add("p99 of cold homes at half that rate", "ms", p99s, target(Target::AtMost(100.0)));
    Ok(size)
}

/// Loads the population of the simulator.
async fn load(roost: &Server, users: u32) -> anyhow::Result<sim::Summary> {
    let options = SimulateOptions {
        target: roost.address.into(),
        api: ApiOptions::Roost,
        key: Some(KEY.into()),
        making: Making::of(users, 1),
        feed: Some(Load::Light),
        stories: None,
        drawings: None,
        graph: None,
        keys: None,
        loaded: false,
    };
    let drive = Drive::new(Duration::from_secs(1));
    let (_cancel, never) = tokio::sync::watch::channel(false);
    let summary = simulate(options, &drive, &mut std::io::sink(), &mut [], never).await?;
    anyhow::ensure!(summary.error_count() == 0, "{} errors", summary.error_count());
    Ok(summary)
}

/// The capacity in requests per second, with its interval: mean, low, high.
async fn capacity(
    plan: &Plan,
    roost: &Server,
    users: u32,
    folder: &Path,
) -> anyhow::Result<[f64; 3]> {
    let json = folder.with_extension("capacity.json");
    let mut command = Command::new(&plan.roost);
    command.args(["simulate", "--find-capacity", "--loaded", "--plain", "--users"]);
    command.arg(users.to_string()).arg("--target").arg(format!("http://{}", roost.address));
    command.args(["--duration", &format!("{}s", plan.seconds.max(5))]);
    command.arg("--json").arg(&json).env("ROOST_TARGET_KEY", KEY).kill_on_drop(true);
    let output = command.output().await?;
    let text = std::fs::read_to_string(&json);
    let text = text.with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    std::fs::remove_file(&json)?;
    let found: serde_json::Value = serde_json::from_str(&text)?;
    println!("    capacity with {users} users: {:?}", found.get("outcome"));
    let per_s = |name: &str| {
        let value = found.pointer(&format!("/per_s/{name}")).and_then(serde_json::Value::as_f64);
        value.context("no capacity was found")
    };
    Ok([per_s("mean")?, per_s("low")?, per_s("high")?])
}

/// Users `first` to `first + count` of all in an order in which neighbours are far apart: rows of users with
/// similar numbers are in the same block of the store.
fn spread(
    first: u32,
    count: u32,
    users: u32,
) -> impl Iterator<Item = u32> + Clone + Send + 'static {
    const STRIDE: u64 = 7_919;
    (first..first + count).map(move |nth| (u64::from(nth) * STRIDE % u64::from(users)) as u32)
}

struct ColdHomes {
    per_second: f64,
    /// In nanoseconds, from when a request was due.
    latency: Histogram<u64>,
}

/// Reads the home of each of `users` once, as fast as possible or at a rate, for `seconds` at most.
async fn cold_homes(
    roost: &Server,
    users: impl Iterator<Item = u32> + Clone + Send + 'static,
    seconds: u64,
    rate: Option<f64>,
) -> anyhow::Result<ColdHomes> {
    let (start, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut tasks = JoinSet::new();
    for reader in 0..READERS {
        let (address, requests) = (roost.address, roost.requests());
        let users = users.clone().skip(reader as usize).step_by(READERS as usize);
        tasks.spawn(async move {
            let mut connection = Connection::connect(address).await?;
            let (mut request, mut latency) = (Vec::new(), Histogram::<u64>::new(3)?);
            for (number, user) in users.enumerate() {
                let due = rate.map_or_else(Instant::now, |rate| {
                    let nth = number as f64 * f64::from(READERS) + f64::from(reader);
                    start + Duration::from_secs_f64(nth / rate)
                });
                if due - start >= time {
                    break;
                }
                // The clock of the runtime ticks every millisecond: a sleep that is over at once takes one.
                if due > Instant::now() {
                    tokio::time::sleep_until(due.into()).await;
                }
                request.clear();
                requests.get(&format!("/v1/users/{user}/timeline"), &mut request);
                let response = connection.send(&request).await?;
                anyhow::ensure!(response.is_success(), "{}", response.status);
                latency.record(due.elapsed().as_nanos() as u64)?;
            }
            anyhow::Ok(latency)
        });
    }
    let mut latency = Histogram::<u64>::new(3)?;
    while let Some(done) = tasks.join_next().await {
        latency.add(done??)?;
    }
    Ok(ColdHomes { per_second: latency.len() as f64 / start.elapsed().as_secs_f64(), latency })
}

/// `y = factor * x^exponent` through points, by least squares of the logarithms; without intervals, because most
/// figures have one sample for each size.
struct PowerLaw {
    factor: f64,
    exponent: f64,
}

impl PowerLaw {
    fn of(points: &[(f64, f64)]) -> Self {
        let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
        let mean =
            |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let slope: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let exponent = slope / logs.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
        Self { factor: (y - exponent * x).exp(), exponent }
    }

    fn at(&self, x: f64) -> f64 {
        self.factor * x.powf(self.exponent)
    }
}

/// Bytes of all files below a directory, in MB. A file may be removed meanwhile.
pub(crate) fn disk_mb(directory: &Path) -> anyhow::Result<f64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        bytes +=
            if metadata.is_dir() { (disk_mb(&entry.path())? * 1e6) as u64 } else { metadata.len() };
    }
    Ok(bytes as f64 / 1e6)
}
