//! Descriptions and trials of the experiments. Requests are sent at due times that do not depend on the answers (open
//! loop), or each after an answer (closed loop).

use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};

use knn::{Bits, InstructionSet};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::answers::Answers;
use crate::experiment::{Combine, DesignInfo, Experiment, Parameter, Quantity};
use crate::measured::{Latencies, Marks, Measured, Stopwatch};
use crate::parameters::Parameters;
use crate::recognizer::inline::Inline;
use crate::recognizer::java;
use crate::recognizer::pool::Pool;
use crate::recognizer::port::Port;
use crate::recognizer::tasks::Tasks;
use crate::recognizer::{Design, Nearest, references, select};
use crate::trial::{TrialError, block_on, boxed};

/// Number of bits in which a drawing differs from its sample.
const NOISE_BITS: usize = 60;
/// Number of concurrent requests per thread in a closed loop.
const CLIENTS_PER_THREAD: u32 = 4;

/// Experiment 7, latency: an open loop.
pub(crate) static LATENCY: Experiment = BASE;

const BASE: Experiment = Experiment {
    name: "recognizer",
    number: "7",
    title: "Recognizer: what does each boundary cost?",
    question: "How long does a recognition take, and how much processor time, behind each kind of boundary?",
    setup: "Requests are sent at random times with a given mean rate, independent of the answers, by a thread outside \
            the runtime. Latency is measured from the time when a request was sent. A request is one drawing, compared with \
            2,339 others; the answer is the 15 nearest.",
    original: "The original had a process for each distance, and native code in an external process behind pipes, and \
               asked whether native code is needed. If it is, port is faster than tasks, and than java.",
    claims: &[("port", "tasks"), ("port", "java"), ("pool", "java")],
    baseline: "scalar",
    designs: &[
        DesignInfo::new("scalar", "in the requesting task, without special instructions"),
        DesignInfo {
            absent: || without(InstructionSet::Popcnt, "this processor has no POPCNT"),
            ..DesignInfo::new("popcount", "the same, with an instruction that counts ones")
        },
        DesignInfo {
            absent: || without(InstructionSet::Avx2, "this processor has no AVX2"),
            ..DesignInfo::new("avx2", "the same, with vectors of 256 bits")
        },
        DesignInfo {
            absent: || without(InstructionSet::Avx512, "this processor has no AVX512"),
            ..DesignInfo::new("avx512", "the same, with vectors of 512 bits")
        },
        DesignInfo::new("tasks", "a task for each of the 2,339 distances"),
        DesignInfo::new("pool", "an actor for each thread, with the best instructions"),
        DesignInfo::new("port", "an external process behind pipes, with the best instructions"),
        DesignInfo {
            absent: java::absent,
            ..DesignInfo::new("java", "pure Java: a pool of threads, as the design pool")
        },
    ],
    parameters: &[
        Parameter {
            name: "rate",
            about: "requests per second, on average",
            range: 1..=100_000,
            quick: &[1_000, 100],
            full: &[1_000, 100],
        },
        Parameter {
            name: "requests",
            about: "number of requests",
            range: 1..=1_000_000,
            quick: &[100],
            full: &[300],
        },
    ],
    combine: Combine::OneAtATime,
    threads_per_core: 1,
    quantities: &[Quantity::P50, Quantity::P99, Quantity::CPU],
    check: |_| Ok(()),
    expected: |parameters, seed| expected(parameters.count("requests"), seed),
    run: |design, parameters, seed| run(design, parameters, seed),
};

/// Experiment 7, throughput: a closed loop.
pub(crate) static THROUGHPUT: Experiment = Experiment {
    name: "recognizer-throughput",
    title: "Recognizer: how many recognitions per second?",
    question: "How does the number of recognitions per second grow with threads, behind each kind of boundary?",
    setup: "Four clients for each thread, each with one request in progress. A request is one drawing, compared with \
            2,339 others; the answer is the 15 nearest.",
    parameters: &[Parameter {
        name: "requests",
        about: "number of requests",
        range: 1..=1_000_000,
        quick: &[1_000],
        full: &[5_000],
    }],
    threads_per_core: 2,
    quantities: &[Quantity::THROUGHPUT, Quantity::CPU],
    ..BASE
};

