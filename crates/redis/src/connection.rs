//! Connection: reads bytes, executes commands, writes bytes.
//!
//! A turn executes the commands that have arrived, waits for their changes, and writes all replies together.
//! **Invariants:** While too many replies are unsent ([`Session::output_full`]), no command is executed; the replies
//! thus take at most that limit plus one reply. Meanwhile input is buffered, up to [`BACKLOG_MAX`] and up to half of
//! the budget of all clients, so that a client may write a long pipeline before it reads. Nothing is read before its
//! memory is reserved. Before authentication, nothing is read while replies are unsent. If a peer makes no progress
//! with an unfinished command or reply, it is disconnected after [`PATIENCE`].

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use budget::MemoryBudget;
use bytes::BufMut as _;
use kv::limits::VALUE_BYTES_MAX;
use resp::Limits;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::client::Client;
use super::memory::{BUFFER_BYTES, Held, PARSER_BYTES};
use super::patience::Alarm;
use super::session::Session;

/// Maximum size of buffered input, and of a command, in bytes.
const BACKLOG_MAX: usize = 32 << 20;
/// Maximum size of buffered input before authentication, in bytes. It is a part of the memory of the connection, so
/// clients without a key take no memory from others.
const INPUT_UNAUTHENTICATED_MAX: usize = BUFFER_BYTES;
/// Maximum time for which a connection waits for the rest of a command, or for its peer to read replies.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Time for which a command that waits for a read or for the writer continues after its client has hung up. If the
/// client has only shut down its sending side, it gets a reply that is ready within this time.
const HANG_UP_PATIENCE: Duration = Duration::from_secs(2);
/// Pause between attempts to reserve memory for input.
const RETRY: Duration = Duration::from_millis(50);
/// Minimum size of a read, in bytes.
const READ_BYTES_MIN: usize = BUFFER_BYTES;
/// Maximum growth of the input buffer in one step, in bytes.
const GROWTH_BYTES_MAX: usize = 1 << 20;
/// Number of bytes to read, and to write, before other connections of the thread have their turn.
const MOVED_BYTES_MAX: usize = 128 << 10;
/// Maximum size of unsent replies that a peer may read arbitrarily slowly, in bytes. For longer replies, and for
/// commands, the peer must read or send [`PROGRESS_BYTES`] within [`PATIENCE`].
const SLOW_BYTES_MAX: usize = 64 << 10;
/// Minimum progress in bytes within [`PATIENCE`]: 35 kB/s. See [`SLOW_BYTES_MAX`].
const PROGRESS_BYTES: usize = 1 << 20;
/// Limits of requests. An argument may be as long as the longest value.
pub(crate) const LIMITS: Limits =
    Limits { bulk_bytes_max: VALUE_BYTES_MAX, command_bytes_max: BACKLOG_MAX, ..Limits::REDIS };

/// Stream that reports whether its peer has hung up.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// Ready when the peer has stopped sending, or when unread data has arrived (which hides the end of the stream).
    fn poll_hang_up(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// Whether the peer has stopped sending.
    fn has_hung_up(&self) -> bool;
}

impl Stream for TcpStream {
    fn poll_hang_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0];
        self.poll_peek(cx, &mut ReadBuf::new(&mut byte)).map(|_| ())
    }

    fn has_hung_up(&self) -> bool {
        let ready = pin!(self.ready(Interest::READABLE));
        match ready.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }
}

/// Serves a client until either side ends the connection.
pub(crate) async fn serve<S: Stream>(stream: S, client: Client) {
    let budget = client.memory.budget.clone();
    let mut connection = Connection {
        stream,
        session: Session::new(client),
        held: Held::new(&budget, BUFFER_BYTES + PARSER_BYTES),
        budget,
        sent: 0,
        ended: false,
        alarm: Alarm::default(),
        authentication: Alarm::default(),
        retry: Alarm::default(),
        hang_up: Alarm::default(),
        moved: 0,
    };
    let entry = Arc::clone(&connection.session.client.registered.entry);
    tracing::debug!(connection_id = entry.id, peer = %entry.peer, "a Redis client has connected");
    poll_fn(|cx| {
        entry.woken_by(cx.waker());
        Poll::Ready(())
    })
    .await;
    drop(entry);
    let ended = connection.run().await;
    let client = &connection.session.client;
    let (connection_id, last_command) = (client.registered.entry.id, client.last);
    match ended {
        Ok(()) => tracing::debug!(connection_id, last_command, "a Redis client has disconnected"),
        Err(error) => {
            tracing::debug!(connection_id, last_command, %error, "a Redis connection was lost or closed");
        }
    }
}

struct Connection<S> {
    stream: S,
    session: Session,
    budget: MemoryBudget,
    /// Reservation of the input buffer.
    held: Held,
    /// Number of sent bytes of the client's output.
    sent: usize,
    /// Whether the peer has shut down its sending side.
    ended: bool,
    /// Alarm that runs while the peer makes no progress with an unfinished command or reply.
    alarm: Alarm,
    /// Alarm that runs until the client has authenticated.
    authentication: Alarm,
    /// Alarm that runs while no memory is available for input.
    retry: Alarm,
    /// Alarm that runs while commands of a peer are executed that may have hung up.
    hang_up: Alarm,
    /// Number of bytes read or written since `alarm` was last reset.
    moved: usize,
}

