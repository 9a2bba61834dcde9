//! Results of a simulation, as a table and as JSON.

use std::path::Path;
use std::{fmt, fs, io};

use serde::Serialize;

use crate::population::{Measured, Shares};
use crate::units;
use crate::watch::Delivery;
use crate::workload::{KeyLoad, Load};

/// Outcome of a simulation. Latencies are measured from the due times of actions, or from sending if `closed`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The seed of the simulation.
    pub seed: u64,
    /// The number of users.
    pub users: u32,
    /// Posts and home timelines, if they were simulated.
    #[serde(flatten)]
    pub feed: Option<FeedSummary>,
    /// Friends and stories, if they were simulated.
    #[serde(flatten)]
    pub stories: Option<StoriesSummary>,
    /// Drawings, if they were simulated.
    #[serde(flatten)]
    pub drawings: Option<DrawingsSummary>,
    /// The load on keys of a bucket, if that was simulated.
    #[serde(flatten)]
    pub keys: Option<KeyLoad>,
    /// Duration of loading, in seconds.
    pub load_s: f64,
    /// Duration of the run up to its last response, in seconds.
    pub run_s: f64,
    /// Whether the run was cut short.
    pub interrupted: bool,
    /// Counts and latencies by kind of request.
    pub kinds: Vec<KindSummary>,
    /// Failures by kind.
    pub errors: Vec<ErrorCount>,
    /// The first failures in full.
    pub error_messages: Vec<String>,
    /// Number of requests sent to another node because a node could not answer. Requests that then succeeded are not
    /// failures.
    pub retried: u64,
    /// Delays of the generator.
    pub lag: LagSummary,
    /// Resource usage of the server during the run, if it reported it.
    pub server: Option<ServerSummary>,
    /// Whether each connection sent its next request after the response to the previous one. A slow server then got
    /// fewer requests.
    pub closed: bool,
    /// Delivery lag over the whole run, if any was sampled.
    pub delivery: Option<Delivery>,
    /// Result of the consistency checks of sampled readers, if any.
    pub correctness: Option<Correctness>,
    /// Reasons why the run is inconclusive; empty if it is conclusive.
    pub inconclusive: Vec<String>,
    /// Resource usage of the generator itself, where the system reports it.
    pub generator: Option<GeneratorSummary>,
}

/// Resource usage of a server during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ServerSummary {
    /// Processor time, in cores.
    pub cores: f64,
    /// Resident memory at the end, in bytes.
    pub memory_bytes: u64,
    /// Maximum resident memory at the end of a window, in bytes.
    pub memory_bytes_max: u64,
}

/// Resource usage of a generator during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GeneratorSummary {
    /// Processor time, in cores.
    pub cores: f64,
    /// Resident memory at the end, in bytes.
    pub memory_bytes: u64,
}

/// Home timelines of sampled readers compared with accepted posts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Correctness {
    /// Number of readers whose homes were checked.
    pub readers: u64,
    /// Number of pages of homes that were compared with the expected posts.
    pub pages: u64,
    /// Number of expected posts on these pages.
    pub posts: u64,
    /// Number of expected posts that were missing.
    pub missing: u64,
    /// Number of posts that appeared twice.
    pub doubled: u64,
    /// Number of posts that were listed after an older post.
    pub out_of_order: u64,
    /// Number of posts that should not have appeared.
    pub unexpected: u64,
    /// The first faults in full.
    pub examples: Vec<String>,
}

impl Correctness {
    /// The number of faults of all kinds.
    pub fn faults(&self) -> u64 {
        self.missing + self.doubled + self.out_of_order + self.unexpected
    }
}

/// Drawings to recognize.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawingsSummary {
    /// Number of reference drawings that were distorted.
    pub references: usize,
    /// Due number of recognitions per second.
    pub recognitions_due_per_second: f64,
}

