//! Measurements of a run: latencies by kind of request, failures, and the scheduling delay of the generator.
//!
//! Each lane has a meter for the current window. The meter of the run is the sum of the meters of all windows and
//! lanes.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::summary::{ErrorCount, KindSummary, LagSummary};
use crate::watch::WindowKind;
use crate::workload::{KeyVerb, What};

/// Longest recorded latency, in microseconds: one hour.
const LATENCY_US_MAX: u64 = 3_600_000_000;
/// Maximum number of failures reported in full.
const MESSAGES_MAX: usize = 5;
/// Delay from which the start of an action counts as late.
const LATE: Duration = Duration::from_millis(10);

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Post,
    Home,
    Mentions,
    PostStory,
    StoriesHome,
    Stories,
    Recognize,
    UserTimeline,
    Key(KeyVerb),
}

impl Kind {
    /// Kinds of the feed.
    pub(crate) const FEED: [Kind; 3] = [Kind::Post, Kind::Home, Kind::Mentions];
    /// Kinds of the DeathStarBench load, which has user timelines and no mentions.
    pub(crate) const DEATHSTAR: [Kind; 3] = [Kind::Post, Kind::Home, Kind::UserTimeline];
    /// Kinds of stories.
    pub(crate) const STORIES: [Kind; 3] = [Kind::PostStory, Kind::StoriesHome, Kind::Stories];

    /// Kinds of drawings.
    pub(crate) const DRAWINGS: [Kind; 1] = [Kind::Recognize];

    /// Kind of an action's request.
    pub(crate) fn of(what: What) -> Kind {
        match what {
            What::Post { .. } => Kind::Post,
            What::ReadHome => Kind::Home,
            What::ReadMentions => Kind::Mentions,
            What::PostStories { .. } => Kind::PostStory,
            What::ReadStoriesHome => Kind::StoriesHome,
            What::ReadStories(_) => Kind::Stories,
            What::Recognize { .. } => Kind::Recognize,
            What::ReadUserTimeline(_) => Kind::UserTimeline,
            What::ReadKey(_) => Kind::Key(KeyVerb::Read),
            What::UpdateKey { .. } => Kind::Key(KeyVerb::Update),
            What::InsertKey { .. } => Kind::Key(KeyVerb::Insert),
            What::ScanKeys { .. } => Kind::Key(KeyVerb::Scan),
            What::ModifyKey { .. } => Kind::Key(KeyVerb::Modify),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Post => "posts",
            Kind::Home => "home reads",
            Kind::Mentions => "mention reads",
            Kind::PostStory => "story posts",
            Kind::StoriesHome => "story homes",
            Kind::Stories => "story reads",
            Kind::Recognize => "recognitions",
            Kind::UserTimeline => "user reads",
            Kind::Key(KeyVerb::Read) => "key reads",
            Kind::Key(KeyVerb::Update) => "key updates",
            Kind::Key(KeyVerb::Insert) => "key inserts",
            Kind::Key(KeyVerb::Scan) => "key scans",
            Kind::Key(KeyVerb::Modify) => "key changes",
        }
    }
}

/// Failure of an action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'a> {
    /// Kind of failure, as it is counted.
    pub(crate) kind: &'a str,
    /// Number of operations in the request.
    pub(crate) count: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// Delay after the due time.
    pub(crate) late: Duration,
    /// Whether a connection was free at the due time. If so, the generator itself caused the delay.
    pub(crate) ready: bool,
}

/// Responses and failures of one kind of request. A request with several operations counts once for each operation.
#[derive(Debug)]
pub(crate) struct KindMeter {
    pub(crate) kind: Kind,
    pub(crate) latency_us: Histogram<u64>,
    pub(crate) answered: u64,
    pub(crate) errors: u64,
}

impl KindMeter {
    fn new(kind: Kind) -> KindMeter {
        KindMeter { kind, latency_us: histogram(), answered: 0, errors: 0 }
    }

    fn clear(&mut self) {
        self.latency_us.reset();
        (self.answered, self.errors) = (0, 0);
    }

    /// The quantile in milliseconds; 0 without measurements.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        quantile_ms(&self.latency_us, quantile)
    }

    pub(crate) fn window(&self) -> WindowKind {
        WindowKind {
            count: self.answered,
            errors: self.errors,
            p50_ms: self.quantile_ms(0.5),
            p90_ms: self.quantile_ms(0.9),
            p99_ms: self.quantile_ms(0.99),
            max_ms: self.latency_us.max() as f64 / 1_000.0,
        }
    }

    pub(crate) fn summary(&self, seconds: f64) -> KindSummary {
        KindSummary {
            kind: self.kind.name(),
            count: self.answered,
            per_second: if seconds > 0.0 { self.answered as f64 / seconds } else { 0.0 },
            errors: self.errors,
            p50_ms: self.quantile_ms(0.5),
            p90_ms: self.quantile_ms(0.9),
            p99_ms: self.quantile_ms(0.99),
            p999_ms: self.quantile_ms(0.999),
            max_ms: self.latency_us.max() as f64 / 1_000.0,
        }
    }
}

fn of(meters: &mut [KindMeter], kind: Kind) -> &mut KindMeter {
    let Some(meter) = meters.iter_mut().find(|meter| meter.kind == kind) else {
        unreachable!("a run measures every kind of its actions");
    };
    meter
}

