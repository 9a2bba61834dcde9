//! Delivery to streams while 500 users make 5,000 posts per second. Each of 32 followers listens to one of these users.
//! The posts of one user are further apart than the reads of a stream, 20 per second. The time is measured from sending
//! a post until the follower has read its event.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use sim::client::Connection;
use tokio::task::JoinSet;

use super::World;
use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{follow_line, text};

const AUTHORS: u32 = 500;
const PER_SECOND: u64 = 5_000;
/// Number of connections that post. They are enough for each to have its response before its next post is due.
const CONNECTIONS: u64 = 32;
/// Number of followers who listen. Each follows one author, every 15th of them.
const LISTENERS: u32 = 32;
const APART: u32 = 15;
/// Longest silence of a stream; after it, missing posts count as lost.
const SILENCE: Duration = Duration::from_secs(2);
/// Text before the number of a post, and how many digits the number has.
const MARK: &[u8] = b"Number ";
const DIGITS: usize = 7;

/// Deliveries of one run.
struct Delivered {
    latency: Histogram<u64>,
    /// Number of posts by authors who have a listener.
    expected: u64,
    per_second: f64,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let world = World::new(plan, data.path(), &[], AUTHORS + LISTENERS).await?;
    let follow = |listener: u32| follow_line(AUTHORS + listener, listener * APART);
    world.server.batch((0..LISTENERS).map(follow)).await?;
    let (mut p50, mut p99, mut rates, mut lost) = (vec![], vec![], vec![], vec![]);
    for run in 0..=plan.runs {
        let seconds = if run == 0 { 1 } else { plan.seconds };
        let done = run_once(&world, run as u64, seconds).await?;
        if run > 0 {
            p50.push(done.latency.value_at_quantile(0.5) as f64 / 1e6);
            p99.push(done.latency.value_at_quantile(0.99) as f64 / 1e6);
            rates.push(done.per_second);
            lost.push((done.expected - done.latency.len()) as f64);
        }
    }
    report.add("posts during the delivery to a stream", "1/s", rates, None);
    report.add("delivery to a stream of a follower, median", "ms", p50, None);
    let name = "delivery to a stream, 5,000 posts per second, p99";
    report.add(name, "ms", p99, Some(Target::AtMost(5.0)));
    report.add("posts that did not arrive", "", lost, Some(Target::AtMost(0.0)));
    Ok(())
}

async fn run_once(world: &World, run: u64, seconds: u64) -> anyhow::Result<Delivered> {
    let posts = PER_SECOND * seconds;
    // Each run uses other numbers of posts.
    let first = run * 1_000_000;
    let sent: Arc<Vec<AtomicU64>> = Arc::new((0..posts).map(|_| AtomicU64::new(0)).collect());
    let start = Instant::now();
    let mut listening = Vec::new();
    for listener in 0..LISTENERS {
        let reader = Listener::connect(world, (AUTHORS + listener) as usize)?;
        let (times, expected) = (Arc::clone(&sent), posts / u64::from(AUTHORS));
        listening.push(std::thread::spawn(move || reader.listen(first, &times, start, expected)));
    }
    let took = post_all(world, first, &sent, start).await?;
    let joined = tokio::task::spawn_blocking(move || {
        let mut latency = Histogram::<u64>::new(3)?;
        for thread in listening {
            let one = thread.join().map_err(|_| anyhow::anyhow!("a listener panicked"))??;
            latency.add(one)?;
        }
        anyhow::Ok(latency)
    });
    let expected = posts / u64::from(AUTHORS) * u64::from(LISTENERS);
    let per_second = posts as f64 / took.as_secs_f64();
    Ok(Delivered { latency: joined.await??, expected, per_second })
}

/// Posts at a fixed rate, and records the time of each post. Returns the total duration.
async fn post_all(
    world: &World,
    first: u64,
    sent: &Arc<Vec<AtomicU64>>,
    start: Instant,
) -> anyhow::Result<Duration> {
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for connection in 0..CONNECTIONS {
        let (address, requests, sent) =
            (world.server.address, world.server.requests(), Arc::clone(sent));
        tasks.spawn(async move {
            let mut connected = Connection::connect(address).await?;
            let mut request = Vec::new();
            for (number, time) in
                (0..).zip(sent.iter()).skip(connection as usize).step_by(CONNECTIONS as usize)
            {
                let number: u64 = number;
                let due = begun + Duration::from_secs(1) * number as u32 / PER_SECOND as u32;
                // Sleep only if necessary: even the shortest sleep takes a tick of the runtime, a millisecond.
                if due > Instant::now() {
                    tokio::time::sleep_until(due.into()).await;
                }
                let body = format!("{{\"text\":\"{}\"}}", text(first + number));
                let author = number % u64::from(AUTHORS);
                requests.post(&format!("/v1/users/{author}/posts"), body.as_bytes(), &mut request);
                time.store(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
                let response = connected.send(&request).await?;
                anyhow::ensure!(response.is_success(), "{}", response.status);
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begun.elapsed())
}

/// Client of a stream.
struct Listener {
    stream: TcpStream,
    /// Received bytes that are not searched yet.
    rest: Vec<u8>,
}

impl Listener {
    /// Connects as a listener, who then gets every later post.
    fn connect(world: &World, user: usize) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(world.server.address)?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.write_all(&world.get(user, "/api/v1/streaming/user")?)?;
        let mut reader = Self { stream, rest: Vec::new() };
        while !contains(&reader.rest, b":connected") {
            anyhow::ensure!(reader.fill()? > 0, "the stream ended");
        }
        reader.rest.clear();
        Ok(reader)
    }

    fn fill(&mut self) -> std::io::Result<usize> {
        let mut bytes = [0; 64 << 10];
        let read = self.stream.read(&mut bytes)?;
        self.rest.extend_from_slice(bytes.get(..read).unwrap_or_default());
        Ok(read)
    }

    /// Records the arrival of each post, until all have arrived or the stream is silent for too long.
    fn listen(
        mut self,
        first: u64,
        sent: &[AtomicU64],
        start: Instant,
        expected: u64,
    ) -> anyhow::Result<Histogram<u64>> {
        let mut latency = Histogram::new(3)?;
        while latency.len() < expected {
            match self.fill() {
                Ok(0) => anyhow::bail!("the stream ended"),
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            let now = start.elapsed().as_nanos() as u64;
            while let Some(number) = self.next()? {
                // The stream may still contain posts of the previous run.
                let time = number.checked_sub(first).and_then(|at| sent.get(at as usize));
                if let Some(time) = time {
                    latency.record(now.saturating_sub(time.load(Ordering::Relaxed)))?;
                }
            }
        }
        Ok(latency)
    }

    /// Number of the next post in the received bytes.
    fn next(&mut self) -> anyhow::Result<Option<u64>> {
        let Some(at) = find(&self.rest, MARK) else {
            let keep = self.rest.len().min(MARK.len() - 1);
            self.rest.drain(..self.rest.len() - keep);
            return Ok(None);
        };
        let begin = at + MARK.len();
        let Some(digits) = self.rest.get(begin..begin + DIGITS) else {
            self.rest.drain(..at);
            return Ok(None);
        };
        let number = std::str::from_utf8(digits)?.parse().context("a number of a post")?;
        self.rest.drain(..begin + DIGITS);
        Ok(Some(number))
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    find(bytes, part).is_some()
}
