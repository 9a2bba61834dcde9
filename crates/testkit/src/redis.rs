//! Blocking Redis client, which can also send without reading replies.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

pub use crate::Reply;
use crate::{Decoder, PATIENCE, ReplyLimits};

/// Connection to a Redis server.
pub struct Redis {
    stream: TcpStream,
    decoder: Decoder,
    /// Received bytes. The bytes before `read` belong to returned replies.
    arrived: Vec<u8>,
    read: usize,
}

impl Redis {
    /// Connects to a server.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self::try_new(address).unwrap()
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// If there is no server.
    pub fn try_new(address: SocketAddr) -> io::Result<Self> {
        let stream = crate::http::connect(address)?.into_inner();
        let decoder = Decoder::new(ReplyLimits::CLIENT);
        Ok(Self { stream, decoder, arrived: Vec::new(), read: 0 })
    }

    /// Socket of the connection.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends raw bytes.
    ///
    /// # Errors
    /// If the server has ended.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends raw bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// Sends as many of these bytes as the peer accepts immediately, or none if the peer has closed the connection.
    pub fn push(&mut self, bytes: &[u8]) {
        self.stream.set_nonblocking(true).unwrap();
        let mut rest = bytes;
        while let Ok(sent @ 1..) = self.stream.write(rest) {
            rest = &rest[sent..];
        }
        self.stream.set_nonblocking(false).unwrap();
    }

    /// Waits for the next reply.
    pub fn receive(&mut self) -> Reply {
        self.try_receive().unwrap()
    }

    /// Waits for the next `count` replies.
    pub fn receive_all(&mut self, count: usize) -> Vec<Reply> {
        (0..count).map(|_| self.receive()).collect()
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// If the server has ended, or closed the connection.
    pub fn try_receive(&mut self) -> io::Result<Reply> {
        loop {
            let mut rest = &self.arrived[self.read..];
            let reply = self.decoder.next(&mut rest).unwrap_or_else(|error| panic!("{error}"));
            self.read = self.arrived.len() - rest.len();
            if let Some(reply) = reply {
                return Ok(reply);
            }
            self.arrived.drain(..self.read);
            self.read = 0;
            let mut piece = [0; 1 << 16];
            let count = match self.stream.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.arrived.extend_from_slice(&piece[..count]);
        }
    }

    /// Waits for the next reply; `None` if the server has closed the connection.
    pub fn receive_or_end(&mut self) -> Option<Reply> {
        use io::ErrorKind::{ConnectionReset, UnexpectedEof};
        match self.try_receive() {
            Err(error) if matches!(error.kind(), ConnectionReset | UnexpectedEof) => None,
            reply => Some(reply.unwrap()),
        }
    }

    /// Sends a command and waits for its reply.
    pub fn run(&mut self, words: &[&[u8]]) -> Reply {
        self.send(&command(words));
        self.receive()
    }

    /// Sends a command of words separated by spaces, and waits for its reply.
    pub fn line(&mut self, line: &str) -> Reply {
        self.send(&self::line(line));
        self.receive()
    }

    /// Sends a command of words separated by spaces, again and again until the server is not busy.
    pub fn until_not_busy(&mut self, line: &str) -> Reply {
        let start = Instant::now();
        loop {
            let reply = self.line(line);
            if !reply.is_busy() {
                return reply;
            }
            assert!(start.elapsed() < PATIENCE, "{line}: {reply:?}");
        }
    }

    /// Sends several commands of words separated by spaces, and waits for all replies.
    pub fn pipeline(&mut self, lines: impl IntoIterator<Item = String>) -> Vec<Reply> {
        let lines: Vec<_> = lines.into_iter().map(|line| self::line(&line)).collect();
        self.send(&lines.concat());
        self.receive_all(lines.len())
    }
}

/// Encodes a command as clients send it.
#[must_use]
pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Encodes a command of words separated by spaces.
#[must_use]
pub fn line(line: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    command(&words)
}
