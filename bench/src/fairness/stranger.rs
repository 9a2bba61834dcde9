//! The stranger: a client of three threads, which each send short requests at a fixed rate. Measures their latency.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sim::client::Connection;

use super::flood::home;
use super::floods::{VALUE_BYTES, command};
use crate::rig::KEY;

/// Interval between the requests of each thread, for a server that does not sync each change.
pub(crate) const PACE: Duration = Duration::from_millis(2);
/// Maximum time to wait for a response. After it, the measurement fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Key that is read.
const READ_KEY: &[u8] = b"k7";

/// Kinds of requests.
pub(crate) const KINDS: [&str; 3] = ["home", "GET", "SET"];

/// Latencies in nanoseconds by kind, and the number of refused requests.
pub(crate) struct Waits {
    pub(crate) latency: [Histogram<u64>; 3],
    pub(crate) refused: u64,
}

/// Length of a measurement, and interval between the requests of each thread. If a response takes longer than this
/// interval, the next request is sent late; this delay counts as latency.
#[derive(Clone, Copy)]
pub(crate) struct Paced {
    pub(crate) time: Duration,
    pub(crate) pace: Duration,
}

/// Measures for the given time.
pub(crate) fn measure(http: SocketAddr, redis: SocketAddr, time: Paced) -> anyhow::Result<Waits> {
    std::thread::scope(|scope| {
        let home = scope.spawn(move || homes(http, time));
        let get =
            scope.spawn(move || commands(redis, time, &[b"GET", READ_KEY], 5 + VALUE_BYTES + 2));
        let value = [b'v'; VALUE_BYTES];
        let set = scope.spawn(move || commands(redis, time, &[b"SET", b"stranger", &value], 5));
        let [home, get, set] = [home, get, set].map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a stranger panicked")))
        });
        let ((home, a), (get, b), (set, c)) = (home?, get?, set?);
        Ok(Waits { latency: [home, get, set], refused: a + b + c })
    })
}

/// Sends requests at a fixed rate. Latency is measured from sending a request, because the server is not to blame if
/// this thread wakes up late. If the previous request had no response by the due time, latency is measured from the due
/// time.
fn paced(
    Paced { time, pace }: Paced,
    mut ask: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<(Histogram<u64>, u64)> {
    let (mut latency, mut refused) = (Histogram::new(3)?, 0);
    let (start, mut answered) = (Instant::now(), Instant::now());
    for n in 0.. {
        let due = start + pace * n;
        // A thread that is far from its schedule has already recorded large latencies, so it may stop.
        if due - start >= time || start.elapsed() >= 2 * time {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let since = if answered > due { due } else { Instant::now() };
        refused += u64::from(!ask()?);
        answered = Instant::now();
        latency.record((answered - since).as_nanos() as u64)?;
    }
    Ok((latency, refused))
}

fn homes(address: SocketAddr, time: Paced) -> anyhow::Result<(Histogram<u64>, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut connection = runtime.block_on(Connection::connect(address))?;
    let request = home(address);
    paced(time, || Ok(runtime.block_on(connection.send(&request))?.is_success()))
}

/// Connects, and logs in with the key.
fn connected(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut login = Vec::new();
    command(&mut login, &[b"AUTH", KEY.as_bytes()]);
    stream.write_all(&login)?;
    stream.read_exact(&mut [0; 5])?;
    Ok(stream)
}

/// Sets the key that is read later.
pub(crate) fn prepare(address: SocketAddr) -> anyhow::Result<()> {
    let mut request = Vec::new();
    command(&mut request, &[b"SET", READ_KEY, &[b'v'; VALUE_BYTES]]);
    let mut stream = connected(address)?;
    stream.write_all(&request)?;
    Ok(stream.read_exact(&mut [0; 5])?)
}

/// Sends commands. `reply` is the length of a successful reply.
fn commands(
    address: SocketAddr,
    time: Paced,
    words: &[&[u8]],
    reply: usize,
) -> anyhow::Result<(Histogram<u64>, u64)> {
    let (mut stream, mut request) = (connected(address)?, Vec::new());
    command(&mut request, words);
    let mut bytes = [0; 256];
    paced(time, || {
        stream.write_all(&request)?;
        let mut read = 0;
        loop {
            read += stream.read(bytes.get_mut(read..).unwrap_or_default())?;
            let got = bytes.get(..read).unwrap_or_default();
            let refused = got.first() == Some(&b'-');
            if refused && got.ends_with(b"\r\n") || read >= reply {
                return Ok(!refused);
            }
        }
    })
}
