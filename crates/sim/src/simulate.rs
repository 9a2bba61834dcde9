//! A whole simulation: generates the users, loads them, drives the server and summarizes the results.

mod drive;
mod ready;

use std::io::{self, Write};
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

pub use crate::api::LoadError;
use crate::api::{self, Api, Needs};
use crate::client::Target;
use crate::generator;
use crate::joined::joined;
use crate::options::{ApiOptions, Drive, SimulateOptions};
use crate::players::Players;
use crate::population::{GraphError, PEOPLE_MAX};
use crate::run::{Finished, Lanes, RunConfig, cancelled, run, window_of};
use crate::scenario::{Feed, Scenario, Stories};
use crate::summary::{DrawingsSummary, FeedSummary, StoriesSummary, Summary};
use crate::watch::Watcher;
use crate::workload::{Drawings, StoryLoad};
use ready::{done, load, wait_until_idle};

/// Maximum number of friends per user, so that friendships have 32-bit positions.
const FRIENDS_MAX: u32 = 400;
const _: () = assert!(PEOPLE_MAX <= u32::MAX / FRIENDS_MAX);
/// Maximum number of live stories, which bounds the memory for their schedule.
const STORIES_MAX: u64 = 100_000_000;

/// Maximum scheduling delay (99th percentile) of a conclusive run, in milliseconds.
const SCHEDULING_DELAY_MS_MAX: f64 = 10.0;
/// Limits of a conclusive run: the share of time in which the generator's threads are busy, and the share of requests
/// that wait for a connection. Above both limits the generator has unread responses. The scheduling delay does not show
/// this, because no connection is free.
const BUSY_SHARE_MAX: f64 = 0.97;
const WAITED_SHARE_MAX: f64 = 0.01;
/// Busy share of a late generator's threads above which the generator itself caused the delay. Otherwise its threads
/// were ready to run and did not get a processor.
const OCCUPIED_SHARE: f64 = 0.5;

/// Required state of the server before loading.
fn needs(options: &SimulateOptions) -> Needs {
    Needs {
        no_users: options.has_users() && !options.loaded,
        no_bucket: options.keys.is_some() && !options.loaded,
    }
}

