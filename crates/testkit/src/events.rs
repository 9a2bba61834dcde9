//! Reader of a stream of Server-Sent Events, as they arrive.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use serde_json::Value;

use crate::PATIENCE;
use crate::http::{Chunked, connect, number, read_head};

/// Event of a user's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of the event: `post`, `mention`, `resync` and so on.
    pub kind: String,
    /// Id of the event, after which a stream can resume; empty if the event has none.
    pub id: String,
    /// Id of the post, story or user; 0 if the event has none.
    pub post: u64,
    /// Text of the post or story, if any.
    pub text: Option<String>,
}

/// Reader of a user's events.
#[derive(Debug)]
pub struct Events {
    lines: BufReader<Chunked<BufReader<TcpStream>>>,
    /// Id of the last read event that has one.
    pub last_id: String,
}

impl Event {
    /// Kind of the event, and its text. Without a text, the id takes its place, if there is one.
    #[must_use]
    pub fn shown(self) -> (String, String) {
        let id = Some(self.post).filter(|_| self.kind != "resync").map(|id| id.to_string());
        (self.kind, self.text.or(id).unwrap_or_default())
    }
}

impl Events {
    /// Opens the stream at `path`. It begins after the event `last`, or with new events if `last` is `None`.
    #[must_use]
    pub fn open(address: SocketAddr, path: &str, last: Option<&str>) -> Self {
        let mut connection = connect(address).unwrap();
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n");
        if let Some(last) = last {
            request.push_str(&format!("Last-Event-ID: {last}\r\n"));
        }
        request.push_str("\r\n");
        connection.get_mut().write_all(request.as_bytes()).unwrap();
        let (status, _) = read_head(&mut connection).unwrap();
        assert_eq!(status, 200);
        let lines = BufReader::new(Chunked::new(connection));
        let mut events = Self { lines, last_id: String::new() };
        assert_eq!(
            events.block().as_deref(),
            Some(&["retry: 2000", ": connected"].map(String::from)[..])
        );
        events
    }

    /// Waits for the next event; `None` once the server has ended the stream.
    pub fn next_event(&mut self) -> Option<Event> {
        let start = Instant::now();
        loop {
            let before = std::mem::take(&mut self.last_id);
            let block = self.block()?;
            let id = self.last_id.clone();
            if id.is_empty() {
                self.last_id = before;
            }
            match block.as_slice() {
                [kind, data] => {
                    let kind = kind.strip_prefix("event: ").expect("the kind").to_owned();
                    let data = data.strip_prefix("data: ").expect("its data");
                    let data: Value = serde_json::from_str(data).unwrap();
                    let post = data.get("id").map_or(0, number);
                    let text = data.get("text").map(|text| text.as_str().unwrap().to_owned());
                    return Some(Event { kind, id, post, text });
                }
                // A block without an event contains only comments, which keep the connection alive.
                block => assert!(block.iter().all(|line| line.starts_with(": ")), "{block:?}"),
            }
            assert!(start.elapsed() < PATIENCE, "no event within {PATIENCE:?}");
        }
    }

    /// Waits for the next event, and returns it as [`Event::shown`] does.
    pub fn next_shown(&mut self) -> Option<(String, String)> {
        self.next_event().map(Event::shown)
    }

    /// Waits for the next event after which a stream can resume: a post, a mention or a story.
    pub fn next_stored(&mut self) -> Option<Event> {
        std::iter::from_fn(|| self.next_event()).find(|event| !event.id.is_empty())
    }

    /// Waits for the next `count` stored events.
    pub fn take(&mut self, count: usize) -> Vec<Event> {
        (0..count).map(|_| self.next_stored().expect("the stream continues")).collect()
    }

    /// Waits for stored events, until one is the mention in the post with this text.
    pub fn until_mention(&mut self, text: &str) -> Vec<Event> {
        let is_it = |event: &Event| event.kind == "mention" && event.text.as_deref() == Some(text);
        let mut events = self.take(1);
        while !events.last().is_some_and(is_it) {
            events.extend(self.take(1));
        }
        events
    }

    /// Reads lines up to the next empty line; `None` at the end. A line with an id is not returned but sets `last_id`.
    fn block(&mut self) -> Option<Vec<String>> {
        let mut block = Vec::new();
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
            match line.trim_end_matches('\n') {
                "" => return Some(block),
                line => match line.strip_prefix("id: ") {
                    Some(id) => self.last_id = id.to_owned(),
                    None => block.push(line.to_owned()),
                },
            }
        }
    }
}
