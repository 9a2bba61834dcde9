//! Runs in paused time against servers at the other end of a pipe: seconds pass at once, and every
//! latency is exact.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::sleep;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::client::Requests;
use crate::workload::{PostKind, What};
use crate::{lines, texts};

/// Every answer's body: to a batch of two, that one was done.
const BODY: &str = "{\"ok\":true}\n{\"ok\":false}\n";

/// What the server does with a request that comes at a time (from the start).
#[derive(Clone, Copy)]
enum Answering {
    /// Answers at once, except that in the stall (from, to) it holds everything back to its end.
    Stalling(Duration, Duration),
    /// Never answers.
    Never,
    /// Answers with a status.
    With(u16),
    /// Cannot be reached.
    Unreachable,
}

#[derive(Clone)]
struct TestServer {
    start: Instant,
    answering: Answering,
    answered: Arc<AtomicUsize>,
}

impl TestServer {
    async fn serve(self, mut stream: DuplexStream) {
        let mut request = [0; 4096];
        while stream.read(&mut request).await.is_ok_and(|size| size > 0) {
            let status = match self.answering {
                Answering::Never | Answering::Unreachable => std::future::pending().await,
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
        if matches!(self.answering, Answering::Unreachable) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (near, far) = duplex(64 * 1024);
        tokio::spawn(self.clone().serve(far));
        Ok(near)
    }
}

/// A home read every 100 ms, the first after 100 ms.
fn ten_a_second() -> impl Iterator<Item = Action> + Send + 'static {
    (1..).map(|i| Action { due: Duration::from_millis(i * 100), person: 0, what: What::ReadHome })
}

fn script(host: &str, key: Option<&str>) -> Script {
    let kinds = Kind::FEED.into_iter().chain(Kind::STORIES).collect();
    Script { requests: Requests::new(host, key), seed: 1, references: None, kinds }
}

struct Outcome {
    finished: Finished,
    lines: String,
    answered: usize,
}

/// Drives for so many seconds over so many connections; `cut` ends it after a time.
async fn drive(
    answering: Answering,
    seconds: u64,
    connections: usize,
    cut: Option<Duration>,
) -> Outcome {
    drive_with(ten_a_second(), answering, seconds, connections, cut).await
}

async fn drive_with(
    actions: impl Iterator<Item = Action> + Send + 'static,
    answering: Answering,
    seconds: u64,
    connections: usize,
    cut: Option<Duration>,
) -> Outcome {
    let answered = Arc::new(AtomicUsize::new(0));
    let server = TestServer { start: Instant::now(), answering, answered: Arc::clone(&answered) };
    let script = script("test", None);
    let (cancel, mut cancelled) = watch::channel(false);
    if let Some(after) = cut {
        tokio::spawn(async move {
            sleep(after).await;
            cancel.send_replace(true);
        });
    }
    let mut lines = Vec::new();
    let end = Duration::from_secs(seconds);
    let finished = run(&server, script, actions, end, connections, &mut lines, &mut cancelled)
        .await
        .expect("a vector takes every line");
    let lines = String::from_utf8(lines).expect("lines are text");
    Outcome { finished, lines, answered: answered.load(Ordering::Relaxed) }
}

fn home(outcome: &Outcome) -> &meter::KindMeter {
    of(outcome, Kind::Home)
}

fn of(outcome: &Outcome, kind: Kind) -> &meter::KindMeter {
    outcome.finished.meter.whole.iter().find(|meter| meter.kind == kind).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stall_shows_in_the_percentiles_however_many_connections_wait() {
    for connections in [1, 4, 64] {
        // 199 reads in 20 s; the 60 that are due in the stall of 6 s wait for its end.
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
async fn waiting_for_a_connection_is_not_the_generators_own_lag() {
    let stall = Answering::Stalling(Duration::from_millis(9_950), Duration::from_millis(15_950));
    let lag = drive(stall, 20, 1, None).await.finished.meter.lag();
    assert_eq!(lag.waited_for_connection, 59);
    assert_eq!(lag.late_starts, 59);
    assert!(lag.own_p99_ms <= 1.0, "{lag:?}");
    let lag = drive(stall, 20, 64, None).await.finished.meter.lag();
    assert_eq!((lag.waited_for_connection, lag.late_starts), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn every_action_that_was_due_is_counted_whatever_the_server_does() {
    // Errors by kind for 99 reads in 10 s over two connections.
    let check = async |answering: Answering, expect: &[(&str, u64)]| {
        let outcome = drive(answering, 10, 2, None).await;
        let errors = outcome.finished.meter.errors();
        let told: Vec<(&str, u64)> =
            errors.iter().map(|error| (error.kind.as_str(), error.count)).collect();
        assert_eq!(told, expect);
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
    assert_eq!(outcome.finished.took.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_line_tells_of_each_window_of_three_seconds() {
    let outcome = drive(Answering::With(200), 10, 2, None).await;
    let windows: Vec<&str> = outcome.lines.lines().collect();
    assert_eq!(windows.len(), 3, "{}", outcome.lines);
    assert!(windows[0].starts_with("    3 s  posts 0 "), "{}", windows[0]);
    assert!(windows[1].contains("home reads 30 (10/s, p50 0.00 p99 0.00 ms)"), "{}", windows[1]);
    assert!(windows[2].ends_with("errors 0"), "{}", windows[2]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cut_short_keeps_what_it_has() {
    let cut = Some(Duration::from_millis(5_050));
    for answering in [Answering::With(200), Answering::Never] {
        let outcome = drive(answering, 3_600, 8, cut).await;
        assert!(outcome.finished.interrupted);
        assert_eq!(outcome.finished.took, Duration::from_millis(5_050));
        let expect = if matches!(answering, Answering::Never) { 0 } else { 50 };
        assert_eq!((home(&outcome).answered, home(&outcome).errors), (expect, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn each_story_of_a_request_counts_done_or_not() {
    // Four requests of two stories each, over one connection, in 10 s and the grace of 5 s.
    let check = async |answering: Answering, answered: u64, errors: &[(&str, u64)]| {
        let actions = (0..4).map(|i| Action {
            due: Duration::from_secs(i),
            person: 0,
            what: What::TellStories { stories: 2, life_s: 1, text_seed: i },
        });
        let outcome = drive_with(actions, answering, 10, 1, None).await;
        let measured = of(&outcome, Kind::TellStory);
        assert_eq!((measured.answered, measured.errors), (answered, 8 - answered));
        let told = outcome.finished.meter.errors();
        let told: Vec<_> = told.iter().map(|error| (error.kind.as_str(), error.count)).collect();
        assert_eq!(told, errors);
    };
    check(Answering::With(200), 4, &[("refused line", 4)]).await;
    check(Answering::With(503), 0, &[("status 503", 8)]).await;
    check(Answering::Never, 0, &[("not started", 4), ("timeout", 4)]).await;
}

#[test]
fn actions_become_the_requests_of_the_api() {
    let script = script("localhost:1", Some("k"));
    let check = |what: What, expect: &str| {
        let mut request = Vec::new();
        script.write(&Action { due: Duration::ZERO, person: 7, what }, &mut request);
        let request = String::from_utf8(request).unwrap();
        assert_eq!(request, expect.replace('\n', "\r\n"));
    };
    let head = "HTTP/1.1\nHost: localhost:1\nAuthorization: Bearer k\n";
    check(What::ReadHome, &format!("GET /v1/users/7/timeline?limit=20 {head}\n"));
    check(What::ReadMentions, &format!("GET /v1/users/7/mentions?limit=20 {head}\n"));
    let home = format!("GET /v1/users/7/stories/home?limit=10 {head}\n");
    check(What::ReadStoriesHome, &home);
    check(What::ReadStories(3), &format!("GET /v1/users/3/stories?as=7&limit=20 {head}\n"));
    let check_body = |what: What, path: &str, media: &str, body: &str| {
        let length = body.len();
        let more = format!("Content-Type: application/{media}\nContent-Length: {length}\n\n");
        // The lines of a body end as they are.
        let expect = format!("POST {path} {head}{more}").replace('\n', "\r\n") + body;
        let mut request = Vec::new();
        script.write(&Action { due: Duration::ZERO, person: 7, what }, &mut request);
        assert_eq!(String::from_utf8(request).unwrap(), expect);
    };
    let kind = PostKind::MentionFirst(3);
    let mentioned = texts::handle(1, 3);
    let text = texts::seeded_post_text(5, PostKind::MentionFirst(&mentioned));
    let body = format!("{{\"text\":\"{text}\"}}");
    check_body(What::Post { kind, text_seed: 5 }, "/v1/users/7/posts", "json", &body);
    let tell = |stories| What::TellStories { stories, life_s: 60, text_seed: 5 };
    let text = texts::seeded_post_text(5, PostKind::Plain);
    let body = format!("{{\"text\":\"{text}\",\"ttl_s\":60}}");
    check_body(tell(1), "/v1/users/7/stories", "json", &body);
    let (mut body, mut rng) = (Vec::new(), StdRng::seed_from_u64(5));
    for person in [7, 8] {
        lines::tell(person, &texts::post_text(&mut rng, PostKind::Plain), 60, &mut body);
    }
    let body = String::from_utf8(body).unwrap();
    let line = format!("{{\"op\":\"tell_story\",\"user\":7,\"text\":\"{text}\",\"ttl_s\":60}}\n");
    assert!(body.starts_with(&line), "{body}");
    check_body(tell(2), "/v1/batch", "x-ndjson", &body);
}
