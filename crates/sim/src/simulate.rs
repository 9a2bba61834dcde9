//! A whole rehearsal: make the population, load it, drive it, sum up.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::Population;
use crate::client::Requests;
pub use crate::load::LoadError;
use crate::load::Loading;
use crate::population::{GraphError, PEOPLE_MAX};
use crate::run::{Finished, Kind, Script, cancelled, run};
use crate::summary::{LagSummary, Summary};
use crate::workload::{Load, Workload};

/// What to rehearse, and where.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The server; it must be empty.
    pub target: SocketAddr,
    /// The server's application key, if it wants one.
    pub key: Option<String>,
    /// How many people to make, at least 2; a graph brings its own.
    pub users: u32,
    /// How busy they are.
    pub load: Load,
    /// How long to drive the server, after loading.
    pub duration: Duration,
    /// The seed of the population, the names, the actions and the texts.
    pub seed: u64,
    /// An edge list to take the population from instead of making one.
    pub graph: Option<PathBuf>,
    /// How many connections carry the load, at least 1.
    pub connections: usize,
    /// Where to write the summary as JSON, if anywhere.
    pub json: Option<PathBuf>,
}

/// Why a rehearsal did not come to a summary.
#[derive(Debug, Error)]
pub enum SimError {
    /// An option makes no sense.
    #[error("{0}")]
    BadOption(String),
    /// The graph cannot be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The population cannot be loaded into the server.
    #[error("loading failed: {0}")]
    Load(#[from] LoadError),
    /// The rehearsal was cut short before there was anything to sum up.
    #[error("interrupted before the run began")]
    Interrupted,
    /// The outcome cannot be written.
    #[error("cannot write the outcome: {0}")]
    Write(#[from] io::Error),
}

/// Rehearses a launch against the server at `options.target` and tells about it on `out`. When
/// `cancel` turns true during the run, the summary is of the run so far.
pub async fn simulate(
    options: SimulateOptions,
    out: &mut (dyn Write + Send),
    mut cancel: watch::Receiver<bool>,
) -> Result<Summary, SimError> {
    check(&options)?;
    let requests = Requests::new(&options.target.to_string(), options.key.as_deref());
    let population = tokio::select! {
        population = populate(&options) => Arc::new(population?),
        () = cancelled(&mut cancel) => return Err(SimError::Interrupted),
    };
    let mut summary = beginning(&options, &population);
    describe(&summary, out)?;

    let loading = Instant::now();
    let load = Loading {
        target: options.target,
        requests: requests.clone(),
        population: Arc::clone(&population),
        seed: options.seed,
    };
    tokio::select! {
        loaded = Arc::new(load).load() => loaded?,
        () = cancelled(&mut cancel) => return Err(SimError::Interrupted),
    }
    summary.load_s = loading.elapsed().as_secs_f64();
    writeln!(out, "loaded in {:.1} s", summary.load_s)?;

    let actions = Workload::new(population, options.load, options.seed);
    let script = Script { requests, seed: options.seed };
    let (target, end, connections) = (&options.target, options.duration, options.connections);
    let finished = run(target, script, actions, end, connections, out, &mut cancel).await?;
    finish(&mut summary, &finished);
    write!(out, "{summary}")?;
    if let Some(path) = &options.json {
        let json = serde_json::to_vec_pretty(&summary).map_err(io::Error::from)?;
        fs::write(path, json)?;
    }
    Ok(summary)
}

fn check(options: &SimulateOptions) -> Result<(), SimError> {
    let bad = |problem: String| Err(SimError::BadOption(problem));
    if options.graph.is_none() && !(2..=PEOPLE_MAX).contains(&options.users) {
        return bad(format!("a rehearsal needs 2 to {PEOPLE_MAX} people, not {}", options.users));
    }
    if options.connections == 0 {
        return bad("a rehearsal needs at least 1 connection".to_owned());
    }
    Ok(())
}

async fn populate(options: &SimulateOptions) -> Result<Population, SimError> {
    let (users, seed, graph) = (options.users, options.seed, options.graph.clone());
    let made = spawn_blocking(move || match graph {
        Some(path) => Population::from_edges(&path),
        None => Ok(Population::made(users, seed)),
    });
    match made.await {
        Ok(population) => Ok(population?),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// The summary before anything has happened.
fn beginning(options: &SimulateOptions, population: &Population) -> Summary {
    Summary {
        seed: options.seed,
        load: options.load,
        people: population.people(),
        follows: population.follows(),
        shares: options.graph.is_none().then(|| population.shares()),
        load_s: 0.0,
        run_s: 0.0,
        interrupted: false,
        kinds: Vec::new(),
        posts_by_top_twentieth: 0.0,
        errors: Vec::new(),
        error_messages: Vec::new(),
        lag: LagSummary::default(),
    }
}

fn describe(summary: &Summary, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let Summary { seed, people, follows, .. } = summary;
    writeln!(out, "{people} people with {follows} follows (seed {seed})")?;
    if let Some(shares) = &summary.shares {
        write!(out, "{shares}")?;
    }
    out.flush()
}

fn finish(summary: &mut Summary, finished: &Finished) {
    let meter = &finished.meter;
    summary.run_s = finished.took.as_secs_f64();
    summary.interrupted = finished.interrupted;
    let kinds = Kind::ALL.into_iter().zip(&meter.whole);
    summary.kinds = kinds.map(|(kind, measured)| measured.summary(kind, summary.run_s)).collect();
    summary.posts_by_top_twentieth = meter.posts_by_top(summary.people.div_ceil(20) as usize);
    summary.errors = meter.errors();
    summary.error_messages = meter.messages();
    summary.lag = meter.lag();
}
