//! A connection: bytes in, commands, bytes out.
//!
//! A turn carries out every command that has arrived, waits for the changes among them, and writes the
//! replies at once. **Invariants:** while more than [`OUTPUT_FULL`] of replies are unsent no further
//! command is carried out, so replies take that and one more reply at most. What arrives meanwhile is
//! kept, up to [`BACKLOG_MAX`], so that a client may write a long pipeline before it reads anything.
//! A peer that takes no replies, sends half a command, or does not authenticate is given up after
//! [`PATIENCE`] without progress.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use feed::limits::VALUE_BYTES_MAX;
use resp::{Limits, Parser};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::{Instant, Sleep};

use super::client::Client;

/// Commands wait while so many bytes of replies do.
const OUTPUT_FULL: usize = 1 << 20;
/// What is kept of commands that wait.
const BACKLOG_MAX: usize = 32 << 20;
/// How long a peer may keep a connection waiting for the rest of something.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes read at a time, at least.
const READ_BYTES_MIN: usize = 4 << 10;
/// Buffers longer than this are given back when they are empty.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Limits of requests: a value may be as long as a value may be.
const LIMITS: Limits =
    Limits { bulk_bytes_max: VALUE_BYTES_MAX, command_bytes_max: BACKLOG_MAX, ..Limits::REDIS };

/// Serves a client until either side ends.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, client: Client) {
    let mut connection = Connection {
        stream,
        client,
        parser: Parser::new(LIMITS),
        input: Vec::new(),
        executed: 0,
        sent: 0,
        starved: true,
        ended: false,
        alarm: Alarm::default(),
    };
    poll_fn(|cx| {
        connection.client.registered.entry.woken_by(cx.waker());
        Poll::Ready(())
    })
    .await;
    if let Err(error) = connection.run().await {
        tracing::debug!(%error, "a Redis client is gone");
    }
}

