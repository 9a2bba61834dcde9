//! Stream that fails when its peer reads too slowly. Otherwise, a client that stops reading, or reads a byte from time
//! to time, could hold a connection and its unsent data forever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Number of bytes that a peer must receive within the time limit, unless it has received everything.
const PROGRESS_BYTES: usize = 16 << 10;

/// Stream with this limit. A write that proceeds costs one comparison; a write that cannot proceed starts the clock.
#[derive(Debug)]
pub(crate) struct StallGuard<S> {
    inner: S,
    patience: Duration,
    stalled: bool,
    /// Number of bytes written since the stream stalled.
    written: usize,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    /// Creates a stream whose writes fail if they make too little progress within `patience`.
    pub(crate) fn new(inner: S, patience: Duration) -> Self {
        Self { inner, patience, stalled: false, written: 0, alarm: None }
    }

    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = &progress {
            self.written += written.as_ref().map_or(0, |written| *written);
            self.stalled &= self.written < PROGRESS_BYTES;
            return progress;
        }
        self.wait(cx).map(Err)
    }

    /// Completes with an error if too few bytes were written within the time limit.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        if !self.stalled {
            (self.stalled, self.written) = (true, 0);
            alarm.as_mut().reset(Instant::now() + self.patience);
        }
        alarm.as_mut().poll(cx).map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.watch(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        if flushed.is_ready() {
            // Everything is written, so the stream does not stall.
            self.stalled = false;
            return flushed;
        }
        self.wait(cx).map(Err)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_disconnected() {
        let (near, _far) = tokio::io::duplex(4);
        let mut near = StallGuard::new(near, PATIENCE);
        let error = near.write_all(b"12345").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// Sends `bytes` to a peer that reads `takes` bytes every 20 s.
    async fn sent(bytes: usize, takes: usize) -> io::Result<()> {
        let (near, mut far) = tokio::io::duplex(takes);
        let mut near = StallGuard::new(near, PATIENCE);
        tokio::spawn(async move {
            let mut taken = vec![0; takes];
            loop {
                tokio::time::sleep(PATIENCE * 2 / 3).await;
                if far.read(&mut taken).await.is_ok_and(|taken| taken == 0) {
                    return;
                }
            }
        });
        near.write_all(&vec![7; bytes]).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_is_kept_while_it_reads_enough() {
        sent(100 * PROGRESS_BYTES, PROGRESS_BYTES).await.unwrap();
        sent(20, 10).await.unwrap();
        let error = sent(PROGRESS_BYTES, 10).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn earlier_stalls_do_not_count() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = StallGuard::new(near, PATIENCE);
        for _ in 0..3 {
            let reader = async {
                tokio::time::sleep(PATIENCE / 2).await;
                far.read_exact(&mut [0; 8]).await.unwrap();
            };
            let (written, _) = tokio::join!(near.write_all(b"12345678"), reader);
            written.unwrap();
            near.flush().await.unwrap();
            tokio::time::sleep(PATIENCE * 10).await;
        }
    }
}
