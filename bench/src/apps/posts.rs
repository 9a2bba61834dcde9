//! Durable posts to 100 active followers over 64 connections, alternately through this API and through roost's own API.

use std::time::Duration;

use super::World;
use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{Server, drive, follow_all_line, text};

/// Number of authors, so that none reaches the limit of posts of one user.
const AUTHORS: u32 = 6_400;
const FOLLOWERS: u32 = 100;
const CONNECTIONS: usize = 64;
/// Number of follows in a line of the batch route.
const LINE: usize = 800;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let settings = ["--durability", "always"];
    let world = World::new(plan, data.path(), &settings, AUTHORS + FOLLOWERS).await?;
    let authors: Vec<u32> = (0..AUTHORS).collect();
    let readers = AUTHORS..AUTHORS + FOLLOWERS;
    let follows = readers.clone().flat_map(|reader| {
        authors.chunks(LINE).map(move |part| follow_all_line(reader, part.iter().copied()))
    });
    world.server.batch(follows).await?;
    for reader in readers {
        world.server.ask(&world.get(reader as usize, "/api/v1/timelines/home")?).await?;
    }
    let mine = |connection: usize| (0..AUTHORS as usize).skip(connection).step_by(CONNECTIONS);
    let by_app = |author: usize| {
        let body = format!("{{\"status\":\"{}\"}}", text(author as u64));
        world.post(author, "/api/v1/statuses", &body)
    };
    let by_apps = (0..CONNECTIONS).map(|connection| mine(connection).map(by_app).collect());
    let by_apps: Vec<Vec<Vec<u8>>> = by_apps.collect::<anyhow::Result<_>>()?;
    let own = |author: usize| {
        let body = format!("{{\"text\":\"{}\"}}", text(author as u64));
        world.server.post(&format!("/v1/users/{author}/posts"), &body)
    };
    let answer = world.server.ask(&by_app(0)?).await?;
    let control = Server::control(1, answer.len()).await?;
    let constant = |_: usize| vec![control.post("/", &format!("{{\"status\":\"{}\"}}", text(0)))];
    let (address, time) = (world.server.address, Duration::from_secs(plan.seconds));
    let (mut bare, mut app, mut direct, mut ratios) = (vec![], vec![], vec![], vec![]);
    for run in 0..=plan.runs {
        // The first round only warms up. It is short, because its posts count for the limit.
        let time = if run == 0 { Duration::from_secs(1) } else { time };
        let constant = drive(control.address, CONNECTIONS, time, constant).await?;
        let ours =
            drive(address, CONNECTIONS, time, |n| by_apps.get(n).cloned().unwrap_or_default());
        let ours = ours.await?;
        let own = drive(address, CONNECTIONS, time, |n| mine(n).map(own).collect()).await?;
        if run > 0 {
            bare.push(constant.per_second);
            app.push(ours.per_second);
            direct.push(own.per_second);
            ratios.push(ours.per_second / own.per_second);
        }
    }
    report.add(format!("control: POST answered with {} bytes", answer.len()), "1/s", bare, None);
    let name = "posts by apps, always, 100 active followers, 64 connections";
    report.add(name, "1/s", app, Some(Target::AtLeast(25_000.0)));
    report.add("the same through roost's own API", "1/s", direct, None);
    report.add("posts by apps / through roost's own API", "ratio", ratios, None);
    Ok(())
}
