//! Tests of https as apps and operators use it: requests, streams, certificates and their renewal, and clients that do
//! not complete the handshake.

mod certificates;
mod handshakes;
mod streams;

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use crate::support::PATIENCE;
use crate::support::http::{Answer, Chunked, read_head, request};
use crate::support::process::{Process, serve};

/// Certificate with its private key, in PEM form.
struct Pair {
    cert: String,
    key: String,
}

impl Pair {
    /// Makes a certificate for `localhost` and 127.0.0.1. It is valid from `from` days to `until` days from now.
    fn new(from: i64, until: i64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let day = |days: i64| {
            let secs = now.checked_add_signed(days * 86_400).unwrap();
            rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(secs)
        };
        let mut params =
            CertificateParams::new(["localhost", "127.0.0.1"].map(str::to_owned)).unwrap();
        (params.not_before, params.not_after) = (day(from), day(until));
        let key = KeyPair::generate().unwrap();
        Self { cert: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }

    fn valid() -> Self {
        Self::new(-1, 90)
    }
}

/// Certificate files next to a data directory.
struct Files {
    directory: TempDir,
    cert: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new(pair: &Pair) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| directory.path().join(name));
        let files = Self { directory, cert, key };
        files.replace(pair);
        files
    }

    /// Replaces both files as certbot does: one after the other, each atomically.
    fn replace(&self, pair: &Pair) {
        for (path, text) in [(&self.cert, &pair.cert), (&self.key, &pair.key)] {
            let new = path.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, path).unwrap();
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Command of `roost serve` with these files.
    fn serve(&self, more: &[&str]) -> Command {
        let mut command = serve(&self.data(), more);
        command.arg("--tls-cert").arg(&self.cert).arg("--tls-key").arg(&self.key);
        command
    }
}

/// Starts a server and waits until it serves https.
fn start(command: &mut Command) -> (Process, SocketAddr) {
    let process = Process::start(command);
    let Some(address) = process.said("roost serves https://") else {
        panic!("the server does not start: {:#?}", process.ended());
    };
    (process, address.parse().unwrap())
}

/// Digest of a certificate in a line of the log.
fn sha256(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap();
    line["sha256"].as_str().unwrap().to_owned()
}

type Connection = BufReader<StreamOwned<ClientConnection, TcpStream>>;

/// Client that trusts the certificates in these files.
fn trusting(files: &[&Path]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for file in files {
        roots.add(CertificateDer::from_pem_file(file).unwrap()).unwrap();
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

fn dial(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Connects to the server with this name, and completes the handshake.
fn connect(
    config: &Arc<ClientConfig>,
    address: SocketAddr,
    name: &str,
) -> std::io::Result<Connection> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut session = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = dial(address);
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
    Ok(BufReader::new(StreamOwned::new(session, stream)))
}

/// Sends a request, and reads the response.
fn ask(
    connection: &mut Connection,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, Vec<u8>) {
    let bytes = request("localhost", method, path, headers, body);
    connection.get_mut().write_all(&bytes).unwrap();
    let (status, head) = read_head(connection).unwrap();
    let header = |name: &str| head.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let mut body = Vec::new();
    match header("content-length") {
        None if status == 204 => {}
        Some(length) => {
            body.resize(length.parse().unwrap(), 0);
            connection.read_exact(&mut body).unwrap();
        }
        None => {
            Chunked::new(connection).read_to_end(&mut body).unwrap();
        }
    }
    (status, body)
}

/// Asserts that the server serves a client that trusts these files.
fn check_serves(address: SocketAddr, files: &[&Path]) {
    let mut connection = connect(&trusting(files), address, "localhost").unwrap();
    assert_eq!(ask(&mut connection, "GET", "/healthz", &[], b"").0, 200);
}

/// The certificate that the server presents.
fn shown(address: SocketAddr, files: &[&Path]) -> CertificateDer<'static> {
    let connection = connect(&trusting(files), address, "localhost").unwrap();
    connection.get_ref().conn.peer_certificates().unwrap()[0].clone()
}

#[test]
fn a_plain_http_request_on_the_port_of_https_gets_400_and_what_to_do() {
    let files = Files::new(&Pair::valid());
    let (server, address) = start(&mut files.serve(&["--open"]));
    let long = format!("POST /v1/users HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    for request in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET", long.as_str()] {
        let answer: Answer = crate::support::http::raw(address, request.as_bytes());
        assert_eq!(answer.status, 400, "{request:.20}");
        assert_eq!(answer.json()["error"], "https_only");
        assert!(answer.text().contains("https://"), "{}", answer.text());
    }
    check_serves(address, &[&files.cert]);
    drop(server);
}
