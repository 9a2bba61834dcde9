//! One request to `/v1/batch`, which sends commands while it receives results.
//!
//! Neither all commands nor all results are in memory. Commands are sent in chunks of about 64 KiB. Each result is
//! checked when its line is complete, and the first failure ends the batch.

use std::time::Duration;

use memchr::memchr;
use serde::Deserialize;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::time::timeout;

use crate::api::LoadError;
use crate::client::{
    BODY_BYTES_MAX, Chunked, ClientError, Dial, Framing, Incoming, Requests, Target, TargetStream,
};

/// Size in bytes from which a chunk is sent.
const CHUNK_BYTES: usize = 64 * 1024;
/// Placeholder for the size of a chunk before its data: eight hexadecimal digits, padded with zeros.
const CHUNK_PREFIX: &[u8] = b"00000000\r\n";
/// The longest result line, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Longest pause of a server in a response.
const STALL: Duration = Duration::from_secs(60);
/// Longest wait for the server's error message after it has stopped reading.
const REASON: Duration = Duration::from_secs(2);

/// Sends the lines that `next` appends to its buffer, one per call, until `next` returns false. Passes the id in each
/// result, if any, and the number of the result (from 0) to `check`. Succeeds when all of `total` commands have
/// succeeded.
pub(crate) async fn batch(
    target: &Target,
    requests: &Requests,
    total: u64,
    next: impl FnMut(&mut Vec<u8>) -> bool,
    check: impl FnMut(u64, Option<u64>) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    let stream = target.dial().await.map_err(ClientError::from)?;
    let (from, to) = split(stream);
    let mut results = Results { from, incoming: Incoming::default(), number: 0, check };
    let reading = results.read(total);
    tokio::pin!(reading);
    // Continue to read when writing fails, because the response contains the server's error message.
    let written = tokio::select! {
        biased;
        outcome = &mut reading => return outcome,
        written = write(to, requests, next) => written,
    };
    match written {
        Ok(_open) => reading.await,
        Err(error) => match timeout(REASON, reading).await {
            Ok(Err(reason)) => Err(reason),
            _ => Err(error),
        },
    }
}

/// Writes the whole request. Returns the write half, because dropping it would close the connection.
async fn write(
    mut to: WriteHalf<TargetStream>,
    requests: &Requests,
    mut next: impl FnMut(&mut Vec<u8>) -> bool,
) -> Result<WriteHalf<TargetStream>, LoadError> {
    let mut head = Vec::new();
    requests.post_stream("/v1/batch", &mut head);
    to.write_all(&head).await.map_err(ClientError::from)?;
    let mut chunk = Vec::with_capacity(CHUNK_BYTES + 1024);
    let mut more = true;
    while more {
        chunk.clear();
        chunk.extend_from_slice(CHUNK_PREFIX);
        while more && chunk.len() < CHUNK_BYTES {
            more = next(&mut chunk);
        }
        let size = chunk.len() - CHUNK_PREFIX.len();
        if size > 0 {
            seal(&mut chunk, size);
            to.write_all(&chunk).await.map_err(ClientError::from)?;
        }
    }
    to.write_all(b"0\r\n\r\n").await.map_err(ClientError::from)?;
    to.flush().await.map_err(ClientError::from)?;
    Ok(to)
}

/// Writes the size of the chunk into the placeholder before it, and the line end after it.
fn seal(chunk: &mut Vec<u8>, size: usize) {
    let digits = format!("{size:08x}");
    for (place, digit) in chunk.iter_mut().zip(digits.bytes()) {
        *place = digit;
    }
    chunk.extend_from_slice(b"\r\n");
}

/// Response while it is being received.
struct Results<C> {
    from: ReadHalf<TargetStream>,
    incoming: Incoming,
    /// Number of results read so far.
    number: u64,
    check: C,
}

impl<C: FnMut(u64, Option<u64>) -> Result<(), LoadError>> Results<C> {
    async fn read(&mut self, total: u64) -> Result<(), LoadError> {
        let head = stalling(self.incoming.head(&mut self.from)).await?;
        match head.framing {
            Framing::Chunked if head.status == 200 => self.read_lines().await?,
            framing => return Err(self.refusal(head.status, framing).await),
        }
        if self.number == total {
            Ok(())
        } else {
            Err(LoadError::Short { done: self.number, total })
        }
    }

    async fn read_lines(&mut self) -> Result<(), LoadError> {
        let mut chunked = Chunked::new();
        let mut begun = Vec::new();
        while !chunked.is_over() {
            let unread = self.incoming.unread();
            if unread.is_empty() {
                stalling(self.incoming.fill(&mut self.from)).await?;
                continue;
            }
            let (taken, data) = chunked.take(unread)?;
            take_lines(data, &mut begun, &mut self.number, &mut self.check)?;
            self.incoming.consume(taken);
        }
        Ok(())
    }

