//! A whole rehearsal: make the people, load them, drive the server, sum up.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::cast::{Cast, Feed, Stories};
use crate::client::Requests;
pub use crate::load::LoadError;
use crate::load::Loading;
use crate::population::{GraphError, PEOPLE_MAX};
use crate::processor;
use crate::run::{Finished, Kind, Script, cancelled, run};
use crate::summary::{DrawingsSummary, FeedSummary, LagSummary, StoriesSummary, Summary};
use crate::workload::{Drawings, Load, Storytelling};

/// Most friends of each person: all of a population still fit 32-bit positions.
const FRIENDS_MAX: u32 = 400;
const _: () = assert!(PEOPLE_MAX <= u32::MAX / FRIENDS_MAX);
/// Most stories that may live at a time, which bounds what is kept about them here.
const STORIES_MAX: u64 = 100_000_000;

/// What to rehearse, and where.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The server; it must be empty.
    pub target: SocketAddr,
    /// The server's application key, if it wants one.
    pub key: Option<String>,
    /// How many people to make, at least 2; a graph brings its own.
    pub users: u32,
    /// How busy they are with posts and home timelines, if these are rehearsed.
    pub feed: Option<Load>,
    /// How they live with friends and stories, if these are rehearsed.
    pub stories: Option<Storytelling>,
    /// What drawings are recognised, if that is rehearsed.
    pub drawings: Option<Drawings>,
    /// How long to drive the server, after loading.
    pub duration: Duration,
    /// The seed of the population, the names, the actions and the texts.
    pub seed: u64,
    /// An edge list to take follows and friendships from instead of making them.
    pub graph: Option<PathBuf>,
    /// How many connections carry the load, at least 1.
    pub connections: usize,
    /// Where to write the summary as JSON, if anywhere.
    pub json: Option<PathBuf>,
}

impl SimulateOptions {
    /// Whether anything is rehearsed that people do.
    pub(crate) fn has_people(&self) -> bool {
        self.feed.is_some() || self.stories.is_some()
    }
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
    /// The people cannot be loaded into the server.
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
    let cast = tokio::select! {
        cast = make(&options) => Arc::new(cast?),
        () = cancelled(&mut cancel) => return Err(SimError::Interrupted),
    };
    let mut summary = beginning(&cast, options.graph.is_none());
    describe(&summary, out)?;

    let loading = Instant::now();
    let load =
        Loading { target: options.target, requests: requests.clone(), cast: Arc::clone(&cast) };
    tokio::select! {
        loaded = Arc::new(load).load() => loaded?,
        () = cancelled(&mut cancel) => return Err(SimError::Interrupted),
    }
    summary.load_s = loading.elapsed().as_secs_f64();
    writeln!(out, "loaded in {:.1} s", summary.load_s)?;

    let references = cast.drawings.as_ref().map(|drawings| Arc::clone(&drawings.references));
    let script =
        Script { requests: requests.clone(), seed: options.seed, references, kinds: kinds(&cast) };
    let (target, end, connections) = (&options.target, options.duration, options.connections);
    let finished = run(target, script, cast.actions(), end, connections, out, &mut cancel).await?;
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
    let is_made = options.has_people() && options.graph.is_none();
    if is_made && !(2..=PEOPLE_MAX).contains(&options.users) {
        return bad(format!("a rehearsal needs 2 to {PEOPLE_MAX} people, not {}", options.users));
    }
    if options.drawings.as_ref().is_some_and(|drawings| drawings.references.is_empty()) {
        return bad("drawings are made of at least 1 reference".to_owned());
    }
    if options.connections == 0 {
        return bad("a rehearsal needs at least 1 connection".to_owned());
    }
    if let Some(Storytelling { friends, stories, life_s, .. }) = options.stories {
        let friends_max = FRIENDS_MAX.min(options.users - 1);
        if options.graph.is_none() && !(1..=friends_max).contains(&friends) {
            return bad(format!("everybody can have 1 to {friends_max} friends, not {friends}"));
        }
        if stories == 0 || u64::from(options.users) * u64::from(stories) > STORIES_MAX {
            let people = options.users;
            return bad(format!("{people} people cannot have {stories} stories each"));
        }
        if life_s == 0 {
            return bad("a story lives at least 1 s".to_owned());
        }
    }
    Ok(())
}

async fn make(options: &SimulateOptions) -> Result<Cast, SimError> {
    let options = options.clone();
    match spawn_blocking(move || Cast::new(&options)).await {
        Ok(cast) => Ok(cast?),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// The kinds of requests that these people make.
fn kinds(cast: &Cast) -> Vec<Kind> {
    let feed = cast.feed.iter().flat_map(|_| Kind::FEED);
    let stories = cast.stories.iter().flat_map(|_| Kind::STORIES);
    feed.chain(stories).chain(cast.drawings.iter().flat_map(|_| Kind::DRAWINGS)).collect()
}

/// The summary before anything has happened; `made` tells that no graph was read.
fn beginning(cast: &Cast, made: bool) -> Summary {
    let feed = cast.feed.as_ref().map(|Feed { follows, load }| FeedSummary {
        load: *load,
        follows: follows.follows(),
        shares: made.then(|| follows.shares()),
        posts_by_top_twentieth: 0.0,
    });
    let stories = |Stories { friends, tellings, telling }: &Stories| StoriesSummary {
        friendships: friends.follows() / 2,
        stories_each: telling.stories,
        story_life_s: telling.life_s,
        stories_per_request: tellings.per_request(),
        stories_due_per_second: tellings.per_second(),
        homes_due_per_second: telling.homes_per_second.into(),
        story_reads_due_per_second: telling.story_reads_per_second(),
    };
    let drawings = |drawings: &Drawings| DrawingsSummary {
        references: drawings.references.len(),
        recognitions_due_per_second: drawings.per_second,
    };
    Summary {
        seed: cast.seed,
        people: cast.people,
        feed,
        stories: cast.stories.as_ref().map(stories),
        drawings: cast.drawings.as_ref().map(drawings),
        load_s: 0.0,
        run_s: 0.0,
        interrupted: false,
        kinds: Vec::new(),
        errors: Vec::new(),
        error_messages: Vec::new(),
        lag: LagSummary::default(),
        server: None,
        closed: false,
        delivery: None,
        correctness: None,
        invalid: Vec::new(),
    }
}

fn describe(summary: &Summary, out: &mut (dyn Write + Send)) -> io::Result<()> {
    writeln!(out, "{} (seed {})", summary.cast(), summary.seed)?;
    if let Some(FeedSummary { shares: Some(shares), .. }) = &summary.feed {
        write!(out, "{shares}")?;
    }
    if let Some(stories) = &summary.stories {
        write!(out, "{stories}")?;
    }
    out.flush()
}

fn finish(summary: &mut Summary, finished: &Finished) {
    let meter = &finished.meter;
    summary.run_s = finished.took.as_secs_f64();
    summary.interrupted = finished.interrupted;
    summary.kinds = meter.whole.iter().map(|measured| measured.summary(summary.run_s)).collect();
    if let Some(feed) = &mut summary.feed {
        feed.posts_by_top_twentieth = meter.posts_by_top(summary.people.div_ceil(20) as usize);
    }
    summary.errors = meter.errors();
    summary.error_messages = meter.messages();
    summary.lag = meter.lag();
}
