//! Stories homes while stories live for 1, 5, 30 and 300 seconds: 6,000 people with 10 friends and 10
//! stories each, told again as they expire. Homes are read at the same rate each time.

use std::time::Duration;

use sim::{SimulateOptions, Storytelling, simulate};

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::Server;

const LIVES_S: [u32; 4] = [1, 5, 30, 300];
const HOMES_PER_SECOND: f64 = 1_000.0;
/// The most by which homes may get slower from the longest life to the shortest.
const SLOWER_MAX: f64 = 1.3;

/// What one rehearsal came to.
struct Rehearsed {
    told_per_second: f64,
    home_p50_ms: f64,
    home_p99_ms: f64,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let mut lives = LIVES_S.map(|life_s| (life_s, Vec::new()));
    for run in 0..plan.runs {
        for (life_s, rehearsed) in &mut lives {
            rehearsed.push(rehearse(plan, *life_s, run as u64).await?);
        }
    }
    let of = |rehearsed: &[Rehearsed], figure: fn(&Rehearsed) -> f64| {
        rehearsed.iter().map(figure).collect::<Vec<f64>>()
    };
    for (life_s, rehearsed) in &lives {
        let name = |what: &str| format!("{what}, stories that live {life_s} s");
        report.add(name("told"), "1/s", of(rehearsed, |all| all.told_per_second), None);
        report.add(name("home p50"), "ms", of(rehearsed, |all| all.home_p50_ms), None);
        report.add(name("home p99"), "ms", of(rehearsed, |all| all.home_p99_ms), None);
    }
    let [(_, shortest), .., (_, longest)] = &lives;
    let slower = shortest.iter().zip(longest).map(|(a, b)| a.home_p99_ms / b.home_p99_ms);
    let target = Some(Target::AtMost(SLOWER_MAX));
    report.add("home p99, 1 s / 300 s", "ratio", slower.collect(), target);
    Ok(())
}

async fn rehearse(plan: &Plan, life_s: u32, seed: u64) -> anyhow::Result<Rehearsed> {
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &[]).await?;
    let options = SimulateOptions {
        target: roost.address,
        key: Some("key-of-the-benchmark".into()),
        users: 6_000,
        feed: None,
        stories: Some(Storytelling {
            friends: 10,
            stories: 10,
            life_s,
            homes_per_second: HOMES_PER_SECOND,
        }),
        // Long enough that at each life but the longest stories expire all the time.
        duration: Duration::from_secs(3 * plan.seconds),
        seed,
        graph: None,
        connections: 64,
        json: None,
    };
    let (_cancel, never) = tokio::sync::watch::channel(false);
    let summary = simulate(options, &mut std::io::sink(), never).await?;
    anyhow::ensure!(summary.error_count() == 0, "{} errors", summary.error_count());
    let kind = |name: &str| {
        let kind = summary.kinds.iter().find(|kind| kind.kind == name);
        kind.ok_or_else(|| anyhow::anyhow!("no {name} in the summary"))
    };
    let (told, homes) = (kind("stories told")?, kind("stories homes")?);
    Ok(Rehearsed {
        told_per_second: told.per_second,
        home_p50_ms: homes.p50_ms,
        home_p99_ms: homes.p99_ms,
    })
}
