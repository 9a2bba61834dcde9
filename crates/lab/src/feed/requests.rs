//! Trials of experiments 1 to 3, and of staleness: many clients that make requests of one kind.
//!
//! Before the measurement, every user has published the same number of posts, one after the other. While timelines or
//! profiles are read, nothing changes, so each answer is known. Posts that are sent during the measurement arrive in
//! any order. All timelines are therefore read afterwards, and must contain all posts.

use std::sync::Arc;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;

use crate::answers::Answers;
use crate::experiment::Quantity;
use crate::feed::central::Central;
use crate::feed::http::Http;
use crate::feed::network::Network;
use crate::feed::roost::Roost;
use crate::feed::sharded::Sharded;
use crate::feed::{Client, Design, PAGE};
use crate::measured::{Latencies, Marks, Measured, Stopwatch, memory_bytes};
use crate::parameters::Parameters;
use crate::trial::{TrialError, block_on, boxed};

/// Kind of the requests of a trial.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Read the timeline of a random user.
    Timeline,
    /// Read the posts by a random user.
    Profile,
    /// Publish a post by a random user.
    Send,
    /// Publish a post, and then read the timeline of a follower.
    SendAndRead,
}

/// Parameters of a trial.
#[derive(Clone, Copy)]
struct Workload {
    kind: Kind,
    users: u32,
    follows: u32,
    posts: u32,
    clients: u32,
    /// Number of requests of each client.
    requests: u32,
    seed: u64,
}

fn workload(kind: Kind, parameters: &Parameters, seed: u64) -> Workload {
    let clients = parameters.count("clients");
    Workload {
        kind,
        users: parameters.count("users"),
        follows: parameters.count("follows"),
        posts: parameters.count("posts"),
        clients,
        requests: parameters.count("requests").div_ceil(clients),
        seed,
    }
}

/// Checks that there are enough users to be followed.
pub(super) fn check(parameters: &Parameters) -> Result<(), String> {
    let Workload { users, follows, .. } = workload(Kind::Timeline, parameters, 0);
    match follows < users {
        true => Ok(()),
        false => Err(format!("a user cannot follow {follows} others among {users} users")),
    }
}

/// Runs a trial.
pub(super) fn run(
    kind: Kind,
    design: &str,
    parameters: &Parameters,
    seed: u64,
) -> Result<Measured, TrialError> {
    let (threads, workload) = (parameters.count("threads"), workload(kind, parameters, seed));
    match design {
        "central" => block_on(threads, trial::<Central>(workload)),
        "per-1000" => block_on(threads, trial::<Sharded<1_000>>(workload)),
        "per-500" => block_on(threads, trial::<Sharded<500>>(workload)),
        "per-100" => block_on(threads, trial::<Sharded<100>>(workload)),
        "per-10" => block_on(threads, trial::<Sharded<10>>(workload)),
        "per-1" => block_on(threads, trial::<Sharded<1>>(workload)),
        "roost" => block_on(threads, trial::<Roost>(workload)),
        "roost-http" => block_on(threads, trial::<Http>(workload)),
        _ => Err(TrialError::UnknownDesign(design.to_owned())),
    }
}

impl Workload {
    fn network(&self) -> Network {
        Network::random(self.users, self.follows, self.seed)
    }

    /// Numbers of the initial posts and their authors, in order.
    fn first_posts(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let (users, posts) = (self.users, self.posts);
        (0..u64::from(posts) * u64::from(users))
            .map(move |number| ((number % u64::from(users)) as u32, number))
    }

    /// Users of a client's requests, in order, each with the number of a new post.
    fn requests_of(&self, client: u32) -> impl Iterator<Item = (u32, u64)> + use<> {
        let mut random = StdRng::seed_from_u64(self.seed ^ u64::from(client + 1).rotate_left(32));
        let (users, clients) = (self.users, self.clients);
        let first = u64::from(self.posts) * u64::from(users) + u64::from(client);
        (0..self.requests).map(move |nth| {
            (random.random_range(0..users), first + u64::from(nth) * u64::from(clients))
        })
    }
}

/// Checksum of the answers of a plain model.
pub(super) fn expected(kind: Kind, parameters: &Parameters, seed: u64) -> u64 {
    let workload = workload(kind, parameters, seed);
    let (users, posts) = (u64::from(workload.users), u64::from(workload.posts));
    let sources = workload.network().sources();
    if matches!(kind, Kind::Send | Kind::SendAndRead) {
        let mut by_author = vec![Vec::new(); workload.users as usize];
        let sent = (0..workload.clients).flat_map(|client| workload.requests_of(client));
        for (author, number) in workload.first_posts().chain(sent) {
            if let Some(posts) = by_author.get_mut(author as usize) {
                posts.push(number);
            }
        }
        return Answers::checksum(sources.iter().map(|sources| {
            let posts = sources.iter().filter_map(|author| by_author.get(*author as usize));
            all_of(posts.flatten().copied().collect())
        }));
    }
    let page = |user: u32| -> Vec<u64> {
        if kind == Kind::Profile {
            let post = |nth: u64| nth * users + u64::from(user);
            return vec![post(posts - 1), post(posts.saturating_sub(PAGE as u64))];
        }
        let sources = sources.get(user as usize).map_or(&[][..], Vec::as_slice);
        let rounds = (0..posts).rev();
        let newest = rounds.flat_map(|round| {
            sources.iter().rev().map(move |author| round * users + u64::from(*author))
        });
        newest.take(PAGE).collect()
    };
    Answers::checksum((0..workload.clients).map(|client| {
        let mut answers = Answers::default();
        workload
            .requests_of(client)
            .for_each(|(user, _)| add(&mut answers, page(user).into_iter()));
        answers
    }))
}

