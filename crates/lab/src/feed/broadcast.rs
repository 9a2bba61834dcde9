//! Experiments 4 and 9: the time from a user's post until it is in the timelines of all followers.

use std::time::Instant;

use crate::answers::Answers;
use crate::experiment::{Combine, Experiment, Parameter, Quantity};
use crate::feed::central::Central;
use crate::feed::experiments::{CENTRAL, PER_1, PER_100, ROOST, ROOST_HTTP};
use crate::feed::http::Http;
use crate::feed::network::Network;
use crate::feed::roost::Roost;
use crate::feed::sharded::Sharded;
use crate::feed::{Client as _, Design};
use crate::measured::{Latencies, Marks, Measured, Stopwatch, memory_bytes};
use crate::parameters::Parameters;
use crate::trial::{TrialError, block_on};

/// Experiment 4.
pub(crate) static BROADCAST: Experiment = BASE;

const BASE: Experiment = Experiment {
    name: "broadcast",
    number: "4",
    title: "Broadcast: one post to many followers",
    question: "How long does it take until the last follower has a post?",
    setup: "One user is followed by others, and publishes posts, one after the other. Each is sent only when the one \
            before is in all timelines. For roost, whose timelines are brought up to date when they are read, every \
            follower's timeline is read.",
    original: "The original sent one message to 0, 10, 20, 50, 100 and 500 followers, with a process for each of 5,000 \
               users.",
    claims: &[],
    baseline: "per-1",
    designs: &[CENTRAL, PER_100, PER_1, ROOST, ROOST_HTTP],
    parameters: &[
        Parameter {
            name: "followers",
            about: "followers of the user who posts",
            range: 0..=1_000_000,
            quick: &[500, 0, 10, 100],
            full: &[500, 0, 10, 20, 50, 100],
        },
        Parameter {
            name: "users",
            about: "number of users; at least one more than followers",
            range: 1..=1_000_001,
            quick: &[5_000],
            full: &[5_000],
        },
        Parameter {
            name: "posts",
            about: "posts, one after the other",
            range: 1..=10_000,
            quick: &[100],
            full: &[200],
        },
    ],
    combine: Combine::OneAtATime,
    threads_per_core: 1,
    quantities: &[Quantity::DELIVERY, Quantity::DELIVERY_EACH, Quantity::CPU],
    check,
    expected,
    run,
};

/// Experiment 9: many more followers.
pub(crate) static CELEBRITY: Experiment = Experiment {
    name: "celebrity",
    number: "9",
    title: "Beyond the reports: a post by a celebrity",
    original: "The original reports had at most 500 followers.",
    designs: &[CENTRAL, PER_100, PER_1, ROOST],
    parameters: &[
        Parameter {
            name: "followers",
            about: "followers of the user who posts; there are no other users",
            range: 0..=1_000_000,
            quick: &[10_000, 100],
            full: &[10_000, 100, 1_000, 100_000, 1_000_000],
        },
        Parameter {
            name: "posts",
            about: "posts, one after the other",
            range: 1..=10_000,
            quick: &[20],
            full: &[10],
        },
    ],
    quantities: &[Quantity::DELIVERY, Quantity::DELIVERY_EACH, Quantity::CPU, Quantity::MEMORY],
    ..BASE
};

struct Workload {
    network: Network,
    followers: Vec<u32>,
    posts: u32,
}

fn workload(parameters: &Parameters) -> Workload {
    let followers = parameters.count("followers");
    let users = parameters.get("users").map_or(followers + 1, |_| parameters.count("users"));
    Workload {
        network: Network::star(users, followers),
        followers: (1..=followers).collect(),
        posts: parameters.count("posts"),
    }
}

fn check(parameters: &Parameters) -> Result<(), String> {
    let followers = parameters.count("followers");
    match parameters.get("users") {
        Some(users) if users <= u64::from(followers) => {
            Err(format!("a user cannot have {followers} followers among {users} users"))
        }
        _ => Ok(()),
    }
}

/// Checksum that is right if every follower has all posts.
fn expected(parameters: &Parameters, _seed: u64) -> u64 {
    let workload = workload(parameters);
    let posts: Vec<u64> = (0..u64::from(workload.posts)).collect();
    Answers::checksum(workload.followers.iter().map(|_| answers(posts.clone())))
}

fn answers(mut posts: Vec<u64>) -> Answers {
    posts.sort_unstable();
    let mut answers = Answers::default();
    posts.iter().for_each(|post| answers.add(&post.to_le_bytes()));
    answers
}

fn run(design: &str, parameters: &Parameters, _seed: u64) -> Result<Measured, TrialError> {
    let (threads, workload) = (parameters.count("threads"), workload(parameters));
    match design {
        "central" => block_on(threads, trial::<Central>(workload)),
        "per-100" => block_on(threads, trial::<Sharded<100>>(workload)),
        "per-1" => block_on(threads, trial::<Sharded<1>>(workload)),
        "roost" => block_on(threads, trial::<Roost>(workload)),
        "roost-http" => block_on(threads, trial::<Http>(workload)),
        _ => Err(TrialError::UnknownDesign(design.to_owned())),
    }
}

async fn trial<D: Design>(workload: Workload) -> Measured {
    let Workload { network, followers, posts } = workload;
    let before = memory_bytes();
    let feed = D::start(&network).await;
    let mut client = feed.connect();
    let mut page = Vec::new();
    for follower in &followers {
        client.timeline(*follower, &mut page).await;
    }
    let memory = memory_bytes().saturating_sub(before) as f64 / f64::from(network.users());
    let stopwatch = Stopwatch::start();
    let mut marks = Marks::new(stopwatch.started(), posts as usize);
    let mut latencies = Latencies::for_requests(posts as usize);
    for number in 0..u64::from(posts) {
        let begin = Instant::now();
        let delivery = client.post(0, number).await;
        client.delivered(delivery, &followers).await;
        latencies.add(begin.elapsed());
        marks.done();
    }
    let mut measured = stopwatch.end(posts.into(), vec![marks]);
    let median = latencies.median_us();
    measured.put(&Quantity::DELIVERY, median);
    if !followers.is_empty() {
        measured.put(&Quantity::DELIVERY_EACH, median / followers.len() as f64);
    }
    measured.put(&Quantity::MEMORY, memory);
    let mut read = Vec::new();
    for follower in followers {
        let posts = client.everything(follower).await;
        read.push(answers(posts.into_iter().map(|post| feed.number(post)).collect()));
    }
    measured.checksum = Answers::checksum(read);
    measured
}