/// Error of a simulation.
#[derive(Debug, Error)]
pub enum SimError {
    /// An option is invalid.
    #[error("{0}")]
    BadOption(String),
    /// The graph cannot be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The users cannot be loaded into the server.
    #[error("cannot load the server")]
    Load(#[source] LoadError),
    /// The server does not answer, or cannot be loaded in its current state.
    #[error("cannot use the server")]
    Server(#[from] LoadError),
    /// The simulation was interrupted before the run started.
    #[error("interrupted before the run started")]
    Interrupted,
    /// The results cannot be written.
    #[error("cannot write the results")]
    Write(#[from] io::Error),
}

/// A loaded server, ready to be driven once or several times.
pub struct Simulation {
    target: Target,
    api: Arc<dyn Api>,
    players: Players,
    /// Summary of the preparation.
    summary: Summary,
    turns: u64,
}

impl Simulation {
    /// Generates the users and loads them into the server, which must be empty. Reports progress on `out`.
    ///
    /// # Errors
    /// If an option is invalid, the graph cannot be read, the server cannot be loaded, or `cancel` becomes true.
    pub async fn prepare(
        options: SimulateOptions,
        out: &mut (dyn Write + Send),
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<Simulation, SimError> {
        check(&options)?;
        let target = options.target.clone();
        let api = api::of(&options);
        done(Arc::clone(&api).check(needs(&options)), cancel).await?.map_err(SimError::Server)?;
        let scenario = tokio::select! {
            scenario = make(&options) => Arc::new(scenario?),
            () = cancelled(cancel) => return Err(SimError::Interrupted),
        };
        let mut summary = beginning(&scenario, options.graph.is_none());
        describe(&summary, out)?;
        let signed_in = done(Arc::clone(&api).sign_in(scenario.users), cancel).await?;
        signed_in.map_err(SimError::Load)?;
        if !options.loaded {
            summary.load_s = load(&api, &scenario, cancel).await?;
            writeln!(out, "loaded in {:.1} s", summary.load_s)?;
            tokio::select! {
                () = wait_until_idle(&target, &*api) => {}
                () = cancelled(cancel) => return Err(SimError::Interrupted),
            }
        }
        let players = joined(spawn_blocking(move || Players::of(&scenario)).await);
        Ok(Simulation { target, api, players, summary, turns: 0 })
    }

    /// The scenario as one line of text.
    pub fn scenario(&self) -> String {
        self.summary.scenario()
    }

    /// Drives the server, and reports progress to the watchers. When `cancel` turns true, the run ends, and the summary
    /// covers it so far. Each call uses other actions with the same distribution.
    ///
    /// # Errors
    /// If an option is invalid, or a watcher fails.
    pub async fn drive(
        &mut self,
        drive: &Drive,
        watchers: &mut [&mut dyn Watcher],
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<Summary, SimError> {
        drive.check()?;
        let config = RunConfig {
            title: self.summary.scenario(),
            kinds: self.players.kinds(),
            end: drive.duration,
            window: window_of(drive.duration),
            connections: drive.connections,
            lanes: Lanes::Threads(drive.threads),
            closed: drive.closed,
            retries: self.target.is_cluster(),
        };
        let actions = self.players.actions(drive, self.turns);
        self.turns += 1;
        let (api, checked) = (Arc::clone(&self.api), self.players.checked.clone());
        let begun = generator::processor_time();
        let finished = run(&self.target, api, config, actions, checked, watchers, cancel).await?;
        let mut summary = self.summary.clone();
        summary.closed = drive.closed;
        summary.speed_up(self.players.speed(drive));
        finish(&mut summary, &finished, |kind, count| self.api.limited(kind, count));
        summary.generator = generator::used_since(begun, finished.ended.took);
        Ok(summary)
    }
}

/// Simulates users of the server at `options.target`, and reports progress on `out` and to the watchers. When `cancel`
/// turns true, the run ends, and the summary covers it so far.
///
/// # Errors
/// Those of [`Simulation::prepare`] and [`Simulation::drive`].
pub async fn simulate(
    options: SimulateOptions,
    drive: &Drive,
    out: &mut (dyn Write + Send),
    watchers: &mut [&mut dyn Watcher],
    mut cancel: watch::Receiver<bool>,
) -> Result<Summary, SimError> {
    drive.check()?;
    let mut simulation = Simulation::prepare(options, out, &mut cancel).await?;
    let summary = simulation.drive(drive, watchers, &mut cancel).await?;
    write!(out, "{summary}")?;
    Ok(summary)
}

fn check(options: &SimulateOptions) -> Result<(), SimError> {
    let bad = |problem: String| Err(SimError::BadOption(problem));
    let is_made = options.has_users() && options.graph.is_none();
    if is_made && !(2..=PEOPLE_MAX).contains(&options.making.people) {
        return bad(format!(
            "a simulation needs 2 to {PEOPLE_MAX} users, not {}",
            options.making.people
        ));
    }
    if let Some(fault) = options.making.fault() {
        return bad(fault);
    }
    if options.drawings.as_ref().is_some_and(|drawings| drawings.references.is_empty()) {
        return bad("at least 1 reference drawing is needed".to_owned());
    }
    if options.keys.is_some_and(|keys| keys.records == 0 || keys.value_bytes == 0) {
        return bad("at least 1 record of at least 1 byte is needed".to_owned());
    }
    if matches!(options.api, ApiOptions::Mastodon(_)) {
        let others =
            options.stories.is_some() || options.drawings.is_some() || options.keys.is_some();
        if others || options.feed.is_none() {
            return bad("Mastodon's API has follows and posts, and no stories, keys and drawings"
                .to_owned());
        }
    }
    if let Some(StoryLoad { friends, stories, life_s, .. }) = options.stories {
        let friends_max = FRIENDS_MAX.min(options.making.people - 1);
        if options.graph.is_none() && !(1..=friends_max).contains(&friends) {
            return bad(format!("a user can have 1 to {friends_max} friends, not {friends}"));
        }
        if stories == 0 || u64::from(options.making.people) * u64::from(stories) > STORIES_MAX {
            let users = options.making.people;
            return bad(format!("{users} users cannot have {stories} stories each"));
        }
        if life_s == 0 {
            return bad("the TTL of a story is at least 1 s".to_owned());
        }
    }
    Ok(())
}

async fn make(options: &SimulateOptions) -> Result<Scenario, SimError> {
    let options = options.clone();
    Ok(joined(spawn_blocking(move || Scenario::new(&options)).await)?)
}

/// Returns the summary of the preparation. `made` is false if a graph was read.
fn beginning(scenario: &Scenario, made: bool) -> Summary {
    let feed = scenario.feed.as_ref().map(|Feed { follows, measured, load }| FeedSummary {
        load: *load,
        follows: follows.follows(),
        shares: made.then(|| follows.shares()),
        measured: measured.clone(),
        posts_by_top_twentieth: 0.0,
    });
    let stories = |Stories { friends, schedule, story_load }: &Stories| StoriesSummary {
        friendships: friends.follows() / 2,
        stories_each: story_load.stories,
        story_life_s: story_load.life_s,
        stories_per_request: schedule.per_request(),
        stories_due_per_second: schedule.per_second(),
        homes_due_per_second: story_load.homes_per_second.into(),
        story_reads_due_per_second: story_load.story_reads_per_second(),
    };
    let drawings = |drawings: &Drawings| DrawingsSummary {
        references: drawings.references.len(),
        recognitions_due_per_second: drawings.per_second.into(),
    };
    Summary {
        seed: scenario.seed,
        users: scenario.users,
        feed,
        stories: scenario.stories.as_ref().map(stories),
        drawings: scenario.drawings.as_ref().map(drawings),
        keys: scenario.keys,
        ..Summary::default()
    }
}

fn describe(summary: &Summary, out: &mut (dyn Write + Send)) -> io::Result<()> {
    writeln!(out, "{} (seed {})", summary.scenario(), summary.seed)?;
    if let Some(FeedSummary { shares, measured, .. }) = &summary.feed {
        if let Some(shares) = shares {
            write!(out, "{shares}")?;
        }
        write!(out, "{measured}")?;
    }
    if let Some(stories) = &summary.stories {
        write!(out, "{stories}")?;
    }
    out.flush()
}

/// Completes the summary. `limited` returns why failures of a kind make the run inconclusive, if they do.
fn finish(
    summary: &mut Summary,
    finished: &Finished,
    limited: impl Fn(&str, u64) -> Option<String>,
) {
    let meter = &finished.meter;
    summary.run_s = finished.ended.took.as_secs_f64();
    summary.interrupted = finished.ended.interrupted;
    summary.kinds = meter.kinds.iter().map(|measured| measured.summary(summary.run_s)).collect();
    if let Some(feed) = &mut summary.feed {
        feed.posts_by_top_twentieth = meter.posts_by_top(summary.users.div_ceil(20) as usize);
    }
    summary.errors = meter.errors();
    summary.error_messages = meter.messages();
    let limits = summary.errors.iter().filter_map(|error| limited(&error.kind, error.count));
    summary.inconclusive.extend(limits);
    summary.retried = meter.retried;
    summary.lag = meter.lag();
    summary.server = finished.server;
    summary.delivery = finished.delivery;
    summary.correctness = finished.correctness.clone();
    let started: u64 = summary.kinds.iter().map(|kind| kind.count + kind.errors).sum();
    let waited = summary.lag.waited_for_connection as f64 / started.max(1) as f64;
    if finished.ended.busy_share > BUSY_SHARE_MAX && waited > WAITED_SHARE_MAX {
        summary.inconclusive.push(format!(
            "the generator itself was the bottleneck: its threads were busy {:.0} % of the time, and \
             {:.0} % of the requests waited (--threads sets their number)",
            finished.ended.busy_share * 100.0,
            waited * 100.0
        ));
    }
    if summary.lag.scheduling_delay_p99_ms > SCHEDULING_DELAY_MS_MAX {
        let delay = format!(
            "scheduling delay at p99 is {:.1} ms, more than {SCHEDULING_DELAY_MS_MAX} ms",
            summary.lag.scheduling_delay_p99_ms
        );
        let busy = finished.ended.busy_share * 100.0;
        summary.inconclusive.push(match finished.ended.busy_share > OCCUPIED_SHARE {
            true => format!(
                "the generator itself was the bottleneck: its {delay}, and its threads were busy {busy:.0} % of \
                 the time (--threads sets their number)"
            ),
            false => format!(
                "the machine was too busy: the generator's {delay}, although its threads were busy only {busy:.0} % \
                 of the time; stop other programs, or run the generator on another machine"
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::run::{Ended, Kind, Meter, Start};

    /// Summary of a run in which every request was `late_ms` late.
    fn late(late_ms: u64, ready: bool, busy_share: f64) -> Summary {
        let mut meter = Meter::new(&Kind::DRAWINGS);
        for _ in 0..100 {
            meter.started(Start { late: Duration::from_millis(late_ms), ready });
        }
        let took = Duration::from_secs(1);
        let ended = Ended { took, interrupted: false, busy_share };
        let (delivery, correctness, server) = (None, None, None);
        let finished = Finished { meter, ended, delivery, correctness, server };
        let mut summary = Summary::default();
        finish(&mut summary, &finished, |_, _| None);
        summary
    }

    #[test]
    fn a_late_generator_is_blamed_only_if_it_was_busy() {
        for (busy_share, says) in
            [(0.01, "the machine was too busy"), (0.9, "the generator itself")]
        {
            let summary = late(500, true, busy_share);
            let [why] = summary.inconclusive.as_slice() else { panic!("{summary}") };
            assert!(why.starts_with(says) && why.contains("500"), "{why}");
        }
    }

    #[test]
    fn a_run_in_which_the_generator_was_late_is_inconclusive() {
        let check = |late_ms: u64, ready: bool, busy_share: f64, valid: bool| {
            let summary = late(late_ms, ready, busy_share);
            assert_eq!(
                summary.inconclusive.is_empty(),
                valid,
                "{late_ms} ms: {:?}",
                summary.inconclusive
            );
            assert_eq!(summary.to_string().contains("INCONCLUSIVE"), !valid);
        };
        check(9, true, 0.5, true);
        check(12, true, 0.5, false);
        check(0, true, 1.0, true);
        // If its threads were not busy, the generator did not cause the waits for a connection.
        check(500, false, 0.9, true);
        check(500, false, 0.99, false);
    }
}
