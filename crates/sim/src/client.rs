//! Small HTTP/1.1 client for load. Connections stay open and have one request at a time. Requests are given as bytes,
//! and responses are slices of a reused buffer.
//!
//! After any failure, a connection is not used again. The size of a response is limited ([`HEAD_BYTES_MAX`],
//! [`BODY_BYTES_MAX`]). The caller handles timeouts: dropping the future of a request closes its connection.

mod chunked;
mod head;
mod requests;
mod target;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) use chunked::Chunked;
pub use head::HEAD_BYTES_MAX;
use head::limits;
pub(crate) use head::{Framing, Head, TOO_MANY};
pub use requests::Requests;
pub(crate) use requests::insert_idempotency_key;
pub use target::{Target, TargetStream, TlsError};

/// The longest accepted body, in bytes.
pub const BODY_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Longest pause in the response to a download.
pub const PAUSE_MAX: Duration = Duration::from_secs(120);
/// Buffer space reserved for one read, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// Error of a request that got no response.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The connection cannot be opened, or it failed.
    #[error("connection: {0}")]
    Transport(#[from] io::Error),
    /// The server closed the connection before the end of the response.
    #[error("the server closed the connection before the end of the response")]
    Closed,
    /// The received bytes are not an HTTP/1.1 response.
    #[error("malformed response: {0}")]
    Malformed(&'static str),
    /// The body is longer than [`BODY_BYTES_MAX`].
    #[error("the body of the response is longer than {BODY_BYTES_MAX} bytes")]
    TooLarge,
}

/// A response; the body is valid until the next request on the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// The status, 200 to 999.
    pub status: u16,
    /// The body, without its transfer coding.
    pub body: &'a [u8],
}

impl Response<'_> {
    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// One connection to a server.
#[derive(Debug)]
pub struct Connection<S = TcpStream> {
    stream: S,
    incoming: Incoming,
    /// The body of a chunked response, decoded.
    joined: Vec<u8>,
    closing: bool,
}

impl Connection {
    /// Connects to a server.
    pub async fn connect(address: SocketAddr) -> Result<Connection, ClientError> {
        Ok(Connection::over(address.dial().await?))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Creates a connection from an open stream to a server.
    pub fn over(stream: S) -> Connection<S> {
        Connection { stream, incoming: Incoming::default(), joined: Vec::new(), closing: false }
    }

    /// Sends a request and waits for its response. The request must be complete and well-formed. After an error, the
    /// connection cannot be used again.
    pub async fn send(&mut self, request: &[u8]) -> Result<Response<'_>, ClientError> {
        let answer = self.exchange(request).await?;
        Ok(self.response(&answer))
    }

    /// Sends a request. No other request may follow until the response is complete.
    async fn ask(&mut self, request: &[u8]) -> Result<(), ClientError> {
        if self.closing {
            return Err(ClientError::Closed);
        }
        self.closing = true;
        self.incoming.begin()?;
        self.stream.write_all(request).await?;
        // Flush bytes that a TLS stream may have buffered.
        Ok(self.stream.flush().await?)
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Answer, ClientError> {
        self.ask(request).await?;
        let head = self.incoming.head(&mut self.stream).await?;
        let body = match head.framing {
            Framing::Length(length) => {
                Body::Plain(self.incoming.body(length, &mut self.stream).await?)
            }
            Framing::Chunked => {
                self.join_chunks().await?;
                Body::Joined
            }
        };
        self.closing = head.closes;
        Ok(Answer { status: head.status, body })
    }

    /// Sends a request, and passes the body of a successful response, of any length, to `each` piece by piece. Returns
    /// other responses. After an error (of the connection or of `each`, or a pause of [`PAUSE_MAX`] in the response),
    /// the connection cannot be used again.
    pub async fn download(
        &mut self,
        request: &[u8],
        each: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
    ) -> Result<Response<'_>, ClientError> {
        self.ask(request).await?;
        let head = timely(self.incoming.head(&mut self.stream)).await?;
        let success = (200..300).contains(&head.status);
        let body = match head.framing {
            Framing::Length(length) => {
                let range = timely(self.incoming.body(length, &mut self.stream)).await?;
                Body::Plain(range)
            }
            Framing::Chunked => {
                self.joined.clear();
                let mut chunked = Chunked::new();
                while !chunked.is_over() {
                    let (taken, data) = chunked.take(self.incoming.unread())?;
                    if success {
                        each(data)?;
                    } else if (self.joined.len() + data.len()) as u64 <= BODY_BYTES_MAX {
                        self.joined.extend_from_slice(data);
                    }
                    self.incoming.consume(taken);
                    if taken == 0 {
                        timely(self.incoming.fill(&mut self.stream)).await?;
                    }
                }
                Body::Joined
            }
        };
        self.closing = head.closes;
        let answer = Answer { status: head.status, body };
        let response = self.response(&answer);
        if success && matches!(answer.body, Body::Plain(_)) {
            each(response.body)?;
        }
        Ok(response)
    }

