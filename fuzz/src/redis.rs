//! Redis commands, executed: every reply is whole, and none is an internal error.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use edge::Access;
use redis::RedisOptions;
use testkit::{Decoder, ReplyLimits, Value};

use crate::server;

/// Most commands of an input.
const COMMANDS_MAX: usize = 64;
/// No reply takes this long unless something hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// The reply to this shows that all before have been sent.
const MARK: &[u8] = b"that-was-all";

static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| {
    let mut options = RedisOptions::new(Access::Open);
    options.threads = Some(1);
    let listener = server::RUNTIME.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    server::RUNTIME.spawn(async move {
        redis::serve(listener, server::node(), &options, std::future::pending::<()>()).await
    });
    address
});

/// A command on each line, its words between blanks.
pub fn redis(data: &[u8]) {
    let mut bytes = encode(&[b"FLUSHALL"]);
    for line in data.split(|byte| *byte == b'\n').take(COMMANDS_MAX) {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        bytes.extend(encode(&words));
    }
    // So that the last reply is not one of a transaction, or held back.
    for last in [&[b"DISCARD".as_slice()][..], &[b"CLIENT", b"REPLY", b"ON"], &[b"PING", MARK]] {
        bytes.extend(encode(last));
    }
    let mut stream = TcpStream::connect(*ADDRESS).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that has closed the connection reads no more.
    drop(stream.write_all(&bytes));
    let mut decoder = Decoder::new(ReplyLimits::CLIENT);
    let (mut buffer, mut unread) = ([0; 65_536], Vec::new());
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => return,
            // The clock of libFuzzer.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            read => read.unwrap(),
        };
        unread.extend_from_slice(&buffer[..count]);
        let mut rest = unread.as_slice();
        while let Some(reply) = decoder.next(&mut rest).unwrap() {
            let text = format!("{reply:?}");
            assert!(!text.contains("internal error"), "{text}");
            if reply == Value::Bulk(MARK) {
                return;
            }
        }
        unread = rest.to_vec();
    }
}

fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