    /// Returns the error for a response without results, with the beginning of its body.
    async fn refusal(&mut self, status: u16, framing: Framing) -> LoadError {
        if let Framing::Length(length) = framing {
            let wanted = length.min(BODY_BYTES_MAX.min(1024)) as usize;
            while self.incoming.unread().len() < wanted {
                if stalling(self.incoming.fill(&mut self.from)).await.is_err() {
                    break;
                }
            }
        }
        let body = String::from_utf8_lossy(self.incoming.unread()).into_owned();
        LoadError::Refused { status, body }
    }
}

/// Checks all lines that `data` completes. `begun` holds the beginning of an incomplete line.
fn take_lines(
    mut data: &[u8],
    begun: &mut Vec<u8>,
    number: &mut u64,
    check: &mut impl FnMut(u64, Option<u64>) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    while let Some(end) = memchr(b'\n', data) {
        let (line, rest) = data.split_at(end);
        data = rest.split_first().map_or(&[], |(_, rest)| rest);
        if begun.is_empty() {
            check(*number, parse_result(line, *number)?)?;
        } else {
            begun.extend_from_slice(line);
            check(*number, parse_result(begun, *number)?)?;
            begun.clear();
        }
        *number += 1;
    }
    begun.extend_from_slice(data);
    if begun.len() > LINE_BYTES_MAX {
        return Err(ClientError::Malformed("a result line that is too long").into());
    }
    Ok(())
}

#[derive(Deserialize)]
struct CommandResult {
    ok: bool,
    id: Option<String>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

/// Returns the id in a successful result, if any. There are millions of results, so the two most frequent forms are
/// compared as bytes; other forms are parsed as JSON.
pub(crate) fn parse_result(line: &[u8], number: u64) -> Result<Option<u64>, LoadError> {
    match line.strip_prefix(br#"{"ok":true"#) {
        Some(b"}") => return Ok(None),
        Some(rest) => {
            let id = rest.strip_prefix(br#","id":""#).and_then(|rest| rest.strip_suffix(br#""}"#));
            if let Some(id) =
                id.and_then(|id| str::from_utf8(id).ok()).and_then(|id| id.parse().ok())
            {
                return Ok(Some(id));
            }
        }
        None => {}
    }
    match serde_json::from_slice::<CommandResult>(line) {
        Ok(CommandResult { ok: true, id, .. }) => match id.map(|id| id.parse()) {
            None => Ok(None),
            Some(Ok(id)) => Ok(Some(id)),
            Some(Err(_)) => Err(ClientError::Malformed("an id that is not a number").into()),
        },
        Ok(CommandResult { error, message, .. }) => {
            Err(LoadError::Command { number, error, message })
        }
        Err(_) => Err(ClientError::Malformed("a malformed result").into()),
    }
}

async fn stalling<T>(step: impl Future<Output = Result<T, ClientError>>) -> Result<T, LoadError> {
    match timeout(STALL, step).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(LoadError::Stalled { seconds: STALL.as_secs() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_reports_success_with_or_without_an_id_or_the_refusal() {
        let check = |line: &str, expect: Result<Option<u64>, &str>| {
            let reported = parse_result(line.as_bytes(), 3).map_err(|error| error.to_string());
            assert_eq!(reported, expect.map_err(str::to_owned), "{line}");
        };
        check(r#"{"ok":true}"#, Ok(None));
        check(r#"{"ok":true,"id":"12"}"#, Ok(Some(12)));
        check(r#"{"id": "12", "ok": true}"#, Ok(Some(12)));
        check(r#"{"ok":true,"id":"x"}"#, Err("malformed response: an id that is not a number"));
        check(r#"{ "ok": true, "new": 1 }"#, Ok(None));
        let refused = "command 3 was refused: self_follow: cannot follow yourself";
        let line = r#"{"ok":false,"error":"self_follow","message":"cannot follow yourself"}"#;
        check(line, Err(refused));
        check("{}", Err("malformed response: a malformed result"));
        check("", Err("malformed response: a malformed result"));
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = "{\"ok\":true,\"id\":\"0\"}\n{\"ok\":true}\n{\"ok\":true,\"id\":\"17\"}\n";
        for size in 1..text.len() {
            let (mut begun, mut number, mut seen) = (Vec::new(), 0, Vec::new());
            for piece in text.as_bytes().chunks(size) {
                let mut check = |at: u64, id: Option<u64>| {
                    seen.push((at, id));
                    Ok(())
                };
                take_lines(piece, &mut begun, &mut number, &mut check).unwrap();
            }
            assert_eq!(seen, [(0, Some(0)), (1, None), (2, Some(17))]);
        }
    }
}