struct Connection<S> {
    stream: S,
    client: Client,
    parser: Parser,
    /// What has arrived.
    input: Vec<u8>,
    /// How much of it has been carried out.
    executed: usize,
    /// How much of the client's output has been sent.
    sent: usize,
    /// No whole command is left.
    starved: bool,
    /// The peer sends no more.
    ended: bool,
    alarm: Alarm,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            self.carry_out().await;
            self.client.settle().await;
            self.client.end_turn();
            self.tidy();
            if self.client.closing || self.ended && self.starved {
                return poll_fn(|cx| self.finish(cx)).await;
            }
            poll_fn(|cx| self.exchange(cx)).await?;
        }
    }

    /// Carries out commands until none is left or there are replies enough.
    async fn carry_out(&mut self) {
        self.starved = false;
        let mut rest = self.input.get(self.executed..).unwrap_or_default();
        while !self.client.closing && self.client.output.len() - self.sent < OUTPUT_FULL {
            self.parser.set_authenticated(self.client.authenticated);
            match self.parser.next(&mut rest) {
                Ok(Some(command)) => self.client.carry_out(command).await,
                Ok(None) => {
                    self.starved = true;
                    break;
                }
                Err(error) => {
                    self.client.settle().await;
                    self.client.reply().error(error);
                    self.client.closing = true;
                }
            }
        }
        self.executed = self.input.len() - rest.len();
    }

    /// Forgets what has been carried out, and memory that is not needed again soon.
    fn tidy(&mut self) {
        if self.executed == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..self.executed);
        }
        self.executed = 0;
        shrink(&mut self.input);
    }

    /// Writes replies and reads commands until there is something to carry out.
    fn exchange(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_alive()?;
        let flushed = self.flush(cx)?.is_ready();
        if flushed && !self.starved {
            return Poll::Ready(Ok(()));
        }
        let room = self.client.output.len() - self.sent < OUTPUT_FULL;
        let before = self.input.len();
        while !self.ended && self.input.len() < BACKLOG_MAX + READ_BYTES_MIN {
            if self.read(cx)?.is_pending() || room {
                break;
            }
        }
        let arrived = self.input.len() > before;
        if arrived {
            self.alarm.calm();
        }
        if room && arrived || flushed && self.ended {
            return Poll::Ready(Ok(()));
        }
        let half = self.starved && !self.input.is_empty();
        if flushed && !half && self.client.authenticated {
            return Poll::Pending;
        }
        self.lose_patience(cx)
    }

    /// Writes the last replies and ends the connection.
    fn finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_alive()?;
        if self.flush(cx)?.is_pending() {
            return self.lose_patience(cx);
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn check_alive(&self) -> io::Result<()> {
        let killed = self.client.registered.entry.is_killed();
        if killed { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    fn lose_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alarm.poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Reads once, to the end of the input.
    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        if self.input.capacity() - self.input.len() < READ_BYTES_MIN {
            self.input.reserve(READ_BYTES_MIN);
        }
        let read = pin!(self.stream.read_buf(&mut self.input)).poll(cx)?;
        Ok(read.map(|bytes| {
            self.ended |= bytes == 0;
            self.client.turn.bytes_in += bytes as u64;
        }))
    }

    /// Writes replies. Ready when all are written.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(unsent) = self.client.output.get(self.sent..).filter(|rest| !rest.is_empty())
        {
            match Pin::new(&mut self.stream).poll_write(cx, unsent)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(written) => {
                    self.sent += written;
                    self.client.turn.bytes_out += written as u64;
                    self.alarm.calm();
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        self.client.output.clear();
        self.sent = 0;
        shrink(&mut self.client.output);
        Poll::Ready(Ok(()))
    }
}

fn shrink(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new();
    }
}

/// Rings when it has been polled for [`PATIENCE`] without being calmed.
#[derive(Default)]
struct Alarm {
    armed: bool,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn calm(&mut self) {
        self.armed = false;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
        if !self.armed {
            self.armed = true;
            sleep.as_mut().reset(Instant::now() + PATIENCE);
        }
        sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;

    use node::{Node, NodeOptions};
    use tokio::io::{AsyncWriteExt as _, DuplexStream};
    use tokio::sync::Semaphore;
    use tokio::task::{JoinHandle, LocalSet};

    use super::super::batch::Batches;
    use super::super::client::Shared;
    use super::super::metrics::RedisMetrics;
    use super::super::registry::Registry;
    use super::*;
    use crate::Access;

    /// Runs `test` on a thread of connections whose clock leaps from timer to timer. It is given a
    /// function that opens a connection with so much room for what was not read.
    fn run<F: Future<Output = ()>>(
        access: Access,
        test: impl FnOnce(Box<dyn Fn(usize) -> (DuplexStream, JoinHandle<()>)>) -> F,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
        let metrics = RedisMetrics::default();
        let batches = Rc::new(Batches::new(node.clone(), metrics.clone()));
        let shared = Arc::new(Shared {
            node,
            access,
            metrics,
            registry: Registry::new(),
            blocking: Arc::new(Semaphore::new(1)),
            connections_max: 1,
        });
        let open = move |room| {
            let (near, far) = tokio::io::duplex(room);
            let address = "127.0.0.1:1".parse().unwrap();
            let registered = shared.registry.enter(address, address);
            let client = Client::new(Arc::clone(&shared), Rc::clone(&batches), registered);
            (far, tokio::task::spawn_local(serve(near, client)))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        LocalSet::new().block_on(&runtime, test(Box::new(open)));
    }

    #[test]
    fn a_client_that_never_reads_its_replies_is_disconnected() {
        run(Access::Open, async |open| {
            let (mut client, connection) = open(1_024);
            let start = Instant::now();
            let question = format!("ECHO {}\r\n", "x".repeat(1_000));
            // It writes for as long as it is listened to.
            while client.write_all(question.as_bytes()).await.is_ok() {}
            connection.await.unwrap();
            assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
        });
    }

    #[test]
    fn a_client_that_sends_half_a_command_is_disconnected_and_an_idle_one_is_not() {
        run(Access::Open, async |open| {
            let (mut half, its_connection) = open(1_024);
            let (mut idle, other_connection) = open(1_024);
            idle.write_all(b"PING\r\n").await.unwrap();
            half.write_all(b"PING\r\n*2\r\n$3\r\nGET").await.unwrap();
            let start = Instant::now();
            its_connection.await.unwrap();
            assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
            tokio::time::sleep(100 * PATIENCE).await;
            assert!(!other_connection.is_finished());
            drop(idle);
            other_connection.await.unwrap();
        });
    }

    #[test]
    fn a_client_that_does_not_present_the_key_is_disconnected() {
        run(Access::Key { sha256: [0; 32] }, async |open| {
            let (_client, connection) = open(1_024);
            let start = Instant::now();
            connection.await.unwrap();
            assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
        });
    }

    #[test]
    fn a_slow_client_that_reads_now_and_then_gets_all_replies() {
        run(Access::Open, async |open| {
            let (mut client, connection) = open(100);
            let (mut reading, mut writing) = tokio::io::split(client);
            let writer = tokio::task::spawn_local(async move {
                let question = format!("ECHO {}\r\n", "x".repeat(50));
                writing.write_all(question.repeat(20).as_bytes()).await.unwrap();
                writing
            });
            let mut read = 0;
            while read < 20 * 57 {
                tokio::time::sleep(PATIENCE * 2 / 3).await;
                let mut piece = [0; 90];
                read += reading.read(&mut piece).await.unwrap();
            }
            client = reading.unsplit(writer.await.unwrap());
            drop(client);
            connection.await.unwrap();
        });
    }
}
