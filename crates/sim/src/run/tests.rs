//! Runs against servers at the other end of a pipe, in paused time: they take no real time, and every latency is exact.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::sleep;

use hdrhistogram::Histogram;

use super::*;
use crate::api::Roost;
use crate::client::Requests;
use crate::watch::{Plan, Window};
use crate::workload::PostKind;

/// Body of every response: one of two commands succeeded.
const BODY: &str = "{\"ok\":true}\n{\"ok\":false}\n";

/// The server's reaction to a request at a given time (from the start).
#[derive(Clone, Copy)]
enum Answering {
    /// Responds at once, except during a stall (from, to): then it responds at its end.
    Stalling(Duration, Duration),
    /// Never answers.
    Never,
    /// Answers with a status.
    With(u16),
    /// Cannot be reached.
    Unreachable,
    /// Nodes of a cluster: each connection leads to the next one.
    Nodes(&'static [Answering]),
}

#[derive(Clone)]
struct TestServer {
    start: Instant,
    answering: Answering,
    answered: Arc<AtomicUsize>,
    /// Arrival time of each request.
    came: Arc<Mutex<Vec<Duration>>>,
    /// Idempotency keys of the requests that have one.
    keys: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl TestServer {
    async fn serve(self, mut stream: DuplexStream) {
        let mut request = [0; 4096];
        while let Ok(size @ 1..) = stream.read(&mut request).await {
            if request[..size].starts_with(b"GET /metrics") {
                // This request is not part of the load, and gets an empty response at once.
                let _ = stream.write_all(b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n").await;
                continue;
            }
            lock(&self.came).push(self.start.elapsed());
            let head = String::from_utf8_lossy(&request[..size]);
            let key = head.lines().find_map(|line| line.strip_prefix("Idempotency-Key: "));
            lock(&self.keys).extend(key.map(str::to_owned));
            let status = match self.answering {
                Answering::Never | Answering::Unreachable | Answering::Nodes(_) => {
                    std::future::pending().await
                }
                Answering::With(status) => status,
                Answering::Stalling(from, to) => {
                    let now = self.start.elapsed();
                    if from <= now && now < to {
                        sleep(to - now).await;
                    }
                    200
                }
            };
            let length = BODY.len();
            let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n{BODY}");
            if stream.write_all(answer.as_bytes()).await.is_ok() {
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Dial for TestServer {
    type Stream = DuplexStream;

    async fn dial(&self) -> io::Result<DuplexStream> {
        let mut server = self.clone();
        if let Answering::Nodes(nodes) = self.answering {
            let next = self.connections.fetch_add(1, Ordering::Relaxed);
            server.answering = nodes[next % nodes.len()];
        }
        if matches!(server.answering, Answering::Unreachable) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (near, far) = duplex(64 * 1024);
        tokio::spawn(server.serve(far));
        Ok(near)
    }
}

/// A home read every 100 ms, the first after 100 ms.
fn ten_per_second() -> impl Iterator<Item = Action> + Send + 'static {
    (1..).map(|i| Action { due: Duration::from_millis(i * 100), user: 0, what: What::ReadHome })
}

fn api() -> Arc<Roost> {
    let target = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
    Arc::new(Roost::new(target, Requests::new("test", None), 1, None))
}

struct Outcome {
    finished: Finished,
    windows: Vec<Window>,
    answered: usize,
    came: Vec<Duration>,
    keys: Vec<String>,
}

/// Watcher that stores the windows.
#[derive(Default)]
struct Keeping(Vec<Window>);

impl Watcher for Keeping {
    fn begin(&mut self, plan: &Plan) -> io::Result<()> {
        assert_eq!(plan.kinds.len(), 6);
        Ok(())
    }

    fn window(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) -> io::Result<()> {
        for (kind, latencies_us) in window.kinds.iter().zip(latencies_us) {
            assert!(
                kind.count <= latencies_us.len() && latencies_us.len() <= kind.count + kind.errors
            );
        }
        self.0.push(window.clone());
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn config(seconds: u64, connections: usize) -> RunConfig {
    RunConfig {
        title: "a test".to_owned(),
        kinds: Kind::FEED.into_iter().chain(Kind::STORIES).collect(),
        end: Duration::from_secs(seconds),
        window: Duration::from_secs(3),
        connections,
        lanes: Lanes::Here,
        closed: false,
        retries: false,
    }
}

/// Drives for `seconds` over `connections` connections; `cut` cancels the run at this time.
async fn drive(
    answering: Answering,
    seconds: u64,
    connections: usize,
    cut: Option<Duration>,
) -> Outcome {
    drive_with(ten_per_second(), answering, config(seconds, connections), cut).await
}

async fn drive_with(
    actions: impl Iterator<Item = Action> + Send + 'static,
    answering: Answering,
    config: RunConfig,
    cut: Option<Duration>,
) -> Outcome {
    let (answered, came, keys) =
        (Arc::new(AtomicUsize::new(0)), Arc::default(), Arc::<Mutex<Vec<String>>>::default());
    let server = TestServer {
        start: Instant::now(),
        answering,
        answered: Arc::clone(&answered),
        came: Arc::clone(&came),
        keys: Arc::clone(&keys),
        connections: Arc::default(),
    };
    let (cancel, mut cancelled) = watch::channel(false);
    if let Some(after) = cut {
        tokio::spawn(async move {
            sleep(after).await;
            cancel.send_replace(true);
        });
    }
    let mut keeping = Keeping::default();
    let watchers: &mut [&mut dyn Watcher] = &mut [&mut keeping];
    let finished = run(&server, api(), config, actions, None, watchers, &mut cancelled)
        .await
        .expect("a vector takes every window");
    let (answered, came) = (answered.load(Ordering::Relaxed), std::mem::take(&mut *lock(&came)));
    let keys = std::mem::take(&mut *lock(&keys));
    Outcome { finished, windows: keeping.0, answered, came, keys }
}

fn home(outcome: &Outcome) -> &meter::KindMeter {
    of(outcome, Kind::Home)
}

fn of(outcome: &Outcome, kind: Kind) -> &meter::KindMeter {
    outcome.finished.meter.kinds.iter().find(|meter| meter.kind == kind).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stall_shows_in_the_percentiles_however_many_connections_wait() {
    for connections in [1, 4, 64] {
        // There are 199 reads in 20 s; the 60 reads that are due during the stall of 6 s wait for its end.
        let stall =
            Answering::Stalling(Duration::from_millis(9_950), Duration::from_millis(15_950));
        let outcome = drive(stall, 20, connections, None).await;
        let home = home(&outcome);
        assert_eq!((home.answered, home.errors, outcome.answered), (199, 0, 199));
        let near = |quantile: f64, expect_ms: f64| {
            let measured = home.quantile_ms(quantile);
            let off = (measured - expect_ms).abs();
            assert!(off < 120.0, "{connections} connections: {measured} ms at {quantile}");
        };
        near(0.5, 0.0);
        near(0.7, 50.0);
        near(0.9, 4_000.0);
        near(1.0, 5_950.0);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_connection_is_not_the_generators_scheduling_delay() {
    let stall = Answering::Stalling(Duration::from_millis(9_950), Duration::from_millis(15_950));
    let lag = drive(stall, 20, 1, None).await.finished.meter.lag();
    assert_eq!(lag.waited_for_connection, 59);
    assert_eq!(lag.late_starts, 59);
    assert!(lag.scheduling_delay_p99_ms <= 1.0, "{lag:?}");
    let lag = drive(stall, 20, 64, None).await.finished.meter.lag();
    assert_eq!((lag.waited_for_connection, lag.late_starts), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn every_action_that_was_due_is_counted_whatever_the_server_does() {
    // Errors by kind for 99 reads in 10 s over two connections.
    let check = async |answering: Answering, expect: &[(&str, u64)]| {
        let outcome = drive(answering, 10, 2, None).await;
        let errors = outcome.finished.meter.errors();
        let reported: Vec<(&str, u64)> =
            errors.iter().map(|error| (error.kind.as_str(), error.count)).collect();
        assert_eq!(reported, expect);
        assert_eq!((home(&outcome).answered, home(&outcome).errors), (0, 99));
        assert_eq!(outcome.finished.meter.messages().len(), 5);
    };
    check(Answering::With(503), &[("status 503", 99)]).await;
    check(Answering::With(302), &[("status 302", 99)]).await;
    check(Answering::Unreachable, &[("connection", 99)]).await;
    check(Answering::Never, &[("not started", 95), ("timeout", 4)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_looks_slow() {
    let outcome = drive(Answering::Never, 10, 2, None).await;
    assert!(home(&outcome).quantile_ms(0.5) > 9_000.0);
    assert_eq!(outcome.finished.ended.took.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_of_a_cluster_cannot_answer_is_sent_to_the_next_one() {
    const NODES: &[Answering] =
        &[Answering::Unreachable, Answering::Never, Answering::With(503), Answering::With(201)];
    let post = || (0..50).map(|number| post_due(number * 100));
    let cluster = RunConfig { retries: true, ..config(10, 1) };
    let outcome = drive_with(post(), Answering::Nodes(NODES), cluster, None).await;
    let posts = of(&outcome, Kind::Post);
    assert_eq!((posts.answered, posts.errors), (50, 0));
    assert_eq!(outcome.finished.meter.retried, 3, "once for each node that could not answer");
    // The first post was sent to three nodes, and each later one has its own key.
    let (first, later) = outcome.keys.split_at(3);
    assert!(first.iter().all(|key| *key == first[0]), "{first:?}");
    let different: std::collections::HashSet<&String> = outcome.keys.iter().collect();
    assert_eq!((later.len(), different.len()), (49, 50));

    let alone = drive_with(post(), Answering::Nodes(&NODES[2..3]), config(10, 1), None).await;
    assert_eq!((of(&alone, Kind::Post).errors, alone.keys.len()), (50, 0));
}

fn post_due(due_ms: u64) -> Action {
    let what = What::Post { kind: PostKind::Plain, text_seed: 5 };
    Action { due: Duration::from_millis(due_ms), user: 0, what }
}

#[tokio::test(start_paused = true)]
async fn windows_report_everything_once() {
    let outcome = drive(Answering::With(200), 10, 2, None).await;
    let counts: Vec<u64> = outcome.windows.iter().map(|window| window.kinds[1].count).collect();
    assert_eq!(counts.iter().sum::<u64>(), 99);
    assert_eq!(counts.len(), 4, "{counts:?}");
    for (window, count) in outcome.windows.iter().zip(counts).take(3) {
        assert!((window.seconds - 3.0).abs() < 0.01 && (29..=31).contains(&count), "{window:?}");
    }
    for answering in [Answering::With(503), Answering::Never] {
        let outcome = drive(answering, 10, 2, None).await;
        let errors: u64 = outcome.windows.iter().map(|window| window.kinds[1].errors).sum();
        assert_eq!(errors, 99);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_does_the_next_action_when_the_last_is_answered() {
    // The server stalls once for 6 of the 20 s. During the stall, a closed loop sends only 1 request.
    let stall = Answering::Stalling(Duration::ZERO, Duration::from_secs(6));
    let soon = || Action { due: Duration::from_secs(1_000), user: 0, what: What::ReadHome };
    let actions = std::iter::repeat_with(soon).take(100);
    let closed = RunConfig { closed: true, ..config(20, 2) };
    let outcome = drive_with(actions, stall, closed, None).await;
    let home = home(&outcome);
    assert_eq!((home.answered, home.errors), (100, 0));
    assert!(home.quantile_ms(0.98) < 1.0 && home.quantile_ms(1.0) > 5_990.0);
    let late = home.latency_us.iter_recorded().filter(|at| at.value_iterated_to() > 1_000_000);
    assert_eq!(late.map(|at| at.count_at_value()).sum::<u64>(), 2, "one per connection");
}

/// Kolmogorov and Smirnov's statistic: the greatest distance between the distribution of these values and the given
/// cumulative distribution function, times the root of the number of values.
fn distance(mut values: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let off = |(at, value): (usize, &f64)| {
        let expect = distribution(*value);
        (expect - at as f64 / n).abs().max(((at + 1) as f64 / n - expect).abs())
    };
    values.iter().enumerate().map(off).fold(0.0, f64::max) * n.sqrt()
}

#[tokio::test(start_paused = true)]
async fn requests_reach_the_server_as_far_apart_as_they_were_meant_to() {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    // The actions are 0.5 s apart on average, so the resolution of the paused clock (1 ms) does not matter.
    type Gap = fn(f64) -> f64;
    let exponential: (Gap, Gap) = (|u| -(1.0 - u).ln() / 2.0, |gap| 1.0 - (-2.0 * gap).exp());
    let uniform: (Gap, Gap) = (|u| u, |gap| gap.clamp(0.0, 1.0));
    for (number, (gap, distribution)) in [exponential, uniform].into_iter().enumerate() {
        let mut rng = StdRng::seed_from_u64(number as u64);
        let mut due_s = 0.0;
        let actions = std::iter::repeat_with(move || {
            due_s += gap(rng.random());
            Action { due: Duration::from_secs_f64(due_s), user: 0, what: What::ReadHome }
        });
        let outcome = drive_with(actions, Answering::With(200), config(2_000, 8), None).await;
        let gaps = outcome.came.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert!(outcome.came.len() > 3_500, "{}", outcome.came.len());
        // One in a thousand random samples exceeds 1.95. The seed is fixed.
        let off = distance(gaps, distribution);
        assert!(off < 1.95, "{off}");
        let other = if number == 0 { uniform.1 } else { exponential.1 };
        let gaps = outcome.came.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert!(distance(gaps, other) > 5.0, "the two distributions differ");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cut_short_keeps_what_it_has() {
    let cut = Some(Duration::from_millis(5_050));
    for answering in [Answering::With(200), Answering::Never] {
        let outcome = drive(answering, 3_600, 8, cut).await;
        assert!(outcome.finished.ended.interrupted);
        assert_eq!(outcome.finished.ended.took, Duration::from_millis(5_050));
        let expect = if matches!(answering, Answering::Never) { 0 } else { 50 };
        assert_eq!((home(&outcome).answered, home(&outcome).errors), (expect, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn each_story_of_a_request_counts_done_or_not() {
    // There are four requests of two stories each, over one connection, in 10 s and the grace period of 5 s.
    let check = async |answering: Answering, answered: u64, errors: &[(&str, u64)]| {
        let actions = (0..4).map(|i| Action {
            due: Duration::from_secs(i),
            user: 0,
            what: What::PostStories { stories: 2, life_s: 1, text_seed: i },
        });
        let outcome = drive_with(actions, answering, config(10, 1), None).await;
        let measured = of(&outcome, Kind::PostStory);
        assert_eq!((measured.answered, measured.errors), (answered, 8 - answered));
        let reported = outcome.finished.meter.errors();
        let reported: Vec<_> =
            reported.iter().map(|error| (error.kind.as_str(), error.count)).collect();
        assert_eq!(reported, errors);
    };
    check(Answering::With(200), 4, &[("refused line", 4)]).await;
    check(Answering::With(503), 0, &[("status 503", 8)]).await;
    check(Answering::Never, 0, &[("not started", 4), ("timeout", 4)]).await;
}
