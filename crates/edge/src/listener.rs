//! Listener. If it uses TLS, it returns only connections whose handshake is complete.
//!
//! Handshakes run in tasks, before a connection counts towards the limit of the server. **Invariant:** at most
//! [`HANDSHAKES_MAX`] connections are in a handshake, each for at most [`HANDSHAKE_TIMEOUT`]. Handshakes use at most
//! half of the processors at a time, in order of arrival, so that a flood of handshakes leaves the other half to
//! requests.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::accept::accept;
use crate::handshakes::{HANDSHAKES_MAX, Handshakes};
use crate::stall::StallGuard;
use crate::stream::{Arrivals, Stream, TLS_BYTES, UNSENT_BYTES_MAX};
use crate::tls::Tls;

/// Maximum memory of all handshakes together, in bytes.
pub const HANDSHAKE_MEMORY: usize = HANDSHAKES_MAX * TLS_BYTES;
/// Maximum duration of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time within which a peer must receive 16 KiB, or all pending data if it is less.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// First byte of every TLS connection: the type of a record with a handshake message.
const HANDSHAKE_RECORD: u8 = 22;
const HTTPS_ONLY: &str = r#"{"error":"https_only","message":"this port accepts only HTTPS: begin the URL with https://"}"#;

/// Listener with or without TLS.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
    handshakes: Handshakes<(Stream, SocketAddr)>,
}

impl Listener {
    /// Creates a listener that accepts the connections of `tcp`; with `tls`, it uses TLS.
    #[must_use]
    pub fn new(tcp: TcpListener, tls: Option<Arc<Tls>>) -> Self {
        Self { tcp, tls, handshakes: Handshakes::new() }
    }

