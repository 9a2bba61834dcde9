//! The client with a server that responds in pieces or chunks, wrongly, or never.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use sim::client::{BODY_BYTES_MAX, Client, Connection, Dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// Connection to a server that responds with these pieces, each sent separately, and then closes the connection.
fn scripted(pieces: Vec<Vec<u8>>) -> DuplexStream {
    let (near, mut far) = duplex(64 * 1024);
    tokio::spawn(async move {
        let mut request = [0; 1024];
        let _ = far.read(&mut request).await;
        for piece in pieces {
            if far.write_all(&piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    near
}

async fn ask(pieces: Vec<Vec<u8>>) -> Result<(u16, String), String> {
    let mut connection = Connection::over(scripted(pieces));
    match connection.send(b"GET / HTTP/1.1\r\n\r\n").await {
        Ok(response) => Ok((response.status, String::from_utf8_lossy(response.body).into_owned())),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn an_answer_is_the_same_however_it_is_cut() {
    let check = async |answer: &str, status: u16, body: &str| {
        for size in 1..=answer.len() {
            let pieces = answer.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(ask(pieces).await, Ok((status, body.to_owned())), "{answer:?} in {size}s");
        }
    };
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello").await;
    check("HTTP/1.1 204 No Content\r\n\r\n", 204, "").await;
    let chunks =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    check(chunks, 200, "hello").await;
}

#[tokio::test]
async fn a_wrong_answer_is_an_error() {
    let check = async |answer: &[u8], expect: &str| {
        let error = ask(vec![answer.to_vec()]).await.expect_err("a wrong answer");
        assert!(error.contains(expect), "{error:?} for {:?}", String::from_utf8_lossy(answer));
    };
    check(b"", "closed the connection").await;
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "closed the connection").await;
    check(b"\x16\x03\x01 not http", "no HTTP/1.1 answer").await;
    check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad chunk").await;
    let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
    check(huge.as_bytes(), "longer than").await;
    let endless = vec![b'a'; 2 * 1024 * 1024];
    let mut pieces = vec![b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()];
    for _ in 0..=BODY_BYTES_MAX as usize / endless.len() {
        pieces.push(format!("{:x}\r\n", endless.len()).into_bytes());
        pieces.push(endless.clone());
        pieces.push(b"\r\n".to_vec());
    }
    assert!(ask(pieces).await.expect_err("too large").contains("longer than"));
}

/// Server that responds once on each connection and then closes it.
struct AnswersOnce {
    answer: &'static str,
    dialled: AtomicUsize,
}

impl Dial for &AnswersOnce {
    type Stream = DuplexStream;

    async fn dial(&self) -> io::Result<DuplexStream> {
        self.dialled.fetch_add(1, Ordering::Relaxed);
        Ok(scripted(vec![self.answer.as_bytes().to_vec()]))
    }
}

#[tokio::test]
async fn a_client_connects_anew_after_a_failure_or_a_close() {
    // Outcomes of three requests, and the number of connections they use.
    let check = async |answer: &'static str, outcomes: [bool; 3], dialled: usize| {
        let server = AnswersOnce { answer, dialled: AtomicUsize::new(0) };
        let mut client = Client::new(&server);
        for expect in outcomes {
            let outcome = client.send(b"GET / HTTP/1.1\r\n\r\n").await;
            assert_eq!(outcome.is_ok(), expect, "{answer:?}: {outcome:?}");
        }
        assert_eq!(server.dialled.load(Ordering::Relaxed), dialled, "{answer:?}");
    };
    // The second request fails, because the server has closed a connection that should stay open. The third request
    // opens another one.
    check("HTTP/1.1 204 No Content\r\n\r\n", [true, false, true], 2).await;
    check("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", [true, true, true], 3).await;
    check("HTTP/1.1 204 No Content\r\n\r\nleft over", [true, false, true], 2).await;
    check("nonsense", [false, false, false], 3).await;
}