/// The part with follows and posts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeedSummary {
    /// The level of activity.
    pub load: Load,
    /// The number of follows.
    pub follows: u64,
    /// Comparison of the population with the tables from which it was generated; `None` for a graph from a file.
    pub shares: Option<Shares>,
    /// Other measured properties.
    pub measured: Measured,
    /// The percentage of posts written by the most active twentieth of users.
    pub posts_by_top_twentieth: f64,
}

/// Friends who post stories, with the due rates. The achieved rates are in [`Summary::kinds`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoriesSummary {
    /// The number of friendships.
    pub friendships: u64,
    /// Number of live stories of each user.
    pub stories_each: u32,
    /// TTL of a story, in seconds.
    pub story_life_s: u32,
    /// Maximum number of stories per request.
    pub stories_per_request: u32,
    /// Due number of story posts per second: each story is posted again when it expires.
    pub stories_due_per_second: f64,
    /// Due reads of story homes per second.
    pub homes_due_per_second: f64,
    /// Due reads of one friend's stories per second.
    pub story_reads_due_per_second: f64,
}

/// Counts and latencies of one kind of request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindSummary {
    /// Name of the kind, for example posts, home reads or mention reads.
    pub kind: &'static str,
    /// Number of successful requests.
    pub count: u64,
    /// Successful requests per second.
    pub per_second: f64,
    /// Number of failed requests.
    pub errors: u64,
    /// Median in milliseconds.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// Failures of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// Kind: a status, `timeout`, `connection` or `not started`.
    pub kind: String,
    /// Number of failures.
    pub count: u64,
}

/// Delays of the starts of actions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LagSummary {
    /// 99th percentile of the generator's delay while a connection was free, in milliseconds.
    pub scheduling_delay_p99_ms: f64,
    /// Number of actions that started more than 10 ms late, for any reason.
    pub late_starts: u64,
    /// Number of actions that had to wait for a free connection.
    pub waited_for_connection: u64,
}

impl Summary {
    /// The number of failures of all kinds.
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }

    /// Multiplies the due rates.
    pub(crate) fn speed_up(&mut self, factor: f64) {
        if let Some(stories) = &mut self.stories {
            stories.stories_due_per_second *= factor;
            stories.homes_due_per_second *= factor;
            stories.story_reads_due_per_second *= factor;
        }
        if let Some(drawings) = &mut self.drawings {
            drawings.recognitions_due_per_second *= factor;
        }
    }

    /// Writes the summary as JSON to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_json(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec_pretty(self)?)
    }

    /// The scenario as text, without a final period.
    pub(crate) fn scenario(&self) -> String {
        let follows =
            self.feed.iter().map(|feed| format!("{} follows", units::count(feed.follows)));
        let friends =
            |stories: &StoriesSummary| format!("{} friendships", units::count(stories.friendships));
        let ties: Vec<String> = follows.chain(self.stories.iter().map(friends)).collect();
        let users =
            format!("{} users with {}", units::count(self.users.into()), ties.join(" and "));
        let drawings = |drawings: &DrawingsSummary| {
            let DrawingsSummary { references, recognitions_due_per_second } = drawings;
            format!("drawings made of {references}, {recognitions_due_per_second} per second")
        };
        let users = (!ties.is_empty()).then_some(users);
        let keys = |keys: &KeyLoad| {
            let KeyLoad { ycsb, records, value_bytes } = keys;
            format!("a bucket of {records} records of {value_bytes} bytes, YCSB {ycsb:?}")
        };
        let parts = users.into_iter().chain(self.drawings.iter().map(drawings));
        let parts: Vec<String> = parts.chain(self.keys.iter().map(keys)).collect();
        parts.join(", ")
    }
}

