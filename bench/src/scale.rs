//! Growth of figures with the number of users: loading, memory, disk, capacity, and two durations after a kill: until
//! the server responds again, and of gathering home timelines that are not in memory.
//!
//! A power law is fitted to each figure over the sizes: an exponent of 1 means proportional growth.

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
use crate::fairness::stranger::{self, KINDS, Paced, Waits};
use crate::report::{Report, Target};
use crate::rig::{KEY, Server, post_line};

/// Average number of posts of a user.
const POSTS_EACH: u64 = 10;
/// Number of connections that read cold homes.
const READERS: u32 = 16;
/// Number of posts between a checkpoint and a kill. The next start replays them.
const POSTS_REPLAYED: u64 = 20_000;
/// Upper bound of the posts per second in a bulk load, from which the load's minimum duration is computed.
const POSTS_PER_S_MAX: u64 = 400_000;
/// Minimum time of the measurement of another client during the load.
const BESIDE_MIN: Duration = Duration::from_secs(10);
/// Interval between the requests of the other client, which is longer than a synced change.
const BESIDE_PACE: Duration = Duration::from_millis(40);
/// Maximum ratio of the other client's p99 to its p99 on an idle server.
const BUSY_MAX: f64 = 2.0;
/// The largest number of users. Absolute targets are for this number.
const MILLION: u32 = 1_000_000;

/// Figures for one number of users, for the fits.
struct Size {
    users: u32,
    figures: Vec<(String, f64)>,
}

impl Size {
    fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }
}

/// Measures for each number of users. Writes a page with a plot of each figure into `out`.
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
    let Some(largest) = measured.last() else { return Ok(()) };
    let mut plots = Vec::new();
    for (name, _) in &largest.figures {
        let points: Vec<(f64, f64)> = measured
            .iter()
            .filter_map(|size| Some((f64::from(size.users), size.figure(name)?)))
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

/// Plot of a figure over the number of users, with the fitted law.
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

/// Figures measured with one number of users.
struct Measured<'r> {
    size: Size,
    report: &'r mut Report,
}

impl Measured<'_> {
    /// Adds a figure. Its target counts only for a million users.
    fn add(&mut self, name: &str, unit: &'static str, samples: Vec<f64>, target: Option<Target>) {
        let users = self.size.users;
        let median = stats::median(&samples).unwrap_or(f64::NAN);
        self.size.figures.push((name.to_owned(), median));
        let target = target.filter(|_| users == MILLION);
        self.report.add(format!("{users} users: {name}"), unit, samples, target);
    }

    fn add_memory(&mut self, name: &str, roost: &Server) -> anyhow::Result<()> {
        let target = Some(Target::AtMost(2e3));
        self.add(name, "MB", vec![roost.memory_mb()?.0], target);
        Ok(())
    }

    async fn load(&mut self, roost: &Server) -> anyhow::Result<()> {
        let process = roost.child.id().context("the server has ended")?;
        let summary = load(roost, self.size.users).await?;
        let cpu = testkit::proc::processor_seconds(process).unwrap_or(f64::NAN);
        self.add("loading", "s", vec![summary.load_s], Some(Target::AtMost(150.0)));
        self.add("processor time of the server while loading", "s", vec![cpu], None);
        let peak = vec![roost.memory_mb()?.1];
        self.add("peak memory while loading", "MB", peak, Some(Target::AtMost(2e3)));
        Ok(())
    }

    /// Posts as all users, in batches. Measures another client during the posts, after them, and on an idle server.
    async fn post(&mut self, roost: &Server) -> anyhow::Result<()> {
        let (start, users) = (Instant::now(), u64::from(self.size.users));
        let posts = POSTS_EACH * users;
        let batch = roost.batch((0..posts).map(|n| post_line((n * 7 % users) as u32, n)));
        // With few users, the load ends too early for a measurement.
        let time = Duration::from_secs(posts / POSTS_PER_S_MAX);
        let time = if time < BESIDE_MIN { Duration::ZERO } else { time };
        let (loaded, beside) = tokio::join!(batch, waits(roost, time));
        loaded?;
        let took = vec![start.elapsed().as_secs_f64()];
        self.add("ten posts of each user by batch", "s", took, None);
        let after = waits(roost, time).await?;
        let rest = time + crate::fairness::rest(roost).await?;
        self.add("idle after these posts in", "s", vec![rest.as_secs_f64()], None);
        let idle = waits(roost, time).await?;
        let beside = [("while posts are loaded", beside?), ("right after", after)];
        for (at, kind) in KINDS.iter().enumerate().filter(|_| !time.is_zero()) {
            let p99 = |waits: &Waits| {
                let latency = waits.latency.get(at);
                latency.map_or(f64::NAN, |found| found.value_at_quantile(0.99) as f64)
            };
            for (when, waits) in &beside {
                let name = format!("{kind}: p99 {when}");
                self.add(&name, "ms", vec![p99(waits) / 1e6], None);
                let ratio = vec![p99(waits) / p99(&idle)];
                let target = Some(Target::AtMost(BUSY_MAX));
                self.add(&format!("{name} / idle"), "ratio", ratio, target);
            }
        }
        Ok(())
    }

    /// Kills the server repeatedly, and reads home timelines that are not in memory after each start.
    async fn kill(&mut self, plan: &Plan, data: &Path, roost: Server) -> anyhow::Result<()> {
        let (users, mut running) = (self.size.users, roost);
        let [mut answers, mut rates, mut later, mut p99s] = [const { Vec::new() }; 4];
        for run in 0..plan.runs {
            running.batch((0..POSTS_REPLAYED).map(|n| post_line(n as u32 % users, n))).await?;
            running.child.kill().await?;
            let start = Instant::now();
            running = Server::roost(&plan.roost, data, &[]).await?;
            running.ask(&running.get("/v1/users/5/timeline")).await?;
            answers.push(start.elapsed().as_secs_f64());
            // Each run reads the homes of other users. It reads a third as fast as it can, a third at half that rate,
            // and a third as fast as it can once the server has filled its caches.
            let share = users / (3 * plan.runs as u32 + 3);
            let part = |nth| spread((3 * run as u32 + nth) * share, share, users);
            let fast = cold_homes(&running, part(0), plan.seconds, None).await?;
            rates.push(fast.per_second);
            let half = Some(fast.per_second / 2.0);
            let slow = cold_homes(&running, part(1), plan.seconds, half).await?;
            p99s.push(slow.latency.value_at_quantile(0.99) as f64 / 1e6);
            crate::fairness::rest(&running).await?;
            later.push(cold_homes(&running, part(2), plan.seconds, None).await?.per_second);
        }
        let (at_most, at_least) = (|most| Some(Target::AtMost(most)), Some(Target::AtLeast(20e3)));
        self.add("kill -9 to the first home read", "s", answers, at_most(2.0));
        self.add("cold homes after that", "1/s", rates, at_least);
        self.add("p99 of cold homes at half that rate", "ms", p99s, at_most(100.0));
        self.add("cold homes once the server is idle", "1/s", later, at_least);
        Ok(())
    }
}

