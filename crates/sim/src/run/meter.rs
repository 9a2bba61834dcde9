//! What a run measures: latencies by kind of request, failures, and how late the generator was.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::summary::{ErrorCount, KindSummary, LagSummary};

/// The longest latency told apart, in microseconds: one hour.
const LATENCY_US_MAX: u64 = 3_600_000_000;
/// How many failures are told in full.
const MESSAGES_MAX: usize = 5;
/// A start this long after the action was due counts as late.
const LATE: Duration = Duration::from_millis(10);

/// The kinds of requests that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Post,
    Home,
    Mentions,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Post, Kind::Home, Kind::Mentions];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Post => "posts",
            Kind::Home => "home reads",
            Kind::Mentions => "mention reads",
        }
    }
}

/// Why an action came to nothing.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The kind it is counted under.
    pub(crate) kind: String,
    /// What happened, in full.
    pub(crate) message: String,
}

/// When an action started, against when it was due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// How long after it was due.
    pub(crate) late: Duration,
    /// Whether a connection stood ready when it was due: then lateness is the generator's own.
    pub(crate) ready: bool,
}

/// Answers and failures of one kind of request.
#[derive(Debug)]
pub(crate) struct KindMeter {
    pub(crate) latency_us: Histogram<u64>,
    pub(crate) answered: u64,
    pub(crate) errors: u64,
}

impl KindMeter {
    fn new() -> KindMeter {
        KindMeter { latency_us: histogram(), answered: 0, errors: 0 }
    }

    fn clear(&mut self) {
        self.latency_us.reset();
        (self.answered, self.errors) = (0, 0);
    }

    /// The quantile in milliseconds; 0 if nothing was measured.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        self.latency_us.value_at_quantile(quantile) as f64 / 1_000.0
    }

    pub(crate) fn summary(&self, kind: Kind, seconds: f64) -> KindSummary {
        KindSummary {
            kind: kind.name(),
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

/// All kinds, in the order of [`Kind::ALL`].
pub(crate) type Kinds = [KindMeter; 3];

fn of(kinds: &mut Kinds, kind: Kind) -> &mut KindMeter {
    let [post, home, mentions] = kinds;
    match kind {
        Kind::Post => post,
        Kind::Home => home,
        Kind::Mentions => mentions,
    }
}

/// Everything measured in a run.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Since the last look.
    pub(crate) window: Kinds,
    /// Since the start.
    pub(crate) whole: Kinds,
    own_lag_us: Histogram<u64>,
    late: u64,
    waited: u64,
    failures: BTreeMap<String, u64>,
    messages: Vec<String>,
    posts_by: HashMap<u32, u32>,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        Meter {
            window: Kind::ALL.map(|_| KindMeter::new()),
            whole: Kind::ALL.map(|_| KindMeter::new()),
            own_lag_us: histogram(),
            late: 0,
            waited: 0,
            failures: BTreeMap::new(),
            messages: Vec::new(),
            posts_by: HashMap::new(),
        }
    }

    /// An action has been started.
    pub(crate) fn started(&mut self, start: Start) {
        self.late += u64::from(start.late > LATE);
        if start.ready {
            self.own_lag_us.saturating_record(micros(start.late));
        } else {
            self.waited += 1;
        }
    }

    /// An action was answered as it should be; `latency` is from when it was due.
    pub(crate) fn answered(&mut self, kind: Kind, person: u32, latency: Duration) {
        for kinds in [&mut self.window, &mut self.whole] {
            let meter = of(kinds, kind);
            meter.answered += 1;
            meter.latency_us.saturating_record(micros(latency));
        }
        if kind == Kind::Post {
            *self.posts_by.entry(person).or_default() += 1;
        }
    }

    /// An action failed. If it did so by taking too long, `waited` is how long it has been due,
    /// and counts as a latency: a stalled server must not look better than a slow one.
    pub(crate) fn failed(&mut self, kind: Kind, failure: Failure, waited: Option<Duration>) {
        for kinds in [&mut self.window, &mut self.whole] {
            let meter = of(kinds, kind);
            meter.errors += 1;
            if let Some(waited) = waited {
                meter.latency_us.saturating_record(micros(waited));
            }
        }
        *self.failures.entry(failure.kind).or_default() += 1;
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(failure.message);
        }
    }

    pub(crate) fn clear_window(&mut self) {
        self.window.iter_mut().for_each(KindMeter::clear);
    }

    pub(crate) fn lag(&self) -> LagSummary {
        LagSummary {
            own_p99_ms: self.own_lag_us.value_at_quantile(0.99) as f64 / 1_000.0,
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

    /// The percentage of all posts written by the `people` who wrote most.
    pub(crate) fn posts_by_top(&self, people: usize) -> f64 {
        let mut counts: Vec<u32> = self.posts_by.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let sum = |counts: &mut dyn Iterator<Item = &u32>| {
            counts.map(|&count| u64::from(count)).sum::<u64>()
        };
        let all = sum(&mut counts.iter());
        if all == 0 {
            0.0
        } else {
            sum(&mut counts.iter().take(people)) as f64 * 100.0 / all as f64
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn histogram() -> Histogram<u64> {
    let Ok(histogram) = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3) else {
        unreachable!("the bounds are constants in order");
    };
    histogram
}