impl<S: Stream> Connection<S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            let executed = self.carry_out().await?;
            self.session.client.flush_changes().await;
            self.session.client.end_turn();
            self.session.tidy();
            // Ignore the result: a smaller buffer is always covered.
            let _covered = self.held.cover(self.session.memory_bytes());
            if self.session.client.authenticated() {
                self.authentication.reset();
            }
            if executed && self.unsent() == 0 {
                self.calm();
            }
            if self.session.client.closing || self.ended && self.session.starved {
                return poll_fn(|cx| self.finish(cx)).await;
            }
            if !self.session.starved || !self.session.input.is_empty() {
                // Let other connections of this thread have their turn first.
                tokio::task::yield_now().await;
            }
            poll_fn(|cx| self.exchange(cx)).await?;
        }
    }

    /// Executes commands. Ends early if the connection is killed or its peer has hung up.
    async fn carry_out(&mut self) -> io::Result<bool> {
        let entry = Arc::clone(&self.session.client.registered.entry);
        let Self { stream, hang_up, session, sent, .. } = self;
        hang_up.reset();
        let mut work = pin!(session.carry_out(*sent));
        poll_fn(|cx| {
            if let Poll::Ready(executed) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(executed));
            }
            if entry.is_killed() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if stream.poll_hang_up(cx).is_pending() {
                return Poll::Pending;
            }
            while hang_up.poll(cx, HANG_UP_PATIENCE).is_ready() {
                if stream.has_hung_up() {
                    return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                }
                hang_up.reset();
            }
            Poll::Pending
        })
        .await
    }

    /// Writes replies and reads input until there is a command to execute.
    fn exchange(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_alive()?;
        let flushed = self.flush(cx)?.is_ready();
        if flushed && !self.session.starved {
            return Poll::Ready(Ok(()));
        }
        let authenticated = self.session.client.authenticated();
        if !authenticated && self.session.input.len() >= INPUT_UNAUTHENTICATED_MAX {
            if flushed {
                self.session.refuse_input();
                return Poll::Ready(Ok(()));
            }
            return self.wait(cx, flushed);
        }
        let room = authenticated && self.unsent() < self.session.output_full();
        let before = self.session.input.len();
        while (authenticated || flushed) && !self.ended && self.grow_input(flushed) {
            if self.read(cx)?.is_pending() || room || !authenticated {
                break;
            }
        }
        let arrived = self.session.input.len() - before;
        if flushed {
            self.progress(arrived);
        }
        if (room || flushed) && arrived > 0 || flushed && self.ended {
            return Poll::Ready(Ok(()));
        }
        self.wait(cx, flushed)
    }

    /// Waits for the peer, up to [`PATIENCE`].
    fn wait(&mut self, cx: &mut Context<'_>, flushed: bool) -> Poll<io::Result<()>> {
        if self.retry.is_running() && self.retry.poll(cx, RETRY).is_ready() {
            self.retry.reset();
            cx.waker().wake_by_ref();
        }
        let client = &self.session.client;
        if !client.authenticated() {
            let late = self.authentication.poll(cx, PATIENCE);
            return late.map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        let half = self.session.starved && !self.session.input.is_empty();
        if flushed && !half && client.holds_little() {
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
        let killed = self.session.client.registered.entry.is_killed();
        if killed { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    fn lose_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alarm.poll(cx, PATIENCE).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn calm(&mut self) {
        self.alarm.reset();
        self.moved = 0;
    }

    /// Counts bytes read or written.
    fn progress(&mut self, bytes: usize) {
        self.moved += bytes;
        if self.moved >= PROGRESS_BYTES {
            self.calm();
        }
    }

    fn unsent(&self) -> usize {
        self.session.client.output.len() - self.sent
    }

    /// Makes room for more input, if allowed now.
    fn grow_input(&mut self, flushed: bool) -> bool {
        let input = &mut self.session.input;
        let (len, capacity) = (input.len(), input.capacity());
        let authenticated = self.session.client.authenticated();
        let most = if authenticated { BACKLOG_MAX } else { INPUT_UNAUTHENTICATED_MAX };
        if len >= most {
            return false;
        }
        if capacity - len >= if authenticated { READ_BYTES_MIN / 4 } else { 1 } {
            return true;
        }
        let wanted =
            (len + (len / 2).clamp(READ_BYTES_MIN, GROWTH_BYTES_MAX)).min(most + READ_BYTES_MIN);
        let wanted = if authenticated { wanted } else { most };
        // The backlog is optional, so it leaves half of the budget to other connections.
        let fair = flushed || self.budget.used() + (wanted - len) <= self.budget.limit() / 2;
        if !fair || !self.held.cover(wanted + self.session.parser.memory_bytes()) {
            self.retry.start();
            return false;
        }
        self.retry.reset();
        self.session.input.reserve_exact(wanted - len);
        true
    }

    /// Reads once, appending to the input.
    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let mut input = (&mut self.session.input).limit(MOVED_BYTES_MAX);
        let read = pin!(self.stream.read_buf(&mut input)).poll(cx)?;
        Ok(read.map(|bytes| {
            self.ended |= bytes == 0;
            self.session.client.turn.bytes_in += bytes as u64;
        }))
    }

    /// Writes replies. Ready when all are written.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(unsent) =
            self.session.client.output.bytes().get(self.sent..).filter(|rest| !rest.is_empty())
        {
            let len = unsent.len();
            let piece = unsent.get(..MOVED_BYTES_MAX).unwrap_or(unsent);
            match Pin::new(&mut self.stream).poll_write(cx, piece)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(written) => {
                    self.sent += written;
                    self.session.client.turn.bytes_out += written as u64;
                    if written == len || len <= SLOW_BYTES_MAX {
                        self.calm();
                    } else {
                        self.progress(written);
                    }
                    if written == MOVED_BYTES_MAX && written < len {
                        // Continue after other connections have had their turn.
                        return pin!(tokio::task::yield_now()).poll(cx).map(Ok);
                    }
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        self.session.client.output.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}