async fn measure_size(plan: &Plan, users: u32, report: &mut Report) -> anyhow::Result<Size> {
    let mut it = Measured { size: Size { users, figures: Vec::new() }, report };
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &["--redis-listen", "127.0.0.1:0"]).await?;
    it.load(&roost).await?;
    it.post(&roost).await?;
    it.add_memory("memory with these posts", &roost)?;
    it.add("disk", "MB", vec![disk_mb(data.path())?], None);
    // In the first search, homes are not in memory. In the second, those of many users are.
    for (name, target) in [
        ("capacity, nobody active before", None),
        ("capacity, after that search", Some(Target::AtLeast(25e3))),
    ] {
        let [mean, low, high] = capacity(plan, &roost, users, data.path()).await?;
        it.add(name, "1/s", vec![low, mean, high], target);
    }
    it.add_memory("memory after the searches", &roost)?;
    it.kill(plan, data.path(), roost).await?;
    Ok(it.size)
}

/// Latency of another client during `time`; empty if `time` is zero.
async fn waits(roost: &Server, time: Duration) -> anyhow::Result<Waits> {
    let redis = roost.redis.context("it listens to Redis clients")?;
    let address = roost.address;
    tokio::task::spawn_blocking(move || {
        stranger::prepare(redis)?;
        stranger::measure(address, redis, Paced { time, pace: BESIDE_PACE })
    })
    .await?
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

/// Capacity in requests per second, with its interval: mean, low, high.
async fn capacity(
    plan: &Plan,
    roost: &Server,
    users: u32,
    folder: &Path,
) -> anyhow::Result<[f64; 3]> {
    let json = folder.with_extension("capacity.json");
    let mut command = Command::new(&plan.roost);
    command.args(["simulate", "--find-capacity", "--loaded", "--plain", "--users"]);
    command.arg(users.to_string()).arg("--server").arg(format!("http://{}", roost.address));
    command.args(["--duration", &format!("{}s", plan.seconds.max(5))]);
    command.arg("--json").arg(&json).env("ROOST_SERVER_KEY", KEY).kill_on_drop(true);
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

/// Users `first` to `first + count` in an order in which neighbors have very different numbers, because the store keeps
/// rows of users with similar numbers in the same block.
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
    /// Latency in nanoseconds, measured from the due times.
    latency: Histogram<u64>,
}

/// Reads the home of each of `users` once, as fast as possible or at a fixed rate, and stops after `seconds`.
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
                // Sleep only if necessary: even the shortest sleep takes a tick of the runtime, a millisecond.
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

/// The law `y = factor * x^exponent` through points, by least squares of the logarithms. It has no intervals, because
/// most figures have only one sample for each number of users.
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

/// Size of all files below a directory, in MB. Files may be removed at the same time.
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
