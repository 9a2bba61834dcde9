//! Description and trials of the experiment.
//!
//! Every story is posted again before it expires, so the load is constant and every home page is known: it has all
//! stories of all friends. While the old and the new version of a story are both live, a page has both, and they count
//! as one. If the machine stalls and a story expires first, the page must lack it; `posted` decides this.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep_until;

use crate::answers::Answers;
use crate::experiment::{Combine, DesignInfo, Experiment, Parameter, Quantity};
use crate::measured::{Latencies, Marks, Measured, Stopwatch};
use crate::parameters::Parameters;
use crate::stories::central::Central;
use crate::stories::http::Http;
use crate::stories::per_user::PerUser;
use crate::stories::posted::{Posted, Span};
use crate::stories::roost::Roost;
use crate::stories::{Client, Design, Friends};
use crate::trial::{TrialError, block_on, boxed};

/// Experiment 5.
pub(crate) static EXPERIMENT: Experiment = Experiment {
    name: "stories",
    number: "5",
    title: "Stories: the home page of a user with many friends",
    question: "How does the number of home pages per second depend on users, requests, stories, friends and their life?",
    setup: "Everybody has the same number of friends and of live stories; a story is posted again before it expires. \
            100 clients, each with one request in progress, read the home pages of random users: all live stories of \
            all friends. One parameter is varied at a time, the others have their first value.",
    original: "The original had an actor per user and a task for each request, and measured the speed-up over threads.",
    claims: &[("per-user", "central")],
    baseline: "central",
    designs: &[
        DesignInfo::new("central", "one actor that has all users and stories"),
        DesignInfo::new(
            "per-user",
            "an actor for each user; a task for each home page, which asks all friends",
        ),
        DesignInfo::new(
            "roost",
            "roost's engine in process, which logs every story; it has its own threads",
        ),
        DesignInfo::new(
            "roost-http",
            "roost as a server in its own process, over HTTP: a connection for each client",
        ),
    ],
    parameters: &[
        Parameter {
            name: "users",
            about: "number of users",
            range: 3..=100_000,
            quick: &[500],
            full: &[500, 1_000, 2_000, 5_000, 10_000],
        },
        Parameter {
            name: "requests",
            about: "requests of all clients together; each makes the same number, rounded up",
            range: 1..=10_000_000,
            quick: &[2_000],
            full: &[5_000, 500, 1_000, 2_000, 10_000],
        },
        Parameter {
            name: "stories",
            about: "live stories of each user",
            range: 1..=100,
            quick: &[10, 50],
            full: &[10, 1, 5, 20, 50],
        },
        Parameter {
            name: "friends",
            about: "friends of each user, an even number",
            range: 2..=1_000,
            quick: &[10, 50],
            full: &[10, 2, 20, 50],
        },
        Parameter {
            name: "life",
            about: "seconds until a story expires",
            range: 1..=86_400,
            quick: &[300, 2],
            full: &[300, 1, 10, 60],
        },
    ],
    combine: Combine::OneAtATime,
    threads_per_core: 2,
    quantities: &[Quantity::THROUGHPUT, Quantity::P50, Quantity::P99, Quantity::CPU],
    check,
    expected,
    run,
};

/// Number of clients.
const CLIENTS: u32 = 100;

#[derive(Clone, Copy)]
pub(super) struct Workload {
    friends: Friends,
    stories: u32,
    life_s: u32,
    /// Number of requests of each client.
    requests: u32,
    seed: u64,
}

pub(super) fn workload(parameters: &Parameters, seed: u64) -> Workload {
    Workload {
        friends: Friends { users: parameters.count("users"), friends: parameters.count("friends") },
        stories: parameters.count("stories"),
        life_s: parameters.count("life"),
        requests: parameters.count("requests").div_ceil(CLIENTS),
        seed,
    }
}

fn check(parameters: &Parameters) -> Result<(), String> {
    let Friends { users, friends } = workload(parameters, 0).friends;
    if !friends.is_multiple_of(2) {
        return Err(format!("friends must be an even number, not {friends}"));
    }
    match friends < users {
        true => Ok(()),
        false => Err(format!("a user cannot have {friends} friends among {users} users")),
    }
}

impl Workload {
    /// Numbers of a user's stories.
    fn stories_of(self, user: u32) -> impl Iterator<Item = u64> {
        let first = u64::from(user) * u64::from(self.stories);
        first..first + u64::from(self.stories)
    }

    /// Stories of all friends of a user, each with its author.
    fn page_of(self, user: u32) -> impl Iterator<Item = (u32, u64)> {
        let of = move |friend| self.stories_of(friend).map(move |story| (friend, story));
        self.friends.of(user).flat_map(of)
    }

