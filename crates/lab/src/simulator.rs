//! Experiment 8: the simulated launch, with a server and a load generator in separate processes.
//!
//! The trial runs `roost simulate` and reads its summary: users have the follows and rates of 2014, and requests have
//! due times.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{fs, io};

use serde::Deserialize;

use crate::experiment::{Combine, DesignInfo, Experiment, Parameter, Quantity};
use crate::measured::{Measured, nanoseconds};
use crate::parameters::Parameters;
use crate::trial::TrialError;

const REQUESTS: Quantity = Quantity {
    name: "requests_per_second",
    title: "Requests",
    unit: "answered per second",
    more_is_better: true,
    words: ["faster", "slower"],
};
const POSTS: Quantity = Quantity { name: "posts_per_second", title: "Posts", ..REQUESTS };
const P99: Quantity = Quantity {
    name: "p99_us",
    title: "99th percentile of the latency of the slowest kind of request",
    unit: "µs after a request was due",
    more_is_better: false,
    words: ["faster", "slower"],
};
const CORES: Quantity = Quantity {
    name: "server_cores",
    title: "Processor time of the server",
    unit: "cores",
    more_is_better: false,
    words: ["needs less", "needs more"],
};

/// Experiment 8.
pub(crate) static EXPERIMENT: Experiment = Experiment {
    name: "launch",
    number: "8",
    title: "The simulator of 2014: a launch under light and heavy load",
    question: "How many requests of the simulated users does roost answer per second, and how fast?",
    setup: "Users with the followers and rates of measured statistics of 2014 post and read over HTTP, at seeded times, \
            independent of the server. So the users determine the number of requests, as long as the server keeps \
            up. Server and generator share the machine; the threads are those of the server and of the generator's \
            runtime. The wrong answer that voids a trial is a fault in a timeline, or a failed request.",
    original: "The report of 2014 gives 5,005, 4,110, 5,335 and 8,762 requests per second on its hardware. No claim is \
               made across machines.",
    claims: &[],
    baseline: "roost-http",
    designs: &[DesignInfo::new("roost-http", "roost as a server in its own process, over HTTP")],
    parameters: &[
        Parameter {
            name: "load",
            about: "1: the most active users post every 10 s; 2: every 2 s, and all read more",
            range: 1..=2,
            quick: &[2, 1],
            full: &[2, 1],
        },
        Parameter {
            name: "users",
            about: "number of users",
            range: 100..=1_000_000,
            quick: &[5_000],
            full: &[20_000],
        },
        Parameter {
            name: "seconds",
            about: "length of the run",
            range: 1..=3_600,
            quick: &[5],
            full: &[9],
        },
    ],
    combine: Combine::OneAtATime,
    threads_per_core: 1,
    quantities: &[REQUESTS, POSTS, P99, CORES],
    check: |_| Ok(()),
    expected: |_, _| 0,
    run,
};

/// Fields of the summary that the trial needs.
#[derive(Deserialize)]
struct Summary {
    run_s: f64,
    kinds: Vec<Kind>,
    server: Option<Server>,
    correctness: Option<BTreeMap<String, serde_json::Value>>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
    count: u64,
    errors: u64,
    per_second: f64,
    p99_ms: f64,
}

#[derive(Deserialize)]
struct Server {
    cores: f64,
}

fn run(design: &str, parameters: &Parameters, seed: u64) -> Result<Measured, TrialError> {
    if design != "roost-http" {
        return Err(TrialError::UnknownDesign(design.to_owned()));
    }
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("summary.json");
    let mut command = Command::new(std::env::current_exe()?);
    let load = if parameters.count("load") == 1 { "light" } else { "heavy" };
    command.args(["simulate", "--plain", "--load", load, "--json"]).arg(&json);
    command.args(["--users", &parameters.count("users").to_string()]);
    command.args(["--duration", &format!("{}s", parameters.count("seconds"))]);
    // Use a seed of 32 bits, which can be typed.
    command.args(["--seed", &(seed >> 32).to_string()]);
    command.env("TOKIO_WORKER_THREADS", parameters.count("threads").to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let output = command.output()?;
    // If requests failed, the process ends with an error but writes a summary.
    let Ok(summary) = read(&json) else {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("the simulation failed: {said}")).into());
    };
    let mut measured = summary.measured();
    if measured.wall_ns == 0 {
        measured.wall_ns = nanoseconds(start.elapsed());
    }
    Ok(measured)
}

fn read(path: &Path) -> io::Result<Summary> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

impl Summary {
    fn measured(&self) -> Measured {
        let faults = ["missing", "doubled", "out_of_order", "unexpected"];
        let faults =
            faults.iter().filter_map(|name| self.correctness.as_ref()?.get(*name)?.as_u64());
        let cores = self.server.as_ref().map(|server| server.cores);
        let mut measured = Measured {
            wall_ns: (self.run_s * 1e9) as u64,
            cpu_ns: (self.run_s * cores.unwrap_or(0.0) * 1e9) as u64,
            operations: self.kinds.iter().map(|kind| kind.count).sum(),
            checksum: faults.sum::<u64>() + self.kinds.iter().map(|kind| kind.errors).sum::<u64>(),
            ..Measured::default()
        };
        measured.put(&REQUESTS, self.kinds.iter().map(|kind| kind.per_second).sum());
        let posts = self.kinds.iter().filter(|kind| kind.kind == "posts");
        measured.put(&POSTS, posts.map(|kind| kind.per_second).sum());
        let slowest = self.kinds.iter().map(|kind| kind.p99_ms).fold(0.0, f64::max);
        measured.put(&P99, slowest * 1e3);
        if let Some(cores) = cores {
            measured.put(&CORES, cores);
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_with_faults_has_another_checksum() {
        let check = |errors: u64, missing: u64, expect: u64| {
            let summary = format!(
                r#"{{"run_s":2.0,"seed":1,"kinds":[
                    {{"kind":"posts","count":10,"errors":{errors},"per_second":5.0,"p50_ms":1.0,"p99_ms":2.5}},
                    {{"kind":"home reads","count":30,"errors":0,"per_second":15.0,"p50_ms":1.0,"p99_ms":1.5}}],
                    "server":{{"cores":0.5,"memory_bytes":1}},
                    "correctness":{{"readers":3,"missing":{missing},"doubled":0,"out_of_order":0,"unexpected":0,
                    "examples":[]}}}}"#
            );
            let summary: Summary = serde_json::from_str(&summary).unwrap();
            let measured = summary.measured();
            assert_eq!((measured.checksum, measured.operations), (expect, 40));
            let quantity = |quantity: &Quantity| measured.quantities[quantity.name];
            let found = [&REQUESTS, &POSTS, &P99, &CORES].map(quantity);
            assert_eq!(found, [20.0, 5.0, 2_500.0, 0.5]);
        };
        check(0, 0, 0);
        check(2, 1, 3);
    }
}
