//! Replies to clients while the node opens: the process is alive, and the start has progressed this far.
//!
//! There are no routes and no keys: the reply depends only on the first line of the request. Each connection gets one
//! reply and is closed. **Invariant:** at most [`CONNECTIONS_MAX`] connections (the newest ones) are open, each for at
//! most [`PATIENCE`] and with [`HEAD_BYTES_MAX`] bytes. The start never waits for them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use edge::Listener;
use node::OpenProgress;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::service;

/// Maximum number of connections; a new one replaces the oldest.
const CONNECTIONS_MAX: usize = 64;
/// Longest time of a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest part of a request's head that is read before the reply, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Interval between log lines about the progress.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Protocol of a connection.
#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Http,
    Redis,
}

/// Replies to the clients of both listeners, and logs the progress, until the future is dropped.
pub(crate) async fn answer(
    http: &mut Listener,
    redis: Option<&TcpListener>,
    progress: &OpenProgress,
) -> Infallible {
    let mut replies: VecDeque<AbortHandle> = VecDeque::new();
    let mut lines = tokio::time::interval(LOG_EVERY);
    lines.tick().await;
    loop {
        let reply = tokio::select! {
            (stream, _) = http.accept() => {
                tokio::spawn(reply_in_time(stream, Protocol::Http, progress.clone()))
            }
            stream = accept_redis(redis) => {
                tokio::spawn(reply_in_time(stream, Protocol::Redis, progress.clone()))
            }
            _ = lines.tick() => {
                tracing::info!("starting: {progress}");
                service::status(&format!("starting: {progress}"));
                continue;
            }
        };
        replies.push_back(reply.abort_handle());
        if replies.len() > CONNECTIONS_MAX
            && let Some(oldest) = replies.pop_front()
        {
            oldest.abort();
        }
    }
}

async fn accept_redis(redis: Option<&TcpListener>) -> TcpStream {
    match redis {
        Some(redis) => edge::accept(redis).await.0,
        None => std::future::pending().await,
    }
}

/// Replies within [`PATIENCE`], or not at all if the client is too slow.
async fn reply_in_time<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    protocol: Protocol,
    progress: OpenProgress,
) {
    drop(timeout(PATIENCE, reply(stream, protocol, &progress)).await);
}

async fn reply<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: S,
    protocol: Protocol,
    progress: &OpenProgress,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    let is_complete = |head: &[u8]| match protocol {
        Protocol::Http => head.windows(4).any(|end| end == b"\r\n\r\n"),
        Protocol::Redis => !head.is_empty(),
    };
    while !is_complete(&head) && head.len() < HEAD_BYTES_MAX {
        if (&mut socket).take(1 << 10).read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let response = match protocol {
        Protocol::Http => http_response(&head, progress),
        Protocol::Redis => format!("-LOADING the server is starting: {progress}\r\n"),
    };
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await?;
    // Read the rest of the request: with unread bytes, the operating system would reset the connection, and the reply
    // could be lost.
    let mut rest = [0; 1 << 10];
    while socket.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Response to a request with this head: only `/healthz` succeeds.
fn http_response(head: &[u8], progress: &OpenProgress) -> String {
    let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let (status, more, body) = if path == b"/healthz" {
        ("200 OK", "", r#"{"ok":true}"#.to_owned())
    } else {
        let body = serde_json::json!({
            "error": "starting",
            "message": format!("the server is starting: {progress}"),
        });
        ("503 Service Unavailable", "retry-after: 1\r\n", body.to_string())
    };
    let body_sent = if head.starts_with(b"HEAD ") { "" } else { body.as_str() };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n{more}\
         content-length: {}\r\nconnection: close\r\n\r\n{body_sent}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_health_check_succeeds_while_the_server_starts() {
        let check = |head: &str, status: &str, end: &str| {
            let response = http_response(head.as_bytes(), &OpenProgress::default());
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?}: {response}");
            assert!(response.ends_with(end), "{head:?}: {response}");
        };
        check("GET /healthz HTTP/1.1\r\n\r\n", "200", "{\"ok\":true}");
        check("HEAD /healthz HTTP/1.1\r\n\r\n", "200", "\r\n\r\n");
        check("GET /readyz HTTP/1.1\r\n\r\n", "503", "opening the store and the log\"}");
        for head in ["GET /healthz/../v1 HTTP/1.1\r\n\r\n", "GET  /healthz", "\r\n\r\n", ""] {
            check(head, "503", "}");
        }
    }
}
