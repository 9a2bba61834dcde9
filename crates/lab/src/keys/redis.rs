//! The design `roost-redis`: roost's engine as a server in its own process, with Redis clients.
//!
//! A client has one connection, which has one bucket at a time. A request for another bucket is two commands, which are
//! sent together.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::keys::{Client, Design, Value};
use crate::server::Server;

/// Number of keys per command before the measurement.
const LOADED_AT_ONCE: usize = 100;

/// The server.
pub(super) struct Redis(Server);

impl Design for Redis {
    type Client = RedisClient;

    async fn start(_clients: u32) -> Self {
        Self(Server::start().await)
    }

    fn connect(&self, _client: u32) -> RedisClient {
        let address = self.0.redis();
        RedisClient { address, stream: None, bucket: None, commands: Vec::new(), replies: 0 }
    }
}

/// Client that connects with its first request.
pub(super) struct RedisClient {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
    /// Current bucket of the connection.
    bucket: Option<u32>,
    /// Commands that are not sent yet.
    commands: Vec<u8>,
    /// Number of commands that are not sent yet.
    replies: usize,
}

impl RedisClient {
    fn add(&mut self, words: &[&[u8]]) {
        self.commands.extend(format!("*{}\r\n", words.len()).into_bytes());
        for word in words {
            self.commands.extend(format!("${}\r\n", word.len()).into_bytes());
            self.commands.extend_from_slice(word);
            self.commands.extend_from_slice(b"\r\n");
        }
        self.replies += 1;
    }

    /// Adds a command that selects the bucket, unless it is the current one.
    fn select(&mut self, bucket: u32) {
        if self.bucket != Some(bucket) {
            self.add(&[b"BUCKET", b"USE", name(bucket).as_bytes()]);
            self.bucket = Some(bucket);
        }
    }

    /// Sends all commands, and returns the value in the last reply.
    ///
    /// # Panics
    /// If the server cannot be reached, or refuses a command, which makes the trial impossible.
    async fn send(&mut self) -> Option<Value> {
        match self.try_send().await {
            Ok(value) => value,
            Err(error) => panic!("the server does not answer: {error}"),
        }
    }

    async fn try_send(&mut self) -> std::io::Result<Option<Value>> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        stream.write_all(&self.commands).await?;
        self.commands.clear();
        let mut last = None;
        for _ in 0..std::mem::take(&mut self.replies) {
            last = reply(&mut stream).await?;
        }
        self.stream = Some(stream);
        Ok(last)
    }
}

/// Reads a reply; returns its value, if any.
async fn reply(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Value>> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    match line.trim_end().split_at_checked(1) {
        Some(("$", "-1")) | Some(("+" | ":", _)) => Ok(None),
        Some(("$", _)) => {
            let (mut value, mut end) = (Value::default(), [0; 2]);
            stream.read_exact(&mut value).await?;
            stream.read_exact(&mut end).await?;
            Ok(Some(value))
        }
        _ => Err(std::io::Error::other(line)),
    }
}

impl Client for RedisClient {
    async fn create(&mut self, bucket: u32) {
        self.add(&[b"BUCKET", b"CREATE", name(bucket).as_bytes()]);
        self.send().await;
    }

    async fn read(&mut self, bucket: u32, key: u32) -> Option<Value> {
        self.select(bucket);
        self.add(&[b"GET", &key.to_be_bytes()]);
        self.send().await
    }

    async fn write(&mut self, bucket: u32, key: u32, value: Value) -> bool {
        self.select(bucket);
        self.add(&[b"SET", &key.to_be_bytes(), &value]);
        self.send().await;
        true
    }

    async fn write_all(&mut self, keys: Vec<(u32, u32, Value)>) {
        for of_bucket in keys.chunk_by(|(a, ..), (b, ..)| a == b) {
            let Some((bucket, ..)) = of_bucket.first() else { continue };
            self.select(*bucket);
            for some in of_bucket.chunks(LOADED_AT_ONCE) {
                let names: Vec<_> = some.iter().map(|(_, key, _)| key.to_be_bytes()).collect();
                let pairs = names.iter().zip(some);
                let words = pairs.flat_map(|(name, (.., value))| [&name[..], &value[..]]);
                self.add(&std::iter::once(&b"MSET"[..]).chain(words).collect::<Vec<_>>());
            }
        }
        self.send().await;
    }
}

fn name(bucket: u32) -> String {
    format!("lab-{bucket}")
}
