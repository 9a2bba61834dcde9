//! Homes of stories: over HTTP with 64 connections, compared with the control; inside the server on two threads; and
//! how the time of a home grows with the number of friends' stories.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use feed::{Bio, Command, Done, Handle, Lifetime, Name, Page, PostText, UserId, UserRef};
use node::{Durability, Node, NodeOptions, Request};
use tokio::runtime::Runtime;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{Server, drive, register_lines, text};

const CONNECTIONS: usize = 64;
/// Number of users of one measurement over HTTP.
const USERS: u32 = 1_000;
/// Number of users of a node in this process, as in the old report.
pub(crate) const USERS_INSIDE: u32 = 6_000;
const THREADS: u32 = 2;
const NEWEST: Page = Page::newest(10);

/// Measures over HTTP.
pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &["--durability", "never"]).await?;
    roost.batch(register_lines("u", 2 * USERS)).await?;
    let (ten, fifty) = (Crowd { first: 0, friends: 10 }, Crowd { first: USERS, friends: 50 });
    for crowd in [&ten, &fifty] {
        roost.batch(crowd.befriend_lines()).await?;
        roost.batch(crowd.story_lines()).await?;
    }
    let body = roost.ask(&roost.get(&ten.path(0))).await?;
    let control = Server::control(body.len(), 1).await?;

    let constant = |_: usize| vec![control.get("/")];
    // Each connection reads for several users, so that the responses are not always the same cached one.
    let readers = |crowd: &Crowd, connection: usize| -> Vec<Vec<u8>> {
        (0..15).map(|turn| roost.get(&crowd.path(connection * 15 + turn))).collect()
    };
    let time = Duration::from_secs(plan.seconds);
    let mut controls = Vec::new();
    let mut rates = [Vec::new(), Vec::new()];
    let mut ratios = [Vec::new(), Vec::new()];
    for run in 0..=plan.runs {
        let bare = drive(control.address, CONNECTIONS, time, constant).await?.per_second;
        for (at, crowd) in [&ten, &fifty].into_iter().enumerate() {
            let driven =
                drive(roost.address, CONNECTIONS, time, |n| readers(crowd, n)).await?.per_second;
            // The first round warms up.
            if let (true, Some(rates), Some(ratios)) =
                (run > 0, rates.get_mut(at), ratios.get_mut(at))
            {
                rates.push(driven);
                ratios.push(driven / bare);
            }
        }
        if run > 0 {
            controls.push(bare);
        }
    }
    report.add(format!("control: GET of {} constant bytes", body.len()), "1/s", controls, None);
    for ((crowd, rates), ratios) in [ten, fifty].into_iter().zip(rates).zip(ratios) {
        let n = crowd.friends;
        let name = format!("stories home, {n} friends with {n} stories, 64 connections");
        report.add(name, "1/s", rates, None);
        let name = format!("stories home, {n} friends with {n} stories / control");
        report.add(name, "ratio", ratios, Some(Target::AtLeast(0.7)));
    }
    Ok(())
}

/// Users in a ring. Each is a friend of the nearest users, and has as many stories as friends.
struct Crowd {
    first: u32,
    friends: u32,
}

impl Crowd {
    fn befriend_lines(&self) -> impl Iterator<Item = String> {
        let Self { first, friends } = *self;
        pairs(USERS, friends).map(move |(user, other)| {
            let (user, other) = (first + user, first + other);
            format!("{{\"op\":\"befriend\",\"user\":{user},\"other\":{other}}}\n")
        })
    }

    fn story_lines(&self) -> impl Iterator<Item = String> {
        let Self { first, friends } = *self;
        (0..USERS * friends).map(move |n| {
            let (user, text) = (first + n % USERS, text(n.into()));
            format!("{{\"op\":\"post_story\",\"user\":{user},\"text\":\"{text}\"}}\n")
        })
    }

    fn path(&self, reader: usize) -> String {
        format!(
            "/v1/users/{}/timeline/stories?limit=10",
            self.first as usize + reader % USERS as usize
        )
    }
}

/// Friendships in a ring of `users`. Each user has this many friends.
pub(crate) fn pairs(users: u32, friends: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..users)
        .flat_map(move |user| (1..=friends / 2).map(move |step| (user, (user + step) % users)))
}

