//! Buckets over the Redis protocol: `redis-benchmark` runs alternately against roost and against a redis-server with
//! the same durability. Also compares the memory of a million keys in both.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{memory_mb, started};

const CLIENTS: &str = "100";
/// Number of requests for each second of a run.
const PLAIN_PER_SECOND: u64 = 75_000;
const PIPELINED_PER_SECOND: u64 = 400_000;
const KEYS: u32 = 1_000_000;
/// Maximum memory of roost relative to that of the control.
const MEMORY_MAX: f64 = 1.2;

/// Load, with the target of the ratio between roost and the control.
struct Load {
    test: &'static str,
    pipeline: u64,
    target: f64,
}

/// Setting of each server that gives the same durability.
struct Policy {
    roost: &'static str,
    redis: &'static str,
    loads: &'static [Load],
}

const POLICIES: [Policy; 2] = [
    Policy {
        roost: "interval",
        redis: "everysec",
        loads: &[
            Load { test: "SET", pipeline: 1, target: 0.9 },
            Load { test: "SET", pipeline: 16, target: 1.0 },
            Load { test: "GET", pipeline: 1, target: 1.0 },
            Load { test: "GET", pipeline: 16, target: 1.2 },
        ],
    },
    Policy {
        roost: "always",
        redis: "always",
        loads: &[
            Load { test: "SET", pipeline: 1, target: 1.0 },
            Load { test: "SET", pipeline: 16, target: 1.2 },
        ],
    },
];

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    for (program, argument) in [("redis-server", "--version"), ("redis-benchmark", "--version")] {
        let known = Command::new(program).arg(argument).stdout(Stdio::null()).status();
        if !known.is_ok_and(|status| status.success()) {
            println!("SKIPPED: buckets against redis-server: install the package {program}");
            return Ok(());
        }
    }
    for policy in &POLICIES {
        let redis = Server::redis(policy.redis).await?;
        let roost = Server::roost(&plan.roost, policy.roost).await?;
        for load in policy.loads {
            compare(plan, policy, load, (&redis, &roost), report)?;
        }
    }
    let redis = Server::redis("everysec").await?.memory_of_keys().await?;
    let roost = Server::roost(&plan.roost, "interval").await?.memory_of_keys().await?;
    let name = |who: &str| format!("memory of {KEYS} keys of 16 bytes with 32 bytes: {who}");
    report.add(name("redis-server"), "MB", vec![redis], None);
    report.add(name("roost"), "MB", vec![roost], None);
    let ratio = vec![roost / redis];
    report.add(name("roost / redis-server"), "ratio", ratio, Some(Target::AtMost(MEMORY_MAX)));
    Ok(())
}

/// Runs one load alternately against both servers.
fn compare(
    plan: &Plan,
    policy: &Policy,
    load: &Load,
    (redis, roost): (&Server, &Server),
    report: &mut Report,
) -> anyhow::Result<()> {
    let Load { test, pipeline, target } = load;
    let (mut rates, mut control, mut ratios) = (vec![], vec![], vec![]);
    let (mut p99, mut control_p99) = (vec![], vec![]);
    for run in 0..=plan.runs {
        let bare = redis.driven(plan, load)?;
        let driven = roost.driven(plan, load)?;
        // The first round warms up.
        if run > 0 {
            ratios.push(driven.per_second / bare.per_second);
            rates.push(driven.per_second);
            control.push(bare.per_second);
            p99.push(driven.p99_ms);
            control_p99.push(bare.p99_ms);
        }
    }
    let name = format!("{test}, P={pipeline}, {}", policy.roost);
    report.add(
        format!("control: redis-server {test}, P={pipeline}, {}", policy.redis),
        "1/s",
        control,
        None,
    );
    report.add("the same, p99 at that rate", "ms", control_p99, None);
    report.add(format!("buckets: {name}"), "1/s", rates, None);
    report.add("the same, p99 at that rate", "ms", p99, None);
    report.add(format!("{name} / control"), "ratio", ratios, Some(Target::AtLeast(*target)));
    Ok(())
}

/// Server in its own process and directory. It is killed on drop.
struct Server {
    address: SocketAddr,
    child: tokio::process::Child,
    _data: tempfile::TempDir,
}

struct Driven {
    per_second: f64,
    p99_ms: f64,
}

impl Server {
    async fn redis(fsync: &str) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = tokio::process::Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--appendonly", "yes", "--appendfsync", fsync, "--save", ""]);
        command.arg("--dir").arg(data.path());
        let (child, _) = started(command, "Ready to accept connections").await?;
        Ok(Self { address, child, _data: data })
    }

    async fn roost(roost: &Path, durability: &str) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let mut command = tokio::process::Command::new(roost);
        command.args(["serve", "--open", "--listen=127.0.0.1:0", "--redis-listen=127.0.0.1:0"]);
        command.args(["--durability", durability, "--data"]).arg(data.path());
        command.env("ROOST_LOG", "warn");
        let (child, lines) = started(command, "roost serves redis://").await?;
        let address = lines.last().and_then(|line| Some(line.split_once("redis://")?.1));
        let address = address.context("no address")?;
        Ok(Self { address: address.parse()?, child, _data: data })
    }

    fn driven(&self, plan: &Plan, load: &Load) -> anyhow::Result<Driven> {
        let per_second = if load.pipeline == 1 { PLAIN_PER_SECOND } else { PIPELINED_PER_SECOND };
        let output = Command::new("redis-benchmark")
            .args(["-h", "127.0.0.1", "-p", &self.address.port().to_string(), "--csv"])
            .args(["-c", CLIENTS, "-d", "32", "-r", "100000", "-t", &load.test.to_lowercase()])
            .args(["-P", &load.pipeline.to_string()])
            .args(["-n", &(per_second * plan.seconds).to_string()])
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        // The columns are "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95...","p99...","max...".
        let line = text.lines().last().context("redis-benchmark prints nothing")?;
        let mut columns = line.split(',').map(|column| column.trim_matches('"').parse::<f64>());
        let (Some(Ok(per_second)), Some(Ok(p99_ms))) = (columns.nth(1), columns.nth(4)) else {
            anyhow::bail!("not an answer of redis-benchmark: {line}");
        };
        Ok(Driven { per_second, p99_ms })
    }

    /// Resident memory in MB after a million keys have been set and the server is idle.
    async fn memory_of_keys(mut self) -> anyhow::Result<f64> {
        let mut client = Command::new("redis-cli")
            .args(["-p", &self.address.port().to_string(), "--pipe"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let mut input = std::io::BufWriter::new(client.stdin.take().context("no input")?);
        for number in 0..KEYS {
            write!(input, "*3\r\n$3\r\nSET\r\n$16\r\nkey:{number:012}\r\n$32\r\n{number:032}\r\n")?;
        }
        drop(input.into_inner()?);
        anyhow::ensure!(client.wait()?.success(), "redis-cli --pipe failed");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let (resident, _) = memory_mb(self.child.id().context("the server has ended")?)?;
        self.child.kill().await?;
        Ok(resident)
    }
}
