//! Receiver on a real socket, whose answers a test chooses.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::PATIENCE;

/// Maximum number of connections that wait for the receiver.
const BACKLOG: u32 = 16;

/// Answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// This text, and the connection stays open.
    Text(String),
    /// This text, and the connection is closed.
    Last(String),
    /// Nothing, and the connection stays open.
    Nothing,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self::Text(format!("HTTP/1.1 {status} x\r\ncontent-length: 2\r\n\r\nok"))
    }
}

/// Request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    head: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.head.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Numbers of the changes.
    pub(crate) fn changes(&self) -> Vec<u64> {
        let body = self.json();
        let changes = body["changes"].as_array().unwrap();
        changes.iter().map(|change| change["n"].as_u64().unwrap()).collect()
    }
}

type Decide = dyn FnMut(&Request) -> Answer + Send;

/// Receiver. It works until the end of the test.
pub(crate) struct Receiver {
    pub(crate) url: String,
    pub(crate) connections: Arc<AtomicUsize>,
    decide: Arc<Mutex<Box<Decide>>>,
    requests: mpsc::UnboundedReceiver<Request>,
}

/// Binds a socket that refuses connections until a receiver listens on it. No other test gets its port.
pub(crate) fn bound() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

impl Receiver {
    /// Starts a receiver that accepts everything.
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        Self::start_on(bound(), tls)
    }

    /// Starts a receiver on a socket from [`bound`].
    pub(crate) fn start_on(socket: TcpSocket, tls: Option<TlsAcceptor>) -> Self {
        let listener = socket.listen(BACKLOG).unwrap();
        let scheme = if tls.is_some() { "https://localhost" } else { "http://127.0.0.1" };
        let url = format!("{scheme}:{}/in?x=1", listener.local_addr().unwrap().port());
        let (sender, requests) = mpsc::unbounded_channel();
        let decide: Arc<Mutex<Box<Decide>>> =
            Arc::new(Mutex::new(Box::new(|_| Answer::status(200))));
        let connections = Arc::new(AtomicUsize::new(0));
        let (decides, counted) = (Arc::clone(&decide), Arc::clone(&connections));
        tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let (decide, sender, tls) = (Arc::clone(&decides), sender.clone(), tls.clone());
                open.spawn(async move {
                    match tls {
                        None => serve(stream, decide, sender).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, decide, sender).await;
                            }
                        }
                    }
                });
            }
        });
        Self { url, connections, decide, requests }
    }

    /// Sets the rule for the following answers.
    pub(crate) fn decide(&self, decide: impl FnMut(&Request) -> Answer + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    /// Gives these answers, and then accepts everything.
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        self.decide(move |_| answers.pop_front().unwrap_or_else(|| Answer::status(200)));
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self) -> Request {
        tokio::time::timeout(PATIENCE, self.requests.recv()).await.unwrap().unwrap()
    }

    /// Waits until this change arrives; returns the changes of all requests until then.
    pub(crate) async fn until(&mut self, last: u64) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        loop {
            let changes = self.next().await.changes();
            all.push(changes);
            if all.last().unwrap().contains(&last) {
                return all;
            }
        }
    }

    /// Number of requests that arrived and were not taken.
    pub(crate) fn waiting(&self) -> usize {
        self.requests.len()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    decide: Arc<Mutex<Box<Decide>>>,
    sender: mpsc::UnboundedSender<Request>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let answer = (decide.lock().unwrap())(&request);
        let _ = sender.send(request);
        match answer {
            Answer::Text(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
                let _ = stream.flush().await;
            }
            Answer::Last(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.shutdown().await;
                return;
            }
            Answer::Nothing => std::future::pending().await,
        }
    }
}

async fn read(stream: &mut BufReader<impl AsyncRead + AsyncWrite + Unpin>) -> Option<Request> {
    let (mut line, mut head) = (String::new(), Vec::new());
    stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    loop {
        let mut field = String::new();
        stream.read_line(&mut field).await.ok().filter(|count| *count > 0)?;
        let Some((name, value)) = field.trim_end().split_once(": ") else { break };
        head.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut request = Request { line: line.trim_end().to_owned(), head, body: Vec::new() };
    let length = request.header("content-length").parse().ok()?;
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).await.ok()?;
    Some(request)
}
