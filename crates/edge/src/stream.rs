//! Stream of a connection, with or without TLS.
//!
//! **Invariant:** a connection over TLS uses at most [`TLS_BYTES`] more than one without TLS: undecrypted input, one
//! decrypted record, and unsent output are limited.

use std::io::{self, BufRead};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead as _, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::stall::StallGuard;

/// Maximum size of input without a complete handshake or decrypted data, in bytes. It is enough for the longest TLS
/// record, and for handshake messages before it. The TLS library alone would buffer 64 KiB of an incomplete message.
const ARRIVED_BYTES_MAX: usize = 24 << 10;
/// Maximum size of encrypted, unsent output, in bytes.
pub(crate) const UNSENT_BYTES_MAX: usize = 16 << 10;
/// Maximum size of the decrypted record being read, in bytes.
const RECORD_BYTES_MAX: usize = 16 << 10;
/// Maximum memory of a connection over TLS in addition to one without TLS, in bytes: the above constants, and the state
/// of the session.
pub const TLS_BYTES: usize = ARRIVED_BYTES_MAX + UNSENT_BYTES_MAX + RECORD_BYTES_MAX + (8 << 10);

/// Socket whose peer must not stop reading.
pub(crate) type Socket = StallGuard<TcpStream>;

/// Stream of a connection. A write fails if the peer reads too little for 30 s.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    Plain(Socket),
    Tls(Box<TlsStream<Arrivals<Socket>>>),
}

impl Stream {
    pub(crate) fn plain(socket: Socket) -> Self {
        Self(Kind::Plain(socket))
    }

    /// Stream with a completed handshake.
    pub(crate) fn tls(mut stream: TlsStream<Arrivals<Socket>>) -> Self {
        stream.get_mut().0.forget();
        Self(Kind::Tls(Box::new(stream)))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Kind::Tls(stream) => {
                // Read from the socket only until data is decrypted. `poll_read` would continue until the buffer is
                // full, and would count many small records as input without data.
                if !ready!(Pin::new(&mut *stream).poll_fill_buf(cx))?.is_empty() {
                    let (socket, session) = stream.get_mut();
                    socket.forget();
                    take(&mut session.reader(), buf);
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}

/// Moves as much decrypted data as fits into `buf`, without reading from the socket.
fn take(decrypted: &mut impl BufRead, buf: &mut ReadBuf<'_>) {
    while buf.remaining() > 0
        && let Ok(chunk @ [_, ..]) = decrypted.fill_buf()
    {
        let (moved, _) = chunk.split_at(chunk.len().min(buf.remaining()));
        buf.put_slice(moved);
        let length = moved.len();
        decrypted.consume(length);
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Kind::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Kind::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Kind::Plain(socket) => socket.is_write_vectored(),
            Kind::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Stream that fails when more than [`ARRIVED_BYTES_MAX`] arrive without any decrypted data.
#[derive(Debug)]
pub(crate) struct Arrivals<S> {
    inner: S,
    bytes: usize,
}

impl<S> Arrivals<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, bytes: 0 }
    }

    /// Resets the count, because the input was decrypted.
    fn forget(&mut self) {
        self.bytes = 0;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Arrivals<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.bytes += buf.filled().len() - before;
        Poll::Ready(match self.bytes <= ARRIVED_BYTES_MAX {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "too much that is not data")),
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Arrivals<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