    /// Users whose home pages a client reads.
    fn requests_of(self, client: u32) -> impl Iterator<Item = u32> {
        let mut random = StdRng::seed_from_u64(self.seed ^ u64::from(client + 1).rotate_left(32));
        (0..self.requests).map(move |_| random.random_range(0..self.friends.users))
    }
}

fn expected(parameters: &Parameters, seed: u64) -> u64 {
    let workload = workload(parameters, seed);
    Answers::checksum((0..CLIENTS).map(|client| {
        let mut answers = Answers::default();
        for user in workload.requests_of(client) {
            add(&mut answers, workload.page_of(user).map(|(_, story)| story).collect());
        }
        answers
    }))
}

/// Adds a home page to the checksum.
fn add(answers: &mut Answers, page: BTreeSet<u64>) {
    answers.add(&page.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>());
}

fn run(design: &str, parameters: &Parameters, seed: u64) -> Result<Measured, TrialError> {
    let (threads, workload) = (parameters.count("threads"), workload(parameters, seed));
    match design {
        "central" => block_on(threads, trial::<Central>(workload)),
        "per-user" => block_on(threads, trial::<PerUser>(workload)),
        "roost" => block_on(threads, trial::<Roost>(workload)),
        "roost-http" => block_on(threads, trial::<Http>(workload)),
        _ => Err(TrialError::UnknownDesign(design.to_owned())),
    }
}

pub(super) async fn trial<D: Design>(workload: Workload) -> Measured {
    let design = Arc::new(D::start(&workload.friends).await);
    let renewal = post_all(&design, workload).await;
    let stopwatch = Stopwatch::start();
    let mut running = JoinSet::new();
    for number in 0..CLIENTS {
        let (mut client, requests) = (design.connect(), workload.requests as usize);
        let mut marks = Marks::new(stopwatch.started(), requests);
        running.spawn(boxed(async move {
            let (mut latencies, mut pages) = (Latencies::for_requests(requests), Vec::new());
            for user in workload.requests_of(number) {
                let (begin, mut page) = (Instant::now(), Vec::new());
                client.home(user, &mut page).await;
                let read = Span { begin, end: Instant::now() };
                latencies.add(read.end - begin);
                marks.done();
                pages.push((user, read, page));
            }
            (number, pages, marks, latencies)
        }));
    }
    let mut done = running.join_all().await;
    done.sort_unstable_by_key(|(number, ..)| *number);
    let (mut all, mut marks, mut latencies) = (Vec::new(), Vec::new(), Latencies::default());
    for (_, pages, of_client, took) in done {
        all.push(pages);
        marks.push(of_client);
        latencies.add_all(took);
    }
    let requests = u64::from(CLIENTS) * u64::from(workload.requests);
    let mut measured = stopwatch.end(requests, marks);
    let posted = renewal.end().await;
    latencies.put(&mut measured);
    measured.checksum = Answers::checksum(all.into_iter().map(|pages| {
        let mut answers = Answers::default();
        for (user, read, page) in pages {
            let page = page.into_iter().map(|story| design.number(story)).collect();
            add(&mut answers, posted.right(read, page, workload.page_of(user)));
        }
        answers
    }));
    measured
}

/// Task that repeats the posts of stories.
struct Renewal {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Posted>,
}

impl Renewal {
    /// Ends the task after its current story. Returns the times of all posts.
    async fn end(self) -> Posted {
        drop(self.stop);
        match self.task.await {
            Ok(posted) => posted,
            Err(error) => panic!("stories could not be posted: {error}"),
        }
    }
}

/// Posts every story, and starts a task that repeats this within half of the stories' TTL.
async fn post_all<D: Design>(design: &Arc<D>, workload: Workload) -> Renewal {
    let mut client = design.connect();
    let mut posted = Posted::new(workload.friends.users, workload.life_s);
    for author in 0..workload.friends.users {
        posted.add(author, post(&mut client, author, workload).await);
    }
    let pause = Duration::from_secs(workload.life_s.into()) / 2 / workload.friends.users;
    let (stop, mut stopped) = oneshot::channel();
    let task = tokio::spawn(boxed(async move {
        let mut next = Instant::now();
        for author in (0..workload.friends.users).cycle() {
            next += pause;
            tokio::select! {
                _ = &mut stopped => break,
                () = sleep_until(next.into()) => {}
            }
            posted.add(author, post(&mut client, author, workload).await);
        }
        posted
    }));
    Renewal { stop, task }
}

/// Posts all stories of an author.
async fn post(client: &mut impl Client, author: u32, workload: Workload) -> Span {
    let begin = Instant::now();
    let stories: Vec<u64> = workload.stories_of(author).collect();
    client.post_all(author, &stories, workload.life_s).await;
    Span { begin, end: Instant::now() }
}
