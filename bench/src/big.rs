//! 100,000 users, 12 million follows, 1 million posts: how long they take to load, what they cost
//! with every user active, and how soon a killed server serves again.

use std::time::{Duration, Instant};

use sim::population::Making;
use sim::workload::Load;
use sim::{Drive, SimulateOptions, simulate};
use tokio::task::JoinSet;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{KEY, Server, post_line};

const USERS: u32 = 100_000;
const POSTS: u64 = 1_000_000;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &[]).await?;
    let options = SimulateOptions {
        target: roost.address.into(),
        key: Some(KEY.into()),
        making: Making::of(USERS, 1),
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
    let target = Some(Target::AtMost(60.0));
    report.add("loading 100,000 users, 12 million follows", "s", vec![summary.load_s], target);
    report.add("peak memory while loading", "MB", vec![roost.memory_mb()?.1], None);
    report.add("memory after loading", "MB", vec![roost.memory_mb()?.0], None);
    let start = Instant::now();
    roost.batch((0..POSTS).map(|n| post_line((n * 7 % u64::from(USERS)) as u32, n))).await?;
    report.add("1 million posts by batch", "s", vec![start.elapsed().as_secs_f64()], None);
    report.add("memory before any user reads", "MB", vec![roost.memory_mb()?.0], None);
    let start = Instant::now();
    read_everybody(&roost).await?;
    report.add("first read by every user", "s", vec![start.elapsed().as_secs_f64()], None);
    let memory = roost.memory_mb()?.0;
    let target = Some(Target::AtMost(1_000.0));
    report.add("memory with every user active", "MB", vec![memory], target);
    let metrics = roost.ask(&roost.get("/metrics")).await?;
    for line in String::from_utf8_lossy(&metrics).lines().filter(|line| line.contains("bytes")) {
        println!("    {line}");
    }
    report.add("disk", "MB", vec![disk_mb(data.path())?], None);

    let mut restarts = Vec::new();
    let mut running = roost;
    for _ in 0..plan.runs {
        running.batch((0..20_000).map(|n| post_line(n as u32 % USERS, n))).await?;
        running.child.kill().await?;
        let start = Instant::now();
        running = Server::roost(&plan.roost, data.path(), &[]).await?;
        running.ask(&running.get("/v1/users/5/timeline")).await?;
        restarts.push(start.elapsed().as_secs_f64());
    }
    report.add("kill -9 to the first home read", "s", restarts, Some(Target::AtMost(3.0)));
    Ok(())
}

async fn read_everybody(roost: &Server) -> anyhow::Result<()> {
    let mut tasks = JoinSet::new();
    for connection in 0..16 {
        let address = roost.address;
        let requests = roost.requests();
        tasks.spawn(async move {
            let mut connected = sim::client::Connection::connect(address).await?;
            let mut request = Vec::new();
            for user in (connection..USERS).step_by(16) {
                request.clear();
                requests.get(&format!("/v1/users/{user}/timeline"), &mut request);
                let response = connected.send(&request).await?;
                anyhow::ensure!(response.is_success(), "{}", response.status);
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

fn disk_mb(directory: &std::path::Path) -> anyhow::Result<f64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes +=
            if metadata.is_dir() { (disk_mb(&entry.path())? * 1e6) as u64 } else { metadata.len() };
    }
    Ok(bytes as f64 / 1e6)
}
