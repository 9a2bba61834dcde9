//! Descriptions of experiments 1 to 3, and of staleness.

use crate::experiment::{Combine, DesignInfo, Experiment, Parameter, Quantity};
use crate::feed::requests::{Kind, check, expected, run};

const BASE: Experiment = Experiment {
    name: "",
    number: "2 and 3",
    title: "",
    question: "",
    setup: "Each user follows the same number of others, chosen at random, and has published the same number of posts. \
            Each client has one request in progress, for a random user. A page has the newest 20 posts. All timelines \
            were read once before.",
    original: "The original measured each kind of request alone and 10,000 of them together, over numbers of threads, \
               for the sequential program and for the one with processes.",
    claims: &[("per-1", "central")],
    baseline: "central",
    designs: &[CENTRAL, PER_1000, PER_1, ROOST, ROOST_HTTP],
    parameters: &[
        users(&[1_000], &[5_000]),
        FOLLOWS,
        POSTS,
        Parameter { quick: &[100, 1], full: &[100, 1], ..CLIENTS },
        Parameter { quick: &[2_000], full: &[10_000], ..REQUESTS },
    ],
    combine: Combine::OneAtATime,
    threads_per_core: 1,
    quantities: &[Quantity::THROUGHPUT, Quantity::P50, Quantity::P99, Quantity::CPU],
    check,
    expected: |parameters, seed| expected(Kind::Timeline, parameters, seed),
    run: |design, parameters, seed| run(Kind::Timeline, design, parameters, seed),
};

/// Experiment 1.
pub(crate) static USERS_PER_ACTOR: Experiment = Experiment {
    name: "users-per-actor",
    number: "1",
    title: "Timelines: how many users should an actor have?",
    question: "Are timelines read faster with fewer users per actor, down to an actor for each user?",
    original: "The original compared 1,000, 500, 100, 10 and 1 users per process, by the speed-up against 1,000 users \
               per process and against one thread.",
    claims: &[
        ("per-500", "per-1000"),
        ("per-100", "per-500"),
        ("per-10", "per-100"),
        ("per-1", "per-10"),
    ],
    baseline: "per-1000",
    designs: &[CENTRAL, PER_1000, PER_500, PER_100, PER_10, PER_1, ROOST],
    parameters: &[users(&[1_000], &[1_000]), FOLLOWS, POSTS, CLIENTS, REQUESTS],
    threads_per_core: 2,
    quantities: &[Quantity::THROUGHPUT, Quantity::CPU, Quantity::MEMORY],
    ..BASE
};

/// Experiments 2 and 3: reading timelines.
pub(crate) static TIMELINES: Experiment = Experiment {
    name: "timelines",
    title: "Requests: reading timelines",
    question: "How many timelines are read per second, and how long does one take?",
    ..BASE
};

/// Experiments 2 and 3: reading profiles.
pub(crate) static PROFILES: Experiment = Experiment {
    name: "profiles",
    title: "Requests: reading the posts of a user",
    question: "How many profiles are read per second, and how long does one take?",
    expected: |parameters, seed| expected(Kind::Profile, parameters, seed),
    run: |design, parameters, seed| run(Kind::Profile, design, parameters, seed),
    ..BASE
};

/// Experiments 2 and 3: sending posts.
pub(crate) static SENDS: Experiment = Experiment {
    name: "sends",
    title: "Requests: sending posts",
    question: "How many posts are accepted per second, and how long does one take?",
    expected: |parameters, seed| expected(Kind::Send, parameters, seed),
    run: |design, parameters, seed| run(Kind::Send, design, parameters, seed),
    ..BASE
};

/// Experiment 9: reads that miss an accepted post.
pub(crate) static STALENESS: Experiment = Experiment {
    name: "staleness",
    number: "9",
    title: "Beyond the reports: reads that miss an accepted post",
    question: "How often does a follower's timeline lack a post that was accepted before it was read?",
    original: "The original reports discuss it and did not measure it.",
    claims: &[],
    designs: &[CENTRAL, PER_100, PER_1, ROOST],
    parameters: &[users(&[1_000], &[1_000]), FOLLOWS, POSTS, CLIENTS, REQUESTS],
    quantities: &[Quantity::FRESH, Quantity::STALE, Quantity::THROUGHPUT],
    expected: |parameters, seed| expected(Kind::SendAndRead, parameters, seed),
    run: |design, parameters, seed| run(Kind::SendAndRead, design, parameters, seed),
    ..BASE
};

pub(super) const CENTRAL: DesignInfo = DesignInfo::new("central", "one actor that has all users");
const PER_1000: DesignInfo =
    DesignInfo::new("per-1000", "an actor for 1,000 users, and a register");
const PER_500: DesignInfo = DesignInfo::new("per-500", "an actor for 500 users, and a register");
pub(super) const PER_100: DesignInfo =
    DesignInfo::new("per-100", "an actor for 100 users, and a register");
const PER_10: DesignInfo = DesignInfo::new("per-10", "an actor for 10 users, and a register");
pub(super) const PER_1: DesignInfo =
    DesignInfo::new("per-1", "an actor for each user, and a register");
pub(super) const ROOST: DesignInfo = DesignInfo::new(
    "roost",
    "roost's engine in process, which logs every post; it has its own threads",
);
pub(super) const ROOST_HTTP: DesignInfo = DesignInfo::new(
    "roost-http",
    "roost as a server in its own process, over HTTP: a connection for each client",
);

const fn users(quick: &'static [u64], full: &'static [u64]) -> Parameter {
    Parameter { name: "users", about: "number of users", range: 2..=1_000_000, quick, full }
}
const FOLLOWS: Parameter = Parameter {
    name: "follows",
    about: "number of users that each user follows",
    range: 1..=1_000,
    quick: &[25],
    full: &[25],
};
const POSTS: Parameter = Parameter {
    name: "posts",
    about: "posts of each user at the start",
    range: 1..=1_000,
    quick: &[10],
    full: &[10],
};
const CLIENTS: Parameter = Parameter {
    name: "clients",
    about: "number of clients",
    range: 1..=1_000,
    quick: &[100],
    full: &[100],
};
const REQUESTS: Parameter = Parameter {
    name: "requests",
    about: "requests of all clients together; each makes the same number, rounded up",
    range: 1..=10_000_000,
    quick: &[10_000],
    full: &[10_000],
};