impl fmt::Display for Correctness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Correctness { readers, pages, posts, missing, doubled, out_of_order, .. } = self;
        if *pages == 0 {
            return writeln!(f, "correctness: no timeline could be read");
        }
        write!(
            f,
            "correctness: {posts} posts on {pages} pages, {readers} home timelines in full: "
        )?;
        if self.faults() == 0 {
            return writeln!(f, "complete, in order, without duplicates or unexpected posts");
        }
        let unexpected = self.unexpected;
        writeln!(
            f,
            "{missing} MISSING, {doubled} DUPLICATE, {out_of_order} OUT OF ORDER, {unexpected} \
             UNEXPECTED"
        )?;
        self.examples.iter().try_for_each(|example| writeln!(f, "  {example}"))
    }
}

impl fmt::Display for StoriesSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoriesSummary { stories_each, story_life_s, stories_per_request, .. } = self;
        writeln!(
            f,
            "{stories_each} live stories of each user with a TTL of {story_life_s} s; due per second: {:.1} stories \
             ({stories_per_request} a request), {:.1} story homes, {:.1} story reads",
            self.stories_due_per_second, self.homes_due_per_second, self.story_reads_due_per_second
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { load_s, run_s, lag, .. } = self;
        writeln!(f, "{}, loaded in {load_s:.1} s, driven for {run_s:.1} s", self.scenario())?;
        writeln!(
            f,
            "{:<14}{:>10}{:>10}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "", "count", "per s", "errors", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"
        )?;
        for kind in &self.kinds {
            let KindSummary { kind: name, count, per_second, errors, p50_ms, p90_ms, .. } = kind;
            write!(
                f,
                "{name:<14}{count:>10}{per_second:>10.1}{errors:>8}{p50_ms:>10.2}{p90_ms:>10.2}"
            )?;
            writeln!(f, "{:>10.2}{:>10.2}{:>10.2}", kind.p99_ms, kind.p999_ms, kind.max_ms)?;
        }
        if self.retried > 0 {
            writeln!(f, "requests were sent again to another node {} times", self.retried)?;
        }
        if let Some(FeedSummary { posts_by_top_twentieth, .. }) = &self.feed {
            writeln!(
                f,
                "the most active 5 % of users wrote {posts_by_top_twentieth:.1} % of the posts"
            )?;
        }
        if let Some(stories) = &self.stories {
            write!(f, "{stories}")?;
        }
        if let Some(ServerSummary { cores, memory_bytes, .. }) = self.server {
            let (percent, megabytes) = (cores * 100.0, memory_bytes as f64 / 1e6);
            writeln!(f, "the server used {percent:.0} % of one core and {megabytes:.0} MB")?;
        }
        if let Some(delivery) = &self.delivery {
            writeln!(f, "delivery: {delivery}")?;
        }
        if let Some(correctness) = &self.correctness {
            write!(f, "{correctness}")?;
        }
        write!(
            f,
            "generator: scheduling delay p99 {:.2} ms, {} starts more than 10 ms late, {} waited for a connection",
            lag.scheduling_delay_p99_ms, lag.late_starts, lag.waited_for_connection
        )?;
        if let Some(GeneratorSummary { cores, memory_bytes }) = self.generator {
            write!(f, ", {:.0} % of one core, {:.0} MB", cores * 100.0, memory_bytes as f64 / 1e6)?;
        }
        writeln!(f)?;
        if self.interrupted {
            writeln!(f, "the run was cut short")?;
        }
        if self.closed {
            writeln!(f, "closed loop: a slow server gets fewer requests; waiting is not counted")?;
        }
        self.write_errors(f)?;
        for reason in &self.inconclusive {
            writeln!(f, "INCONCLUSIVE: {reason}")?;
        }
        Ok(())
    }
}

impl Summary {
    fn write_errors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.errors.is_empty() {
            return writeln!(f, "no errors");
        }
        for ErrorCount { kind, count } in &self.errors {
            writeln!(f, "errors: {count} x {kind}")?;
        }
        for message in &self.error_messages {
            writeln!(f, "  {message}")?;
        }
        Ok(())
    }
}