/// Measurements of a lane since the last window.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) kinds: Vec<KindMeter>,
    pub(crate) scheduling_delay_us: Histogram<u64>,
    late: u64,
    waited: u64,
    /// Number of repeated requests.
    pub(crate) retried: u64,
    failures: BTreeMap<String, u64>,
    messages: Vec<String>,
    /// Number of posts by each user.
    posts_by: HashMap<u32, u32>,
}

impl Meter {
    pub(crate) fn new(kinds: &[Kind]) -> Meter {
        Meter {
            kinds: kinds.iter().copied().map(KindMeter::new).collect(),
            scheduling_delay_us: histogram(),
            late: 0,
            waited: 0,
            retried: 0,
            failures: BTreeMap::new(),
            messages: Vec::new(),
            posts_by: HashMap::new(),
        }
    }

    /// Records the start of an action.
    pub(crate) fn started(&mut self, start: Start) {
        self.late += u64::from(start.late > LATE);
        if start.ready {
            self.scheduling_delay_us.saturating_record(micros(start.late));
        } else {
            self.waited += 1;
        }
    }

    /// Records the success of an action, or of `count` operations in one request. `latency` is measured from the due
    /// time.
    pub(crate) fn answered(&mut self, kind: Kind, user: u32, latency: Duration, count: u64) {
        let meter = of(&mut self.kinds, kind);
        meter.answered += count;
        meter.latency_us.saturating_record_n(micros(latency), count);
        if kind == Kind::Post {
            *self.posts_by.entry(user).or_default() += 1;
        }
    }

    /// Records the failure of an action, or of `failure.count` operations in one request. After a timeout, `waited` is
    /// the time since the due time and counts as a latency, so that a stalled server does not look better than a slow
    /// one. `message` describes the failure in full; it is called only for the first few failures.
    pub(crate) fn failed(
        &mut self,
        kind: Kind,
        failure: Failure<'_>,
        message: impl FnOnce() -> String,
        waited: Option<Duration>,
    ) {
        let meter = of(&mut self.kinds, kind);
        meter.errors += failure.count;
        if let Some(waited) = waited {
            meter.latency_us.saturating_record_n(micros(waited), failure.count);
        }
        match self.failures.get_mut(failure.kind) {
            Some(count) => *count += failure.count,
            None => drop(self.failures.insert(failure.kind.to_owned(), failure.count)),
        }
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(message());
        }
    }

    /// Adds the measurements of another meter.
    pub(crate) fn add(&mut self, other: &Meter) {
        for kind in &other.kinds {
            let meter = of(&mut self.kinds, kind.kind);
            meter.answered += kind.answered;
            meter.errors += kind.errors;
            add(&mut meter.latency_us, &kind.latency_us);
        }
        add(&mut self.scheduling_delay_us, &other.scheduling_delay_us);
        self.late += other.late;
        self.waited += other.waited;
        self.retried += other.retried;
        for (kind, count) in &other.failures {
            *self.failures.entry(kind.clone()).or_default() += count;
        }
        let room = MESSAGES_MAX.saturating_sub(self.messages.len());
        self.messages.extend(other.messages.iter().take(room).cloned());
        for (user, posts) in &other.posts_by {
            *self.posts_by.entry(*user).or_default() += posts;
        }
    }

    /// Resets the meter, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.kinds.iter_mut().for_each(KindMeter::clear);
        self.scheduling_delay_us.reset();
        (self.late, self.waited, self.retried) = (0, 0, 0);
        self.failures.clear();
        self.messages.clear();
        self.posts_by.clear();
    }

    pub(crate) fn lag(&self) -> LagSummary {
        LagSummary {
            scheduling_delay_p99_ms: quantile_ms(&self.scheduling_delay_us, 0.99),
            late_starts: self.late,
            waited_for_connection: self.waited,
        }
    }

    pub(crate) fn errors(&self) -> Vec<ErrorCount> {
        let count = |(kind, &count): (&String, &u64)| ErrorCount { kind: kind.clone(), count };
        self.failures.iter().map(count).collect()
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        self.messages.clone()
    }

    /// The percentage of all posts written by the `users` most active users.
    pub(crate) fn posts_by_top(&self, users: usize) -> f64 {
        let mut counts: Vec<u32> = self.posts_by.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let sum = |counts: &mut dyn Iterator<Item = &u32>| {
            counts.map(|&count| u64::from(count)).sum::<u64>()
        };
        let all = sum(&mut counts.iter());
        if all == 0 { 0.0 } else { sum(&mut counts.iter().take(users)) as f64 * 100.0 / all as f64 }
    }
}

/// The quantile of a histogram of microseconds, in milliseconds; 0 without measurements.
pub(crate) fn quantile_ms(micros: &Histogram<u64>, quantile: f64) -> f64 {
    micros.value_at_quantile(quantile) as f64 / 1_000.0
}

fn add(to: &mut Histogram<u64>, from: &Histogram<u64>) {
    let Ok(()) = to.add(from) else { unreachable!("all histograms have the same bounds") };
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A histogram of microseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    let Ok(histogram) = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3) else {
        unreachable!("the bounds are constants in order");
    };
    histogram
}
