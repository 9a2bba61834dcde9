//! Invented run, determined by a seed.

#![allow(clippy::indexing_slicing, reason = "what fails here is an example or a test")]

use std::time::Duration;

use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::Population;
use sim::population::Making;
use sim::report::Recording;
use sim::summary::{
    Correctness, ErrorCount, FeedSummary, GeneratorSummary, KindSummary, LagSummary, ServerSummary,
    Summary,
};
use sim::watch::{Delivery, Plan, ServerLoad, Watcher, Window, WindowKind};
use sim::workload::Load;

/// Text that becomes visible if it is interpreted as markup.
pub(crate) const EVIL: &str = "<img src=x onerror=\"document.title='broken'\">&amp;";

/// Kinds with their rates per second and medians in milliseconds.
const KINDS: [(&str, f64, f64); 7] = [
    ("posts", 40.0, 1.1),
    ("home reads", 900.0, 0.4),
    ("mention reads", 110.0, 0.3),
    ("story posts", 25.0, 1.4),
    ("story homes", 300.0, 0.7),
    ("story reads", 150.0, 0.25),
    ("recognitions", 60.0, 0.9),
];

/// Returns a run of `windows` windows of one second with `kinds` kinds of requests (1 to 7). The server stalls after
/// about two thirds of the run; later, posts fail for a while.
pub(crate) fn run(seed: u64, kinds: usize, windows: u32) -> (Summary, Recording) {
    let kinds = &KINDS[..kinds.clamp(1, KINDS.len())];
    let mut random = StdRng::seed_from_u64(seed);
    let plan = Plan {
        title: format!("20,000 users with 2,400,000 follows {EVIL}"),
        duration: Duration::from_secs(windows.into()),
        window: Duration::from_secs(1),
        kinds: kinds.iter().map(|(name, ..)| *name).collect(),
        closed: false,
    };
    let mut recording = Recording::default();
    recording.begin(&plan).expect("a recording takes everything");
    for at in 0..windows {
        let (window, latencies) = window(at, windows, kinds, &mut random);
        recording.window(&window, &latencies).expect("a recording takes everything");
    }
    recording.end().expect("a recording takes everything");
    (summary(seed, windows, kinds, &recording), recording)
}

fn window(
    at: u32,
    windows: u32,
    kinds: &[(&str, f64, f64)],
    random: &mut StdRng,
) -> (Window, Vec<Histogram<u64>>) {
    let is_stalled = at == windows * 2 / 3;
    let is_failing = (windows * 5 / 6..windows * 5 / 6 + 3).contains(&at);
    let mut all = Vec::new();
    let mut reported = Vec::new();
    for (which, &(_, rate, median_ms)) in kinds.iter().enumerate() {
        let mut latencies = Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("bounds");
        // The fourth kind pauses sometimes, so that its plot has gaps.
        let rests = which == 3 && at % 7 < 3;
        let count = if rests { 0 } else { (rate * random.random_range(0.85..1.15)) as u64 };
        for _ in 0..count {
            let heavy = random.random_range(0.000_1_f64..1.0).powf(-0.35);
            let waited_ms = if is_stalled { random.random_range(0.0..900.0) } else { 0.0 };
            latencies.saturating_record(((median_ms * heavy + waited_ms) * 1_000.0) as u64);
        }
        let ms = |quantile| latencies.value_at_quantile(quantile) as f64 / 1_000.0;
        let errors = if is_failing && which == 0 { 17 } else { 0 };
        let (p50_ms, p90_ms, p99_ms, max_ms) = (ms(0.5), ms(0.9), ms(0.99), ms(1.0));
        reported.push(WindowKind {
            count: count - errors.min(count),
            errors,
            p50_ms,
            p90_ms,
            p99_ms,
            max_ms,
        });
        all.push(latencies);
    }
    let slow = if is_stalled { 800.0 } else { 0.0 };
    let delivery = Delivery {
        samples: 12,
        p50_ms: random.random_range(1.0..2.0) + slow,
        p99_ms: random.random_range(4.0..9.0) + slow,
        max_ms: random.random_range(9.0..14.0) + slow,
    };
    let memory_bytes = 180_000_000 + u64::from(at) * 1_900_000;
    let server = ServerLoad { memory_bytes, cores: random.random_range(0.5..0.7) };
    let window = Window {
        end_s: f64::from(at + 1),
        seconds: 1.0,
        kinds: reported,
        delivery: Some(delivery),
        scheduling_delay_p99_ms: random.random_range(0.05..0.4),
        server: Some(server),
    };
    (window, all)
}

fn summary(
    seed: u64,
    windows: u32,
    kinds: &[(&'static str, f64, f64)],
    recording: &Recording,
) -> Summary {
    let seconds = f64::from(windows);
    let kind = |at: usize| {
        let latencies = recording.latencies_us().get(at);
        let ms =
            |quantile| latencies.map_or(0.0, |all| all.value_at_quantile(quantile) as f64 / 1e3);
        let sum = |of: fn(&WindowKind) -> u64| {
            recording.windows().iter().map(|window| of(&window.kinds[at])).sum::<u64>()
        };
        let count = sum(|kind| kind.count);
        KindSummary {
            kind: kinds[at].0,
            count,
            per_second: count as f64 / seconds,
            errors: sum(|kind| kind.errors),
            p50_ms: ms(0.5),
            p90_ms: ms(0.9),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: ms(1.0),
        }
    };
    let kinds: Vec<_> = (0..kinds.len()).map(kind).collect();
    let errors = kinds.iter().map(|kind| kind.errors).sum();
    let making = Making::of(2_000, seed);
    let population = Population::made(&making);
    let feed = FeedSummary {
        load: Load::Heavy,
        follows: 2_400_000,
        shares: Some(population.shares()),
        measured: population.measured(Some(&making)),
        posts_by_top_twentieth: 61.3,
    };
    Summary {
        seed,
        users: 20_000,
        feed: Some(feed),
        stories: None,
        drawings: None,
        load_s: 4.2,
        run_s: seconds,
        interrupted: false,
        kinds,
        errors: vec![ErrorCount { kind: "status 503".to_owned(), count: errors }],
        error_messages: vec![format!("posts of user 7: status 503: {EVIL}")],
        retried: 0,
        lag: LagSummary {
            scheduling_delay_p99_ms: 0.31,
            late_starts: 412,
            waited_for_connection: 96,
        },
        server: Some(ServerSummary {
            cores: 0.62,
            memory_bytes: 293_000_000,
            memory_bytes_max: 293_000_000,
        }),
        closed: false,
        delivery: Some(Delivery { samples: 720, p50_ms: 1.5, p99_ms: 8.9, max_ms: 812.0 }),
        correctness: Some(Correctness {
            readers: 40,
            pages: 1_200,
            posts: 23_104,
            ..Correctness::default()
        }),
        inconclusive: Vec::new(),
        generator: Some(GeneratorSummary { cores: 0.4, memory_bytes: 41_000_000 }),
        keys: None,
    }
}