/// Measures inside the server.
pub(crate) fn measure_inside(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let data = tempfile::tempdir()?;
    let node = populated(data.path(), &runtime, None, USERS_INSIDE, 10)?;
    let time = Duration::from_secs(plan.seconds);
    let rates = (0..plan.runs).map(|_| homes_a_second(&node, time)).collect();
    let least = Some(Target::AtLeast(1e6));
    report.add("story homes in process, 10 x 10, 2 threads", "1/s", rates, least);
    node.close();

    // If there is no memory for the lists of stories, each home is read from the store.
    for (budget, source) in [(None, "memory"), (Some(0), "the store")] {
        let mut nodes = Vec::new();
        for stories in [10, 100, 1_000] {
            let data = tempfile::tempdir()?;
            let node = populated(data.path(), &runtime, budget, 100, stories)?;
            nodes.push((stories, node, data, Vec::new()));
        }
        for _ in 0..plan.runs {
            for (_, node, _, times) in &mut nodes {
                times.push(microseconds_a_home(node));
            }
        }
        for (stories, node, _, times) in nodes {
            let name = format!("a home of 10 friends with {stories} stories each, from {source}");
            report.add(name, "us", times, None);
            node.close();
        }
    }
    Ok(())
}

/// Creates a node of `users` in a ring, each with 10 friends and `stories` stories with a TTL of a day.
fn populated(
    data: &Path,
    runtime: &Runtime,
    post_memory: Option<usize>,
    users: u32,
    stories: u32,
) -> anyhow::Result<Node> {
    let mut options = NodeOptions::new(data);
    options.durability = Durability::Never;
    if let Some(bytes) = post_memory {
        (options.post_memory, options.entity_memory) = (bytes, 0);
    }
    let node = Node::open(&options)?;
    submit_all(&node, runtime, (0..users).map(register))?;
    submit_all(&node, runtime, pairs(users, 10).map(|(user, other)| befriend(user, other)))?;
    let day = Lifetime::from_secs(86_400).unwrap_or_else(|_| unreachable!("valid"));
    submit_all(&node, runtime, (0..users * stories).map(|n| post_story(n % users, day)))?;
    // Reads use the store only after a checkpoint. Closing the node waits for the last one.
    node.close();
    drop(node);
    Ok(Node::open(&options)?)
}

/// Submits commands in pieces. All must succeed.
pub(crate) fn submit_all(
    node: &Node,
    runtime: &Runtime,
    commands: impl Iterator<Item = Command>,
) -> anyhow::Result<()> {
    submit_each(node, runtime, commands, |_| ())
}

/// Submits many commands, none of which may be refused. `each` gets their results.
pub(crate) fn submit_each(
    node: &Node,
    runtime: &Runtime,
    commands: impl Iterator<Item = Command>,
    mut each: impl FnMut(Done),
) -> anyhow::Result<()> {
    let mut commands = commands.map(Request::from).peekable();
    while commands.peek().is_some() {
        let piece: Vec<Request> = commands.by_ref().take(4_000).collect();
        for reply in runtime.block_on(node.submit_all(piece))? {
            match reply.outcome {
                Ok(done) => each(done),
                Err(refused) => anyhow::bail!("a command was refused: {refused:?}"),
            }
        }
    }
    Ok(())
}

pub(crate) fn register(number: u32) -> Command {
    Command::Register {
        handle: Handle::parse(&format!("u{number}")).unwrap_or_else(|_| unreachable!("valid")),
        name: Name::default(),
        bio: Bio::default(),
    }
}

pub(crate) fn befriend(user: u32, other: u32) -> Command {
    let id = |user| UserRef::Id(UserId(user));
    Command::Befriend { user: id(user), other: id(other) }
}

pub(crate) fn post_story(author: u32, life: Lifetime) -> Command {
    let text = PostText::parse(&text(author.into())).unwrap_or_else(|_| unreachable!("valid"));
    Command::PostStory { author: UserRef::Id(UserId(author)), text, life }
}

/// Reads the homes of all users in turn, on two threads. Returns the number of homes per second.
fn homes_a_second(node: &Node, time: Duration) -> f64 {
    let start = Instant::now();
    let homes: u64 = std::thread::scope(|scope| {
        let reader = |thread: u32| {
            let mut out = Vec::with_capacity(8_192);
            let mut homes = 0;
            let mut user = thread * USERS_INSIDE / THREADS;
            while start.elapsed() < time {
                for _ in 0..100 {
                    user = (user + 7) % USERS_INSIDE;
                    read_home(node, UserId(user), &mut out);
                    homes += 1;
                }
            }
            homes
        };
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || reader(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    homes as f64 / start.elapsed().as_secs_f64()
}

fn microseconds_a_home(node: &Node) -> f64 {
    const HOMES: u32 = 20_000;
    let mut out = Vec::with_capacity(8_192);
    let mut read = |homes: u32| {
        for user in 0..homes {
            read_home(node, UserId(user % 100), &mut out);
        }
    };
    read(200);
    let start = Instant::now();
    read(HOMES);
    start.elapsed().as_secs_f64() * 1e6 / f64::from(HOMES)
}

/// Reads a home as the server does: from memory if possible, otherwise from the store.
pub(crate) fn read_home(node: &Node, user: UserId, out: &mut Vec<u8>) {
    out.clear();
    if node.try_stories_home(user, &NEWEST, out).is_none() {
        node.stories_home(user, &NEWEST, out);
    }
    black_box(out);
}