    /// Address to which the listener is bound.
    ///
    /// # Errors
    /// If the operating system does not report it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Whether connections use TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Waits for the next connection whose handshake, if any, is complete. Returns the connection and the address of
    /// its peer. Dropping the future loses no connection.
    pub async fn accept(&mut self) -> (Stream, SocketAddr) {
        loop {
            let full_until = self.handshakes.full_until();
            tokio::select! {
                // Return completed handshakes before a new one begins.
                biased;
                Some(ended) = self.handshakes.next() => {
                    if let Ok(Some(connection)) = ended {
                        return connection;
                    }
                }
                () = sleep_until(full_until.unwrap_or_else(Instant::now)), if full_until.is_some() => {}
                (socket, peer) = accept(&self.tcp), if full_until.is_none() => {
                    // Each piece of data is written as a whole, so delaying it has no benefit.
                    if socket.set_nodelay(true).is_err() {
                        continue;
                    }
                    let Some(tls) = self.tls.clone() else {
                        return (Stream::plain(guarded(socket)), peer);
                    };
                    self.handshakes.start(peer.ip(), async move {
                        let shaken = timeout(HANDSHAKE_TIMEOUT, shake_hands(socket, tls)).await;
                        Some((shaken.ok().flatten()?, peer))
                    });
                }
            }
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self::new(tcp, None)
    }
}

fn guarded(socket: TcpStream) -> StallGuard<TcpStream> {
    StallGuard::new(socket, STALL_TIMEOUT)
}

/// Performs a handshake; `None` if it fails.
async fn shake_hands(socket: TcpStream, tls: Arc<Tls>) -> Option<Stream> {
    let mut first = [0];
    if socket.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    if first.iter().all(u8::is_ascii_alphabetic) {
        // Ignore an error: the client did not wait for the reply.
        drop(refuse_plain_http(socket).await);
        return None;
    }
    let [HANDSHAKE_RECORD] = first else { return None };
    let socket = Arrivals::new(guarded(socket));
    let accepting = TlsAcceptor::from(tls.config())
        .accept_with(socket, |session| session.set_buffer_limit(Some(UNSENT_BYTES_MAX)));
    match in_turns(accepting, &tls.turns).await {
        Ok(stream) => Some(Stream::tls(stream)),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

/// Polls a future only while it has a permit. The permit is released while the future waits for its peer.
async fn in_turns<T>(future: impl Future<Output = T>, turns: &Semaphore) -> T {
    let mut future = pin!(future);
    loop {
        let turn = turns.acquire().await;
        let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        drop(turn);
        if let Poll::Ready(done) = polled {
            return done;
        }
        let mut is_woken = false;
        poll_fn(|_| match std::mem::replace(&mut is_woken, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

/// Replies to a client that does not use TLS.
async fn refuse_plain_http(mut socket: TcpStream) -> io::Result<()> {
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n\
         {HTTPS_ONLY}",
        HTTPS_ONLY.len()
    );
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await?;
    // Read the rest: if bytes were unread, the operating system would reset the connection, and the reply could be
    // lost.
    let mut rest = [0; 1 << 10];
    while socket.read(&mut rest).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use jiff::Timestamp;
    use rcgen::{CertificateParams, KeyPair};
    use tokio::net::TcpSocket;
    use tokio::task::JoinSet;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, crypto};

    use super::*;
    use crate::tls::Certificate;

    /// Makes a listener with a new certificate, and the configuration of a client that trusts it.
    async fn listener() -> (Listener, SocketAddr, Arc<ClientConfig>) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let cert = params.self_signed(&key).unwrap();
        let (chain, secret) = (cert.pem(), key.serialize_pem());
        let served =
            Certificate::from_pem(chain.as_bytes(), secret.as_bytes(), Timestamp::now()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::clone(cert.der())).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        (Listener::new(tcp, Some(Tls::new(&served))), address, Arc::new(client))
    }

    /// Accepts connections forever and echoes the data of each.
    async fn echo(mut listener: Listener) {
        loop {
            let (stream, _) = listener.accept().await;
            tokio::spawn(async move {
                let (mut read, mut write) = tokio::io::split(stream);
                drop(tokio::io::copy(&mut read, &mut write).await);
            });
        }
    }

    async fn connect(client: &Arc<ClientConfig>, address: SocketAddr) -> TlsStream<TcpStream> {
        over(client, TcpStream::connect(address).await.unwrap()).await.unwrap()
    }

    async fn over(
        client: &Arc<ClientConfig>,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::clone(client)).connect(name, stream).await
    }

    fn hello(client: &Arc<ClientConfig>) -> Vec<u8> {
        let name = ServerName::try_from("localhost").unwrap();
        let mut bytes = Vec::new();
        let mut session = ClientConnection::new(Arc::clone(client), name).unwrap();
        session.write_tls(&mut bytes).unwrap();
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_ends_after_ten_seconds_however_slowly_its_bytes_arrive() {
        let (listener, address, client) = listener().await;
        tokio::spawn(echo(listener));
        let hello = hello(&client);
        for (bytes, pause) in [
            (&[][..], HANDSHAKE_TIMEOUT),
            (&hello[..20], HANDSHAKE_TIMEOUT),
            (&hello[..], HANDSHAKE_TIMEOUT),
            (&hello[..100], Duration::from_millis(150)),
            (b"GET / HTTP/1.1", Duration::from_secs(3)),
        ] {
            let start = Instant::now();
            let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
            let bytes = bytes.to_vec();
            let sending = tokio::spawn(async move {
                for byte in bytes {
                    if write.write_all(&[byte]).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(pause / 100).await;
                }
                // The sending half stays open.
                std::future::pending::<()>().await;
                drop(write);
            });
            let mut reply = Vec::new();
            // A reset of the connection counts as its end.
            drop(read.read_to_end(&mut reply).await);
            // The paused clock advances from timer to timer.
            assert!(start.elapsed() <= HANDSHAKE_TIMEOUT + Duration::from_secs(1));
            sending.abort();
        }
    }

    #[tokio::test]
    async fn a_flood_of_handshakes_closes_its_own_and_no_other() {
        let (listener, address, client) = listener().await;
        tokio::spawn(echo(listener));
        let mut complete = connect(&client, address).await;
        // This connection is older than the flood, and comes from another address.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let slow = socket.connect(address).await.unwrap();
        let mut oldest = TcpStream::connect(address).await.unwrap();
        oldest.write_all(&[HANDSHAKE_RECORD]).await.unwrap();
        let mut others = Vec::new();
        for _ in 0..HANDSHAKES_MAX {
            others.push(TcpStream::connect(address).await.unwrap());
        }
        // The flood makes the listener close the flood's own oldest connection long before its timeout.
        drop(oldest.read_to_end(&mut Vec::new()).await);
        let mut slow = over(&client, slow).await.unwrap();
        for stream in [&mut complete, &mut slow, &mut connect(&client, address).await] {
            stream.write_all(b"back").await.unwrap();
            let mut back = [0; 4];
            stream.read_exact(&mut back).await.unwrap();
            assert_eq!(&back, b"back");
        }
        drop(others);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_connect_at_once_are_all_served() {
        let (listener, address, client) = listener().await;
        tokio::spawn(echo(listener));
        // The last connections wait in the queue of the operating system.
        let mut streams = Vec::new();
        for _ in 0..HANDSHAKES_MAX + 100 {
            streams.push(TcpStream::connect(address).await.unwrap());
        }
        let mut clients = JoinSet::new();
        for stream in streams {
            let client = Arc::clone(&client);
            clients.spawn(async move { over(&client, stream).await.map(drop) });
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn handshake_messages_without_an_end_are_not_buffered() {
        let (listener, address, client) = listener().await;
        tokio::spawn(echo(listener));
        // This first message announces 60,000 bytes, in records of 1,000 bytes.
        let mut message = [&[1, 0, 0xea, 0x60][..], &[3; 60_000]].concat();
        let mut sent = 0;
        let mut stream = TcpStream::connect(address).await.unwrap();
        for part in message.chunks(1_000) {
            let record = [&[HANDSHAKE_RECORD, 3, 1, 0x03, 0xe8][..], part].concat();
            if part.len() < 1_000 || stream.write_all(&record).await.is_err() {
                break;
            }
            sent += record.len();
        }
        assert!(sent > 20_000, "{sent}");
        drop(stream.read_to_end(&mut message).await);
        // The limit also applies after the handshake: an encrypted record may be long, but must end.
        let mut stream = connect(&client, address).await;
        let (socket, _) = stream.get_mut();
        for _ in 0..20 {
            // The library ignores records of type "change cipher spec", up to a limit.
            drop(socket.write_all(&[20, 3, 3, 0, 1, 1].repeat(1_000)).await);
        }
        drop(socket.read_to_end(&mut message).await);
        let mut stream = connect(&client, address).await;
        let long: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
        let (mut read, mut write) = tokio::io::split(&mut stream);
        let mut back = vec![0; long.len()];
        let (written, read) = tokio::join!(write.write_all(&long), read.read_exact(&mut back));
        written.unwrap();
        read.unwrap();
        assert!(back == long, "data of any length is");
        // The number of records is not limited. These arrive together, and have more bytes than input without data may
        // have.
        let mut records = Vec::new();
        let (socket, session) = stream.get_mut();
        for byte in &long[..2_000] {
            session.writer().write_all(&[*byte]).unwrap();
            session.write_tls(&mut records).unwrap();
        }
        assert!(records.len() > 40_000, "{}", records.len());
        socket.write_all(&records).await.unwrap();
        let mut back = [0; 2_000];
        stream.read_exact(&mut back).await.unwrap();
        assert!(back == long[..2_000]);
    }

    #[tokio::test]
    async fn plain_http_gets_a_reply_and_an_end() {
        let (listener, address, _) = listener().await;
        tokio::spawn(echo(listener));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 400 ") && reply.ends_with(HTTPS_ONLY), "{reply}");
    }
}