fn add(answers: &mut Answers, posts: impl Iterator<Item = u64>) {
    answers.add(&posts.flat_map(u64::to_le_bytes).collect::<Vec<_>>());
}

fn all_of(mut posts: Vec<u64>) -> Answers {
    posts.sort_unstable();
    let mut answers = Answers::default();
    add(&mut answers, posts.into_iter());
    answers
}

/// Results of a client: the pages that it read, in order, and the durations of the reads.
struct Done {
    number: u32,
    pages: Vec<Vec<u64>>,
    marks: Marks,
    latencies: Latencies,
    /// Number of reads that lacked the post accepted before.
    stale: u64,
}

async fn trial<D: Design>(workload: Workload) -> Measured {
    let before = memory_bytes();
    let network = Arc::new(workload.network());
    let feed = Arc::new(D::start(&network).await);
    load(&*feed, &workload).await;
    let memory = memory_bytes().saturating_sub(before) as f64 / f64::from(workload.users);
    let stopwatch = Stopwatch::start();
    let mut running = JoinSet::new();
    for number in 0..workload.clients {
        let (feed, network) = (Arc::clone(&feed), Arc::clone(&network));
        running.spawn(boxed(drive(number, feed, network, workload, stopwatch.started())));
    }
    let mut done = running.join_all().await;
    done.sort_unstable_by_key(|client| client.number);
    let mut clients = Vec::new();
    let (mut marks, mut latencies, mut stale) = (Vec::new(), Latencies::default(), 0);
    for client in done {
        clients.push(client.pages);
        marks.push(client.marks);
        latencies.add_all(client.latencies);
        stale += client.stale;
    }
    let requests = u64::from(workload.clients) * u64::from(workload.requests);
    let mut measured = stopwatch.end(requests, marks);
    latencies.put(&mut measured);
    measured.put(&Quantity::MEMORY, memory);
    if workload.kind == Kind::SendAndRead {
        let stale = 100.0 * stale as f64 / requests as f64;
        measured.put(&Quantity::STALE, stale);
        measured.put(&Quantity::FRESH, 100.0 - stale);
    }
    measured.checksum = match workload.kind {
        Kind::Timeline | Kind::Profile => Answers::checksum(clients.into_iter().map(|pages| {
            let mut answers = Answers::default();
            for page in pages {
                add(&mut answers, page.into_iter().map(|post| feed.number(post)));
            }
            answers
        })),
        Kind::Send | Kind::SendAndRead => everything(&*feed, &workload).await,
    };
    measured
}

/// Publishes the initial posts in order, waits until they are delivered, and reads every timeline once.
async fn load<D: Design>(feed: &D, workload: &Workload) {
    let mut client = feed.connect();
    let posts: Vec<(u32, u64)> = workload.first_posts().collect();
    for delivery in client.post_all(&posts).await {
        delivery.end().await;
    }
    let mut page = Vec::new();
    for user in 0..workload.users {
        page.clear();
        client.timeline(user, &mut page).await;
    }
}

/// Sends all requests of one client.
async fn drive<D: Design>(
    number: u32,
    feed: Arc<D>,
    network: Arc<Network>,
    workload: Workload,
    start: Instant,
) -> Done {
    let (mut client, requests) = (feed.connect(), workload.requests as usize);
    let (marks, latencies) = (Marks::new(start, requests), Latencies::for_requests(requests));
    let mut done = Done { number, pages: Vec::new(), marks, latencies, stale: 0 };
    let mut deliveries = Vec::new();
    for (user, new) in workload.requests_of(number) {
        let (begin, mut page) = (Instant::now(), Vec::with_capacity(PAGE));
        match workload.kind {
            Kind::Timeline => client.timeline(user, &mut page).await,
            Kind::Profile => client.profile(user, &mut page).await,
            Kind::Send => deliveries.push(client.post(user, new).await),
            Kind::SendAndRead => {
                deliveries.push(client.post(user, new).await);
                let followers = network.followers(user);
                let reader = followers.get(new as usize % followers.len().max(1));
                // Read the whole timeline, because newer posts may push the post off a page.
                let read = client.everything(reader.copied().unwrap_or(user)).await;
                done.stale += u64::from(!read.into_iter().any(|post| feed.number(post) == new));
            }
        }
        done.latencies.add(begin.elapsed());
        done.marks.done();
        done.pages.push(page);
    }
    for delivery in deliveries {
        delivery.end().await;
    }
    done
}

/// Checksum of all timelines after the trial.
async fn everything<D: Design>(feed: &D, workload: &Workload) -> u64 {
    let (mut client, mut answers) = (feed.connect(), Vec::new());
    for user in 0..workload.users {
        let posts = client.everything(user).await;
        answers.push(all_of(posts.into_iter().map(|post| feed.number(post)).collect()));
    }
    Answers::checksum(answers)
}
