//! A stream of Server-Sent Events, read as it comes.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use serde_json::Value;

use super::PATIENCE;
use super::http::{Chunked, connect, number, read_head};

/// An event of a user's stream.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// `post` or `mention`.
    pub(crate) kind: String,
    /// Its id, from which a stream can resume.
    pub(crate) id: String,
    /// The post's id.
    pub(crate) post: u64,
    pub(crate) text: String,
}

/// A reader of a user's events.
pub(crate) struct Events {
    lines: BufReader<Chunked<BufReader<TcpStream>>>,
}

impl Events {
    /// Opens the stream; what happens from now on, or after the event `last`, will be on it.
    pub(crate) fn open(address: SocketAddr, user: u32, last: Option<&str>) -> Self {
        let mut connection = connect(address).unwrap();
        let mut request = format!("GET /v1/users/{user}/events HTTP/1.1\r\nHost: {address}\r\n");
        if let Some(last) = last {
            request.push_str(&format!("Last-Event-ID: {last}\r\n"));
        }
        request.push_str("\r\n");
        connection.get_mut().write_all(request.as_bytes()).unwrap();
        let (status, _) = read_head(&mut connection).unwrap();
        assert_eq!(status, 200);
        Self { lines: BufReader::new(Chunked::new(connection)) }
    }

    /// The next event; `None` when the server has ended the stream.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let start = Instant::now();
        let (mut kind, mut id, mut data) = (None, None, None);
        loop {
            let mut line = String::new();
            match self.lines.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    panic!("no event within {PATIENCE:?}")
                }
                Err(_) => return None,
            }
            let line = line.trim_end_matches('\n');
            match line.split_once(": ") {
                Some(("event", value)) => kind = Some(value.to_owned()),
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) => data = serde_json::from_str::<Value>(value).ok(),
                // A keep-alive comment, or how long to wait before reconnecting.
                Some(("" | "retry", _)) => {
                    assert!(start.elapsed() < PATIENCE, "no event within {PATIENCE:?}");
                }
                None if line.is_empty() => {
                    // These lines brought no event.
                    let (Some(kind), Some(id), Some(data)) = (kind.take(), id.take(), data.take())
                    else {
                        continue;
                    };
                    let text = data["text"].as_str().unwrap().to_owned();
                    return Some(Event { kind, id, post: number(&data["id"]), text });
                }
                _ => panic!("no line of an event: {line:?}"),
            }
        }
    }

    /// The next so many, all of which must come.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Event> {
        (0..count).map(|_| self.next().expect("the stream goes on")).collect()
    }

    /// The next ones up to the mention in the post with this text, which must come.
    pub(crate) fn until_mention(&mut self, text: &str) -> Vec<Event> {
        let mut events = self.take(1);
        while !events.last().is_some_and(|event| event.kind == "mention" && event.text == text) {
            events.extend(self.take(1));
        }
        events
    }
}
