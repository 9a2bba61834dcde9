//! The first read, over HTTP, by an inactive user who follows 500 users: right after the posts were written, and after
//! a restart with only the pages of the files in memory.

use std::time::Instant;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{Server, follow_line, post_line, register_lines};

const AUTHORS: u32 = 500;
const READERS: u32 = 200;
const POSTS: u64 = 50_000;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &[]).await?;
    roost.batch(register_lines("u", AUTHORS + READERS)).await?;
    let follows = (AUTHORS..AUTHORS + READERS)
        .flat_map(|reader| (0..AUTHORS).map(move |author| follow_line(reader, author)));
    roost.batch(follows).await?;
    roost.batch((0..POSTS).map(|n| post_line(n as u32 % AUTHORS, n))).await?;
    let half = AUTHORS + READERS / 2;
    let warm = first_reads(&roost, AUTHORS..half).await?;
    let most = Some(Target::AtMost(2.0));
    report.add("first read, 500 followees, authors read before", "ms", skip(&warm), most);
    stop(roost).await?;
    let roost = Server::roost(&plan.roost, data.path(), &[]).await?;
    let cold = first_reads(&roost, half..AUTHORS + READERS).await?;
    let very_first = cold.iter().take(1).copied().collect();
    report.add("the very first read after a restart", "ms", very_first, None);
    report.add("first read, 500 followees, after that", "ms", skip(&cold), most);
    Ok(())
}

/// Duration of each user's first read, in milliseconds.
async fn first_reads(roost: &Server, readers: std::ops::Range<u32>) -> anyhow::Result<Vec<f64>> {
    let mut connection = sim::client::Connection::connect(roost.address).await?;
    let mut times = Vec::new();
    for reader in readers {
        let request = roost.get(&format!("/v1/users/{reader}/timeline"));
        let start = Instant::now();
        let response = connection.send(&request).await?;
        anyhow::ensure!(response.is_success(), "{}", response.status);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

/// Samples except the first, which is for warm-up.
fn skip(samples: &[f64]) -> Vec<f64> {
    samples.iter().skip(1).copied().collect()
}

/// Shuts a server down with SIGTERM.
async fn stop(mut server: Server) -> anyhow::Result<()> {
    if let Some(pid) = server.child.id() {
        let kill = tokio::process::Command::new("kill").arg(pid.to_string()).status().await?;
        anyhow::ensure!(kill.success(), "cannot signal the server");
    }
    anyhow::ensure!(server.child.wait().await?.success(), "the server did not end well");
    Ok(())
}
