//! Memory of a large server, and the time from its start to its first response. It has 100,000 accounts, 12 million
//! follows, 1 million posts, and 3 million favourites and boosts, all imported. Each user has read the home timeline.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use sim::client::Connection;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::{World, rich_text, test_tokens};
use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::Server;
use crate::scale::disk_mb;

const USERS: u32 = 100_000;
const FOLLOWING: u32 = 120;
const POSTS: u64 = 1_000_000;
const CONNECTIONS: usize = 16;
/// Time of the first post, in milliseconds since 2024; it is in 2026.
const FIRST_MS: u64 = 70_000_000_000;
/// Interval between two posts, in milliseconds. The reactions to a post are in this interval.
const STEP_MS: u64 = 10;
const HOME: &str = "/api/v1/timelines/home?limit=20";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, data) = (folder.path().join("import.ndjson"), folder.path().join("data"));
    write(&file)?;
    let start = Instant::now();
    let mut import = Command::new(&plan.roost);
    import.arg("import").arg(&file).arg("--data").arg(&data).kill_on_drop(true);
    let output = import.output().await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "import: {errors}");
    report.add("import of the large server", "s", vec![start.elapsed().as_secs_f64()], None);
    std::fs::remove_file(&file)?;

    let server = Server::roost(&plan.roost, &data, &[]).await?;
    let start = Instant::now();
    let tokens = test_tokens(&plan.roost, &data, USERS).await?;
    let took = start.elapsed().as_secs_f64();
    report.add("100,000 accounts with tokens", "s", vec![took], None);
    let mut world = World { server, tokens };
    let start = Instant::now();
    read_all(&world).await?;
    let took = start.elapsed().as_secs_f64();
    report.add("the first home of each of 100,000 users", "s", vec![took], None);
    let memory = vec![world.server.memory_mb()?.0];
    report.add("memory, all timelines active", "MB", memory, Some(Target::AtMost(1_500.0)));
    report.add("disk", "MB", vec![disk_mb(&data)?], None);
    let (mut answers, mut memory) = (vec![], vec![]);
    for run in 0..plan.runs {
        world.server.child.kill().await?;
        let start = Instant::now();
        world.server = Server::roost(&plan.roost, &data, &[]).await?;
        world.server.ask(&world.get(run * 7_919 % USERS as usize, HOME)?).await?;
        answers.push(start.elapsed().as_secs_f64());
        memory.push(world.server.memory_mb()?.0);
    }
    let name = "kill -9 to the first home for an app";
    report.add(name, "s", answers, Some(Target::AtMost(5.0)));
    report.add("memory after that", "MB", memory, None);
    Ok(())
}

/// Reads the home of each user once.
async fn read_all(world: &World) -> anyhow::Result<()> {
    let mut tasks = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let mine = (0..USERS as usize).skip(connection).step_by(CONNECTIONS);
        let requests = world.gets(mine, HOME)?;
        let address = world.server.address;
        tasks.spawn(async move {
            let mut connected = Connection::connect(address).await?;
            for request in requests {
                let sent = tokio::time::timeout(Duration::from_secs(60), connected.send(&request));
                let response = sent.await??;
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

/// Writes the file for the import.
fn write(path: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(out, "{{\"export\":{{\"format\":1}}}}")?;
    for user in 0..USERS {
        let handle = sim::texts::handle(1, user);
        let name = sim::texts::display_name(1, user);
        writeln!(out, "{{\"user\":{{\"handle\":\"{handle}\",\"name\":\"{name}\"}}}}")?;
    }
    for user in 0..USERS {
        let others = (1..=FOLLOWING).map(|step| ((user + step * 829) % USERS).to_string());
        let others = others.collect::<Vec<_>>().join(",");
        writeln!(
            out,
            "{{\"relation\":{{\"kind\":\"follow\",\"user\":{user},\"users\":[{others}]}}}}"
        )?;
    }
    for n in 0..POSTS {
        write_post(n, &mut out)?;
    }
    writeln!(out, "{{\"end\":{{}}}}")?;
    Ok(out.flush()?)
}

/// Writes a post with two favourites and a boost.
fn write_post(n: u64, out: &mut impl Write) -> anyhow::Result<()> {
    let users = u64::from(USERS);
    let id = |step: u64| (FIRST_MS + n * STEP_MS + step) << 22;
    let (author, mentioned) = (n * 7 % users, n * 13 % users);
    let text = rich_text(n, &sim::texts::handle(1, mentioned as u32));
    let post = id(0);
    writeln!(out, "{{\"post\":{{\"id\":\"{post}\",\"author\":{author},\"text\":\"{text}\"}}}}")?;
    for (step, kind) in (1..).zip(["favourite", "favourite", "boost"]) {
        let (user, id) = ((author + step * 31) % users, id(step));
        writeln!(out, "{{\"reaction\":{{\"user\":{user},\"kind\":\"{kind}\",\"id\":\"{id}\"}}}}")?;
    }
    Ok(())
}
