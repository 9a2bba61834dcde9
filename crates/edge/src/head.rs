//! Stream that limits the buffered bytes of a request's head.
//!
//! The HTTP library buffers a head of up to 64 KiB until it is complete. **Invariant:** memory is reserved for all
//! bytes of a head beyond the first 8 KiB. If memory is short, the connection gets 503 and is closed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use budget::Reservation;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};

use crate::memory::RequestMemory;
use crate::seats::SeatGuard;

/// Size of a head that needs no reservation, in bytes: the initial buffer of the library.
const HEAD_BYTES_FREE: usize = 8 << 10;
/// Maximum size of a read, in bytes. The library grows its buffer only when a read fills it.
const READ_BYTES: u64 = HEAD_BYTES_FREE as u64 - 1;
const NO_MEMORY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nconnection: close\r\n\
    content-length: 0\r\n\r\n";

/// Stream of a connection that limits the buffered bytes of a head.
pub(crate) struct HeadGuard<S> {
    inner: Take<S>,
    taken: SeatGuard,
    memory: RequestMemory,
    held: Option<Reservation>,
}

impl<S: AsyncRead + Unpin> HeadGuard<S> {
    pub(crate) fn new(inner: S, taken: SeatGuard, memory: RequestMemory) -> Self {
        Self { inner: inner.take(READ_BYTES), taken, memory, held: None }
    }

    fn stream(&mut self) -> Pin<&mut S> {
        Pin::new(self.inner.get_mut())
    }

    /// Reserves memory for a head of `head` bytes. Returns false if memory is short.
    fn hold(&mut self, head: usize) -> bool {
        if head <= HEAD_BYTES_FREE {
            self.held = None;
            return true;
        }
        // The library doubles the size of a full buffer.
        let held = self.held.get_or_insert_with(|| self.memory.heads().empty());
        held.resize(2 * head)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for HeadGuard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        this.inner.set_limit(READ_BYTES);
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        if let Some(head) = this.taken.seat.arrived(buf.filled().len() - before)
            && !this.hold(head)
        {
            // If the socket cannot take the response immediately, close the connection without a response.
            drop(this.stream().poll_write(cx, NO_MEMORY));
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for HeadGuard<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.get_ref().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncWriteExt as _;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::seats::Seats;

    #[tokio::test]
    async fn long_heads_are_reserved_and_bodies_are_not() {
        let memory = RequestMemory::new(1 << 20);
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let taken = Arc::new(Seats::default()).take(permit, false);
        let seat = Arc::clone(&taken.seat);
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let mut near = HeadGuard::new(near, taken, memory.clone());
        far.write_all(&[b'x'; 200 << 10]).await.unwrap();
        let mut buffer = vec![0; 64 << 10];
        let mut read = near.read(&mut buffer).await.unwrap();
        assert_eq!((read, memory.used()), (READ_BYTES as usize, 0));
        while read < 20 << 10 {
            read += near.read(&mut buffer).await.unwrap();
        }
        assert_eq!(memory.used(), 2 * read as u64);
        // The following bytes are a body.
        let under_way = seat.begin();
        for _ in 0..10 {
            assert!(near.read(&mut buffer).await.unwrap() > 0);
        }
        assert_eq!(memory.used(), 2 * read as u64);
        drop(under_way);
        assert!(near.read(&mut buffer).await.unwrap() > 0);
        assert_eq!(memory.used(), 0, "the next head is still short");
        // Memory is too short for this head.
        let error = loop {
            if let Err(error) = near.read(&mut buffer).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        drop(near);
        let mut answer = String::new();
        far.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert_eq!(memory.used(), 0);
    }
}