/// Returns `reason` if this processor lacks the instructions.
fn without(instructions: InstructionSet, reason: &'static str) -> Option<&'static str> {
    (!instructions.is_available()).then_some(reason)
}

/// Drawings of the requests.
fn queries(count: u32, seed: u64) -> Vec<Bits> {
    let (mut random, references) = (StdRng::seed_from_u64(seed), references());
    let query = |_| {
        let (_, bits) = references
            .get(random.random_range(0..references.len()))
            .copied()
            .unwrap_or((0, Bits::ZERO));
        let flipped: Vec<usize> =
            (0..NOISE_BITS).map(|_| random.random_range(0..knn::BITS)).collect();
        Bits::from_fn(|index| bits.bit(index) ^ flipped.contains(&index))
    };
    (0..count).map(query).collect()
}

/// Checksum of the answers of a plain model.
fn expected(requests: u32, seed: u64) -> u64 {
    let references = references();
    Answers::checksum(queries(requests, seed).into_iter().map(|query| {
        let distance = |(id, bits): &(u64, Bits)| (query.distance(bits), *id);
        answers(select(references.iter().map(distance).collect()))
    }))
}

fn answers(nearest: Nearest) -> Answers {
    let mut answers = Answers::default();
    for (distance, id) in nearest {
        answers.add(&[&distance.to_le_bytes()[..], &id.to_le_bytes()].concat());
    }
    answers
}

fn run(design: &str, parameters: &Parameters, seed: u64) -> Result<Measured, TrialError> {
    let threads = parameters.count("threads");
    let queries = queries(parameters.count("requests"), seed);
    let rate = parameters.get("rate").map(|_| parameters.count("rate"));
    let load = Load { queries, rate, clients: threads * CLIENTS_PER_THREAD, seed };
    let instructions = |instructions| {
        Inline::with(instructions).map_err(|why| TrialError::BadParameters(why.to_string()))
    };
    match design {
        "scalar" => block_on(threads, load.drive(ready(instructions(InstructionSet::Plain)?))),
        "popcount" => block_on(threads, load.drive(ready(instructions(InstructionSet::Popcnt)?))),
        "avx2" => block_on(threads, load.drive(ready(instructions(InstructionSet::Avx2)?))),
        "avx512" => block_on(threads, load.drive(ready(instructions(InstructionSet::Avx512)?))),
        "tasks" => block_on(threads, load.drive(async { Tasks::start() })),
        "pool" => block_on(threads, load.drive(async move { Pool::start(threads) })),
        "port" => block_on(threads, load.drive(async { Port::start() })),
        "java" => java::run(threads, &load),
        _ => Err(TrialError::UnknownDesign(design.to_owned())),
    }
}

/// Requests of a trial.
pub(super) struct Load {
    pub(super) queries: Vec<Bits>,
    /// Requests per second; `None` for a closed loop.
    pub(super) rate: Option<u32>,
    pub(super) clients: u32,
    seed: u64,
}

/// Answered request: its number, its answer, and its duration.
pub(super) type Answered = (usize, Nearest, Duration);

impl Load {
    async fn drive<D: Design>(self, design: impl Future<Output = D>) -> Measured {
        let design = Arc::new(design.await);
        // Send an unmeasured request first, because designs may start parts of themselves at the first request.
        design.nearest(Bits::ZERO).await;
        // Keep the design until the end of the measurement, so that the processor time of its process counts.
        let _kept = Arc::clone(&design);
        match self.rate {
            Some(_) => self.open_loop(design).await,
            None => self.closed_loop(design).await,
        }
    }

    /// Due times of the requests, from the start: random, with the mean rate. Without a rate, all are due at once.
    pub(super) fn due(&self) -> Vec<Duration> {
        let mut random = StdRng::seed_from_u64(!self.seed);
        let mut due = Duration::ZERO;
        let pause = |_| {
            let mean_s = self.rate.map_or(0.0, |rate| 1.0 / f64::from(rate));
            due += Duration::from_secs_f64(mean_s * exponential(&mut random));
            due
        };
        self.queries.iter().map(pause).collect()
    }

    /// Sends requests at their due times.
    async fn open_loop<D: Design>(self, design: Arc<D>) -> Measured {
        let (runtime, (done, wait)) = (tokio::runtime::Handle::current(), oneshot::channel());
        let (due, queries) = (self.due(), self.queries);
        let count = queries.len();
        let stopwatch = Stopwatch::start();
        let start = stopwatch.started();
        // Use a separate thread, because all worker threads may be busy.
        std::thread::spawn(move || {
            let mut requests = JoinSet::new();
            for (number, (query, due)) in queries.into_iter().zip(due).enumerate() {
                std::thread::sleep((start + due).saturating_duration_since(Instant::now()));
                let (design, made) = (Arc::clone(&design), Instant::now());
                let request = async move { (number, design.nearest(query).await, made.elapsed()) };
                requests.spawn_on(boxed(request), &runtime);
            }
            let _ended = done.send(requests);
        });
        let Ok(requests) = wait.await else { unreachable!("the thread sends what it made") };
        let answered = requests.join_all().await;
        finished(stopwatch.end(count as u64, Vec::new()), answered)
    }

    /// Sends each request after the answer to the previous one.
    async fn closed_loop<D: Design>(self, design: Arc<D>) -> Measured {
        let stopwatch = Stopwatch::start();
        let (mut clients, step) = (JoinSet::new(), self.clients as usize);
        for client in 0..step {
            let numbered = self.queries.iter().copied().enumerate().skip(client).step_by(step);
            let (own, design) = (numbered.collect::<Vec<_>>(), Arc::clone(&design));
            let mut marks = Marks::new(stopwatch.started(), own.len());
            clients.spawn(boxed(async move {
                let mut answered = Vec::with_capacity(own.len());
                for (number, query) in own {
                    let made = Instant::now();
                    answered.push((number, design.nearest(query).await, made.elapsed()));
                    marks.done();
                }
                (answered, marks)
            }));
        }
        let (answered, marks): (Vec<_>, Vec<_>) = clients.join_all().await.into_iter().unzip();
        let measured = stopwatch.end(self.queries.len() as u64, marks);
        finished(measured, answered.into_iter().flatten().collect())
    }
}

/// Random value of the exponential distribution with mean 1.
fn exponential(random: &mut StdRng) -> f64 {
    -(1.0 - random.random::<f64>()).ln()
}

/// Adds checksum and latencies.
pub(super) fn finished(mut measured: Measured, mut answered: Vec<Answered>) -> Measured {
    answered.sort_unstable_by_key(|(number, ..)| *number);
    let mut latencies = Latencies::for_requests(answered.len());
    answered.iter().for_each(|(.., took)| latencies.add(*took));
    latencies.put(&mut measured);
    measured.checksum =
        Answers::checksum(answered.into_iter().map(|(_, nearest, _)| answers(nearest)));
    measured
}
