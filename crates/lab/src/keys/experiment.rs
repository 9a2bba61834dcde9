//! Description and trials of the experiment.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::answers::Answers;
use crate::experiment::{Combine, DesignInfo, Experiment, Parameter, Quantity};
use crate::keys::central::Central;
use crate::keys::erlang;
use crate::keys::locked::Locked;
use crate::keys::redis::Redis;
use crate::keys::roost::Roost;
use crate::keys::sharded::Sharded;
use crate::keys::worker::Worker;
use crate::keys::workload::{Op, Workload, add};
use crate::keys::{Client as _, Design};
use crate::measured::{Marks, Measured, Stopwatch};
use crate::parameters::Parameters;
use crate::trial::{TrialError, block_on, boxed};

/// Experiment 6.
pub(crate) static EXPERIMENT: Experiment = Experiment {
    name: "keys",
    number: "6",
    title: "Key-value store: one actor, an actor per bucket, an actor per client",
    question: "Does a key-value store get faster when its one actor is divided by buckets, and then by clients?",
    setup: "All clients run at the same time, each with one request in progress. Each uses all buckets and has its \
            own keys in them, so that every answer is known. Values have 32 bytes.",
    original: "The original store was built three times: with one central process, with a process per bucket, and \
               with a process per client. If each step paid off, each design is faster than the one before it.",
    claims: &[("sharded", "central"), ("worker", "sharded"), ("worker", "central")],
    baseline: "central",
    designs: &DESIGNS,
    parameters: &PARAMETERS,
    combine: Combine::All,
    threads_per_core: 2,
    quantities: &[Quantity::THROUGHPUT, Quantity::CPU],
    check,
    expected: |parameters, seed| workload(parameters, seed).expected(),
    run,
};

const DESIGNS: [DesignInfo; 9] = [
    DesignInfo::new("central", "one actor with a dictionary of dictionaries"),
    DesignInfo::new(
        "sharded",
        "an actor per bucket behind one forwarding actor; the last bucket and the last value are cached",
    ),
    DesignInfo::new(
        "worker",
        "an actor per client, each with the addresses of all buckets, and an actor per bucket",
    ),
    DesignInfo::new("locked", "dictionaries behind 64 locks, without actors: the physical bound"),
    DesignInfo::new(
        "roost",
        "roost's engine in process, which logs every write; it has its own threads",
    ),
    DesignInfo::new(
        "roost-redis",
        "roost as a server in its own process, for Redis clients: a connection for each client",
    ),
    erlang("erlang-central", "the design central, in Erlang"),
    erlang("erlang-sharded", "the design sharded, in Erlang"),
    erlang("erlang-worker", "the design worker, in Erlang"),
];

/// Describes a design that needs Erlang.
const fn erlang(name: &'static str, about: &'static str) -> DesignInfo {
    DesignInfo { name, about, absent: erlang::absent }
}

const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "reads",
        about: "percentage of reads; the other operations write",
        range: 0..=100,
        quick: &[100, 50],
        full: &[100, 90, 50],
    },
    Parameter {
        name: "clients",
        about: "number of clients",
        range: 1..=1_000,
        quick: &[100],
        full: &[100],
    },
    Parameter {
        name: "operations",
        about: "operations of each client",
        range: 1..=1_000_000,
        quick: &[1_000],
        full: &[1_000],
    },
    Parameter {
        name: "buckets",
        about: "number of buckets",
        range: 1..=10_000,
        quick: &[1_000],
        full: &[1_000],
    },
    Parameter {
        name: "keys",
        about: "keys of each bucket",
        range: 1..=1_000,
        quick: &[100],
        full: &[100],
    },
];

fn workload(parameters: &Parameters, seed: u64) -> Workload {
    Workload {
        clients: parameters.count("clients"),
        operations: parameters.count("operations"),
        buckets: parameters.count("buckets"),
        keys: parameters.count("keys"),
        reads: parameters.count("reads"),
        seed,
    }
}

fn check(parameters: &Parameters) -> Result<(), String> {
    let workload = workload(parameters, 0);
    let keys = workload.buckets * workload.keys;
    if keys < workload.clients {
        return Err(format!("{} clients need as many keys; there are {keys}", workload.clients));
    }
    Ok(())
}

fn run(design: &str, parameters: &Parameters, seed: u64) -> Result<Measured, TrialError> {
    let (threads, workload) = (parameters.count("threads"), workload(parameters, seed));
    match design {
        "central" => block_on(threads, trial::<Central>(workload)),
        "sharded" => block_on(threads, trial::<Sharded>(workload)),
        "worker" => block_on(threads, trial::<Worker>(workload)),
        "locked" => block_on(threads, trial::<Locked>(workload)),
        "roost" => block_on(threads, trial::<Roost>(workload)),
        "roost-redis" => block_on(threads, trial::<Redis>(workload)),
        _ => match design.strip_prefix("erlang-") {
            Some(design) => erlang::run(design, threads, &workload),
            None => Err(TrialError::UnknownDesign(design.to_owned())),
        },
    }
}

/// Fills the store, then runs the operations of all clients.
async fn trial<D: Design>(workload: Workload) -> Measured {
    let store = Arc::new(D::start(workload.clients).await);
    load(&*store, &workload).await;
    let clients = (0..workload.clients)
        .map(|client| (client, store.connect(client), workload.operations_of(client)));
    let clients: Vec<_> = clients.collect();
    let stopwatch = Stopwatch::start();
    let start = stopwatch.started();
    let mut running = JoinSet::new();
    for (number, mut client, operations) in clients {
        running.spawn(boxed(async move {
            let (mut answers, mut marks) =
                (Answers::default(), Marks::new(start, operations.len()));
            for op in operations {
                match op {
                    Op::Read { bucket, key } => add(&mut answers, client.read(bucket, key).await),
                    Op::Write { bucket, key, value } => {
                        client.write(bucket, key, value).await;
                    }
                }
                marks.done();
            }
            (number, answers, marks)
        }));
    }
    let mut done = running.join_all().await;
    done.sort_unstable_by_key(|(number, ..)| *number);
    let (answers, marks): (Vec<_>, Vec<_>) =
        done.into_iter().map(|(_, answers, marks)| (answers, marks)).unzip();
    let operations = u64::from(workload.clients) * u64::from(workload.operations);
    let checksum = Answers::checksum(answers);
    Measured { checksum, ..stopwatch.end(operations, marks) }
}

/// Creates all buckets, then all keys.
async fn load<D: Design>(store: &D, workload: &Workload) {
    let mut first = store.connect(0);
    for bucket in 0..workload.buckets {
        first.create(bucket).await;
    }
    let mut keys: Vec<_> =
        (0..workload.clients).flat_map(|client| workload.keys_of(client)).collect();
    keys.sort_unstable_by_key(|(bucket, key, _)| (*bucket, *key));
    let share = keys.len().div_ceil(workload.clients as usize).max(1);
    let mut loading = JoinSet::new();
    for (number, keys) in (0..).zip(keys.chunks(share)) {
        let (mut client, keys) = (store.connect(number), keys.to_vec());
        loading.spawn(boxed(async move { client.write_all(keys).await }));
    }
    loading.join_all().await;
}