    async fn join_chunks(&mut self) -> Result<(), ClientError> {
        self.joined.clear();
        let mut chunked = Chunked::new();
        while !chunked.is_over() {
            let (taken, data) = chunked.take(self.incoming.unread())?;
            if (self.joined.len() + data.len()) as u64 > BODY_BYTES_MAX {
                return Err(ClientError::TooLarge);
            }
            self.joined.extend_from_slice(data);
            self.incoming.consume(taken);
            if taken == 0 {
                self.incoming.fill(&mut self.stream).await?;
            }
        }
        Ok(())
    }

    fn response(&self, answer: &Answer) -> Response<'_> {
        let body = match &answer.body {
            Body::Plain(range) => self.incoming.bytes.get(range.clone()).unwrap_or_default(),
            Body::Joined => &self.joined,
        };
        Response { status: answer.status, body }
    }
}

/// Waits up to [`PAUSE_MAX`] for a part of a response.
async fn timely<T>(part: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    let arrived = tokio::time::timeout(PAUSE_MAX, part).await;
    arrived.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

/// Response in the buffers of its connection.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Plain(Range<usize>),
    Joined,
}

/// Bytes read from a server, and the number of them that were consumed.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    used: usize,
    /// Rate-limit headers of the last head.
    limits: String,
}

impl Incoming {
    /// Prepares for a new response. Fails if bytes arrived before the request.
    fn begin(&mut self) -> Result<(), ClientError> {
        if !self.unread().is_empty() {
            return Err(ClientError::Malformed("bytes after the answer"));
        }
        self.bytes.clear();
        self.used = 0;
        Ok(())
    }

    pub(crate) fn unread(&self) -> &[u8] {
        self.bytes.get(self.used..).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, size: usize) {
        self.used += size;
        assert!(self.used <= self.bytes.len(), "more bytes used than read");
    }

    /// Reads some more bytes after the unread ones.
    pub(crate) async fn fill(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<(), ClientError> {
        if self.unread().is_empty() {
            self.bytes.clear();
            self.used = 0;
        }
        if self.bytes.capacity() - self.bytes.len() < READ_BYTES / 4 {
            self.bytes.reserve(READ_BYTES);
        }
        match stream.read_buf(&mut self.bytes).await? {
            0 => Err(ClientError::Closed),
            _ => Ok(()),
        }
    }

    /// Reads a head, leaving the bytes after it unread.
    pub(crate) async fn head(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<Head, ClientError> {
        loop {
            if let Some(head) = Head::parse(self.unread())? {
                self.limits.clear();
                if head.status == TOO_MANY {
                    self.limits = limits(self.unread().get(..head.size).unwrap_or_default());
                }
                self.consume(head.size);
                return Ok(head);
            }
            self.fill(stream).await?;
        }
    }

    /// Reads a body of `length` bytes and returns its range in the buffer.
    async fn body(
        &mut self,
        length: u64,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<Range<usize>, ClientError> {
        if length > BODY_BYTES_MAX {
            return Err(ClientError::TooLarge);
        }
        let length = length as usize;
        while self.unread().len() < length {
            self.fill(stream).await?;
        }
        let start = self.used;
        self.consume(length);
        Ok(start..start + length)
    }
}

/// Opens connections: to an address, or to an in-memory pipe in tests.
pub trait Dial {
    /// The stream of a connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send;

    /// Opens a connection to the server.
    fn dial(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Dial for SocketAddr {
    type Stream = TcpStream;

    async fn dial(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self).await?;
        // Send each request at once: it is one write, and Nagle's algorithm would only delay it.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Connection that is opened when it is first needed, and opened again after a failure.
#[derive(Debug)]
pub struct Client<D: Dial> {
    dial: D,
    connection: Option<Connection<D::Stream>>,
}

impl<D: Dial> Client<D> {
    /// A client that has not connected yet.
    pub fn new(dial: D) -> Client<D> {
        Client { dial, connection: None }
    }

    /// Sends a request, over a new connection if necessary, and waits for its response. A request is never sent twice.
    pub async fn send(&mut self, request: &[u8]) -> Result<Response<'_>, ClientError> {
        let answer = self.exchange(request).await?;
        Ok(self.response(&answer))
    }

    /// Sends a request like [`Client::send`]; [`Client::response`] reads the response.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Answer, ClientError> {
        // Take the connection out until the response is complete, so that an error or a dropped future closes it.
        let mut connection = match self.connection.take().filter(|connection| !connection.closing) {
            Some(connection) => connection,
            None => Connection::over(self.dial.dial().await?),
        };
        let answer = connection.exchange(request).await?;
        self.connection = Some(connection);
        Ok(answer)
    }

    /// Response to the last request. `answer` must be the result of that request.
    pub(crate) fn response(&self, answer: &Answer) -> Response<'_> {
        let Some(connection) = &self.connection else {
            return Response { status: answer.status, body: b"" };
        };
        connection.response(answer)
    }

    /// Closes the connection, so that the next request opens another one.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Rate-limit headers of the last response, each after `; `. Empty unless a rate limit caused a refusal.
    pub(crate) fn limits(&self) -> &str {
        self.connection.as_ref().map_or("", |connection| &connection.incoming.limits)
    }
}
