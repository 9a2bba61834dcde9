//! Home timelines of 20 full entities, read by active users over 64 connections, compared with the control.

use anyhow::Context as _;

use super::{World, rich_text};
use crate::Plan;
use crate::home::against_control;
use crate::report::Report;
use crate::rig::{CONNECTIONS, follow_all_line, send_all};

const USERS: u32 = 2_000;
const FOLLOWING: u32 = 50;
const POSTS: u64 = 20_000;
/// Number of users who read over each connection, so that no user reaches the limit of one user.
const READERS: usize = 30;
/// Path of the page.
const HOME: &str = "/api/v1/timelines/home?limit=20";

/// Starts a server with users who follow 50 others, posts with mentions and hashtags, and profiles.
pub(super) async fn world(plan: &Plan, data: &std::path::Path) -> anyhow::Result<World> {
    let settings = ["--durability", "never", "--password-grant"];
    let world = World::new(plan, data, &settings, USERS).await?;
    let follows = (0..USERS).map(|user| {
        follow_all_line(user, (1..=FOLLOWING).map(move |step| (user + step * 7) % USERS))
    });
    world.server.batch(follows).await?;
    describe_all(&world).await?;
    let post = |n: u64| {
        let (author, mentioned) = (n as u32 % USERS, (n * 13 % u64::from(USERS)) as u32);
        let text = rich_text(n, &sim::texts::handle(1, mentioned));
        format!("{{\"op\":\"post\",\"user\":{author},\"text\":\"{text}\"}}\n")
    };
    world.server.batch((0..POSTS).map(post)).await?;
    react(&world).await?;
    Ok(world)
}

/// Gives each user a profile with a text and fields.
async fn describe_all(world: &World) -> anyhow::Result<()> {
    let profile = "{\"note\":\"Rivers, bread and old maps. Posts in the morning, replies at night.\",\
                   \"fields_attributes\":[{\"name\":\"Home\",\"value\":\"https://example.org/a/page\"},\
                   {\"name\":\"Words\",\"value\":\"kind ones\"}]}";
    let request = |user: usize| {
        let post = world.post(user, "/api/v1/accounts/update_credentials", profile)?;
        anyhow::Ok([b"PATCH".as_slice(), post.get(4..).unwrap_or_default()].concat())
    };
    let requests = (0..USERS as usize).map(request).collect::<anyhow::Result<Vec<_>>>()?;
    send_all(world.server.address, requests).await.map(drop)
}

/// Makes each user favourite two statuses of their home, and bookmark one.
async fn react(world: &World) -> anyhow::Result<()> {
    let homes = send_all(world.server.address, world.gets(0..USERS as usize, HOME)?).await?;
    let mut requests = Vec::new();
    for (user, home) in homes.iter().enumerate() {
        let home: Vec<serde_json::Value> = serde_json::from_slice(home)?;
        for (place, action) in [(0, "favourite"), (7, "favourite"), (13, "bookmark")] {
            let id = home.get(place).and_then(|status| status.get("id")?.as_str());
            let id = id.context("a home with 20 statuses")?;
            requests.push(world.post(user, &format!("/api/v1/statuses/{id}/{action}"), "")?);
        }
    }
    send_all(world.server.address, requests).await.map(drop)
}

/// Requests for the homes of the users who read over this connection.
pub(super) fn readers(world: &World, connection: usize) -> anyhow::Result<Vec<Vec<u8>>> {
    world.gets((0..READERS).map(|turn| connection * READERS + turn), HOME)
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let world = world(plan, data.path()).await?;
    let body = world.server.ask(&world.get(0, HOME)?).await?;
    let text = String::from_utf8_lossy(&body);
    anyhow::ensure!(text.matches("\"favourited\":").count() == 20, "20 full entities: {text}");
    let address = world.server.address;
    let requests = (0..CONNECTIONS).map(|connection| readers(&world, connection));
    let requests = requests.collect::<anyhow::Result<Vec<_>>>()?;
    let homes = |connection: usize| requests.get(connection).cloned().unwrap_or_default();
    let of = ("home for apps", "statuses");
    against_control((plan, report), (address, body.len()), of, 0.7, homes).await
}
