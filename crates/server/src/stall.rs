//! A stream that fails when its peer takes nothing for a while, so that a reader who stops reading
//! cannot hold a connection and its buffers for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Wraps a stream. A write that makes progress costs one comparison; only one that cannot proceed
/// starts the clock.
pub(crate) struct StallGuard<S> {
    inner: S,
    patience: Duration,
    stalled: bool,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    /// Fails writes that make no progress for `patience`.
    pub(crate) fn new(inner: S, patience: Duration) -> Self {
        Self { inner, patience, stalled: false, alarm: None }
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = false;
            return progress;
        }
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        if !self.stalled {
            self.stalled = true;
            alarm.as_mut().reset(Instant::now() + self.patience);
        }
        match alarm.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
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
        let progress = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, progress)
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
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (near, _far) = tokio::io::duplex(4);
        let mut near = StallGuard::new(near, PATIENCE);
        let error = near.write_all(b"12345").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_that_takes_something_now_and_then_is_not() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = StallGuard::new(near, PATIENCE);
        let reader = tokio::spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..10 {
                tokio::time::sleep(PATIENCE * 2 / 3).await;
                taken.push(far.read_u8().await.unwrap());
            }
            taken
        });
        near.write_all(b"0123456789").await.unwrap();
        assert_eq!(reader.await.unwrap(), b"0123456789");
    }
}
