//! Latency of a client (the stranger) while another client floods one route. It is compared with the latency while an
//! unrelated process uses as much processor time. Both share the processors with the stranger, so the ratio shows the
//! effect of the server.

mod flood;
mod floods;
pub(crate) mod stranger;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

pub(crate) use flood::{Flooder, Spinner};
pub(crate) use floods::Flood;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{KEY, Server, follow_line, post_line, register_lines};
use stranger::{KINDS, PACE, Paced, Waits};

/// Number of connections of the flooding client.
const CONNECTIONS: usize = 4;
/// Maximum ratio of the stranger's p99 during a flood to its p99 with the control.
const RATIO_MAX: f64 = 1.5;
/// Number of follows, and of friends, of each user.
const FOLLOWS: u32 = 20;
/// Processor use below which a server is idle, as a share of one processor.
const REST_CORES: f64 = 0.1;
/// Maximum time to wait until a server is idle.
const REST_PATIENCE: Duration = Duration::from_secs(120);
/// Interval over which the use of processors is measured.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) async fn measure(
    plan: &Plan,
    wanted: &[Flood],
    report: &mut Report,
) -> anyhow::Result<()> {
    let wanted = |flood: &Flood| wanted.is_empty() || wanted.contains(flood);
    for cold in [false, true] {
        let floods: Vec<_> = Flood::value_variants().iter().copied().filter(wanted).collect();
        let floods: Vec<_> = floods.into_iter().filter(|flood| flood.is_cold() == cold).collect();
        if floods.is_empty() {
            continue;
        }
        let data = tempfile::tempdir()?;
        let flooded = Flooded::start(plan, data.path(), cold).await?;
        for flood in floods {
            flooded.measure(plan, flood, report).await?;
        }
    }
    Ok(())
}

/// Server that is flooded.
struct Flooded {
    server: Server,
    redis: SocketAddr,
}

/// Results of one run of a flood.
struct Run {
    alone: Waits,
    control: Waits,
    flood: Waits,
    cores: f64,
}

impl Flooded {
    async fn start(plan: &Plan, data: &Path, cold: bool) -> anyhow::Result<Self> {
        let mut settings = vec!["--durability", "interval", "--redis-listen", "127.0.0.1:0"];
        if cold {
            settings.extend(["--bucket-memory", "8MiB"]);
        }
        let server = Server::roost(&plan.roost, data, &settings).await?;
        let redis = server.redis.context("it listens to Redis clients")?;
        let flooded = Self { server, redis };
        flooded.prepare().await?;
        Ok(flooded)
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        let (server, users) = (&self.server, floods::USERS);
        server.batch(register_lines("u", users)).await?;
        let pairs =
            (0..users).flat_map(|user| (1..=FOLLOWS).map(move |n| (user, (user + n) % users)));
        server.batch(pairs.clone().map(|(user, other)| follow_line(user, other))).await?;
        let befriend =
            |(user, other)| format!("{{\"op\":\"befriend\",\"user\":{user},\"other\":{other}}}\n");
        server.batch(pairs.map(befriend)).await?;
        server.batch((0..10 * users).map(|n| post_line(n % users, n.into()))).await?;
        let story =
            |user| format!("{{\"op\":\"post_story\",\"user\":{user},\"text\":\"good day\"}}\n");
        server.batch((0..users).map(story)).await?;
        let mut stream = TcpStream::connect(self.redis).await?;
        let mut bytes = Vec::new();
        floods::command(&mut bytes, &[b"AUTH", KEY.as_bytes()]);
        let keys: Vec<_> = (0..floods::KEYS).map(|n| format!("k{n}")).collect();
        let value = [b'v'; floods::VALUE_BYTES];
        let parts = keys.chunks(10_000);
        let replies = "+OK\r\n".len() * (1 + parts.len());
        for part in parts {
            floods::of_all(&mut bytes, b"MSET", part, Some(&value));
        }
        stream.write_all(&bytes).await?;
        let mut answers = vec![0; replies];
        stream.read_exact(&mut answers).await?;
        anyhow::ensure!(!answers.contains(&b'-'), "keys were refused");
        Ok(())
    }

