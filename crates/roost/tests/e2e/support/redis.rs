//! A blocking Redis client that can also send without reading.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use super::PATIENCE;
use super::http::connect;

/// A connection.
pub(crate) struct Redis(BufReader<TcpStream>);

/// A reply of RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(String),
    /// Its text, from the code on.
    Error(String),
    Integer(i64),
    /// `None` is the null reply.
    Bulk(Option<Vec<u8>>),
    Array(Vec<Reply>),
}

impl Reply {
    pub(crate) fn ok() -> Self {
        Self::Simple("OK".into())
    }

    /// The text of an error; empty for all others.
    pub(crate) fn error(&self) -> &str {
        if let Self::Error(text) = self { text } else { "" }
    }

    pub(crate) fn integer(&self) -> i64 {
        if let Self::Integer(number) = self { *number } else { panic!("no integer: {self:?}") }
    }

    /// Whether the server has refused a command because a limit was reached.
    pub(crate) fn is_busy(&self) -> bool {
        self.error().starts_with("BUSY ")
    }
}

impl Redis {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self(connect(address).unwrap())
    }

    /// A connection, or why there is none.
    pub(crate) fn try_new(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(connect(address)?))
    }

    /// Sends bytes as they are, unless the server has ended.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Sends as many of these bytes as the peer accepts at once; none if it has closed the connection.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let stream = self.0.get_mut();
        stream.set_nonblocking(true).unwrap();
        let mut rest = bytes;
        while let Ok(sent @ 1..) = stream.write(rest) {
            rest = &rest[sent..];
        }
        stream.set_nonblocking(false).unwrap();
    }

    /// The next reply.
    pub(crate) fn receive(&mut self) -> Reply {
        self.try_receive().unwrap()
    }

    /// The next `count` replies.
    pub(crate) fn receive_all(&mut self, count: usize) -> Vec<Reply> {
        (0..count).map(|_| self.receive()).collect()
    }

    /// The next reply, or why none comes.
    pub(crate) fn try_receive(&mut self) -> io::Result<Reply> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line)?;
        let text = String::from_utf8_lossy(&line);
        let Some(text) = text.strip_suffix("\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let (kind, rest) = text.split_at(1);
        let number = || rest.parse::<i64>().unwrap();
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(number()),
            "$" if number() < 0 => Reply::Bulk(None),
            "$" => {
                let mut bytes = vec![0; usize::try_from(number()).unwrap() + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Reply::Bulk(Some(bytes))
            }
            "*" => {
                let items = (0..number()).map(|_| self.try_receive());
                Reply::Array(items.collect::<io::Result<_>>()?)
            }
            _ => panic!("no reply: {text:?}"),
        })
    }

    /// Sends a command and waits for its reply.
    pub(crate) fn run(&mut self, words: &[&[u8]]) -> Reply {
        self.send(&command(words));
        self.receive()
    }

    /// Sends a line of words and waits for the reply.
    pub(crate) fn line(&mut self, line: &str) -> Reply {
        self.send(&self::line(line));
        self.receive()
    }

    /// Sends a line of words again and again until the server has the time and the memory for it.
    pub(crate) fn until_not_busy(&mut self, line: &str) -> Reply {
        let start = Instant::now();
        loop {
            let reply = self.line(line);
            if !reply.is_busy() {
                return reply;
            }
            assert!(start.elapsed() < PATIENCE, "{line}: {reply:?}");
        }
    }

    /// Sends lines of words together and waits for all replies.
    pub(crate) fn pipeline(&mut self, lines: impl IntoIterator<Item = String>) -> Vec<Reply> {
        let lines: Vec<_> = lines.into_iter().map(|line| self::line(&line)).collect();
        self.send(&lines.concat());
        self.receive_all(lines.len())
    }
}

/// A command as clients send it.
pub(crate) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A command of words that are separated by spaces.
pub(crate) fn line(line: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    command(&words)
}