    async fn measure(&self, plan: &Plan, flood: Flood, report: &mut Report) -> anyhow::Result<()> {
        let time = Duration::from_secs(plan.seconds);
        // Run the flood first, because the control must use as much processor time.
        let mut cores = self.flooded(flood, time).await?.1;
        let mut runs = Vec::new();
        for _ in 0..plan.runs {
            rest(&self.server).await?;
            let alone = self.strangers(time)?;
            let mut spinner = this(&["spin", "--share", &(cores / 2.0).to_string()])?;
            let control = self.strangers(time)?;
            spinner.kill().await?;
            let (waits, taken) = self.flooded(flood, time).await?;
            cores = taken;
            runs.push(Run { alone, control, flood: waits, cores });
        }
        add(flood, &runs, report);
        Ok(())
    }

    fn strangers(&self, time: Duration) -> anyhow::Result<Waits> {
        let time = Paced { time, pace: PACE };
        stranger::measure(self.server.address, self.redis, time)
    }

    /// Measures the stranger during a flood, and the processors used by server and client together.
    async fn flooded(&self, flood: Flood, time: Duration) -> anyhow::Result<(Waits, f64)> {
        let address = if flood.is_http() { self.server.address } else { self.redis };
        let (address, connections) = (address.to_string(), CONNECTIONS.to_string());
        let arguments = ["flood", &flood.name(), "--address", &address, "--connections"];
        let mut flooder = this(&[&arguments[..], &[&connections]].concat())?;
        // Wait until the flood has begun.
        tokio::time::sleep(LOOK).await;
        let pids = [self.server.child.id(), flooder.id()];
        let seconds = || pids.iter().flatten().map(|pid| processor_seconds(*pid)).sum::<f64>();
        let (start, before) = (Instant::now(), seconds());
        let waits = self.strangers(time)?;
        let cores = (seconds() - before) / start.elapsed().as_secs_f64();
        flooder.kill().await?;
        rest(&self.server).await?;
        Ok((waits, cores))
    }
}

/// Waits until a server is idle, or until the maximum time. Returns how long it waited.
pub(crate) async fn rest(server: &Server) -> anyhow::Result<Duration> {
    let pid = server.child.id().context("the server has ended")?;
    let start = Instant::now();
    loop {
        let before = processor_seconds(pid);
        tokio::time::sleep(LOOK).await;
        let cores = (processor_seconds(pid) - before) / LOOK.as_secs_f64();
        if cores < REST_CORES || start.elapsed() > REST_PATIENCE {
            return Ok(start.elapsed());
        }
    }
}

/// Starts this program with other arguments. The process is killed on drop.
fn this(arguments: &[&str]) -> anyhow::Result<Child> {
    Ok(Command::new(std::env::current_exe()?).args(arguments).kill_on_drop(true).spawn()?)
}

/// Processor time used by a process, in seconds; 0 if it has ended.
fn processor_seconds(pid: u32) -> f64 {
    testkit::proc::processor_seconds(pid).unwrap_or(0.0)
}

fn add(flood: Flood, runs: &[Run], report: &mut Report) {
    let flood = flood.name();
    let of = |pick: &dyn Fn(&Run) -> f64| runs.iter().map(pick).collect::<Vec<_>>();
    report.add(format!("{flood}: processors taken"), "cores", of(&|run| run.cores), None);
    let refused = of(&|run| run.flood.refused as f64);
    report.add(format!("{flood}: strangers refused"), "count", refused, None);
    for (at, kind) in KINDS.iter().enumerate() {
        let ms = |waits: &Waits, quantile: f64| {
            let latency = waits.latency.get(at);
            latency.map_or(f64::NAN, |latency| latency.value_at_quantile(quantile) as f64 / 1e6)
        };
        for (quantile, name) in [(0.5, "p50"), (0.99, "p99")] {
            let name = format!("{flood}: {kind} {name}");
            report.add(format!("{name} alone"), "ms", of(&|run| ms(&run.alone, quantile)), None);
            let control = of(&|run| ms(&run.control, quantile));
            report.add(format!("{name} control"), "ms", control, None);
            report.add(name.clone(), "ms", of(&|run| ms(&run.flood, quantile)), None);
            let ratio = of(&|run| ms(&run.flood, quantile) / ms(&run.control, quantile));
            let target = Some(Target::AtMost(RATIO_MAX)).filter(|_| quantile > 0.5);
            report.add(format!("{name} / control"), "ratio", ratio, target);
        }
    }
}
