//! Tests of a damaged row: the server runs, and refuses only requests that need the row.

use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::files::files;
use crate::support::process::Server;
use crate::support::redis::{Redis, Reply};

pub(crate) const KEYS: u8 = 40;
/// Length of a value, in bytes. Only one such value fits into a block of the store.
const VALUE: usize = 100_000;
/// Bytes in the middle of each value, before the number of its key.
const MARK: &[u8] = b"middle of the value of the key ";

/// Value that cannot be compressed, so its bytes are in a file as they are.
pub(crate) fn value(number: u8) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(number.into());
    let mut value: Vec<u8> = (0..VALUE).map(|_| random.random()).collect();
    let mark = [MARK, &[number]].concat();
    value[VALUE / 2..][..mark.len()].copy_from_slice(&mark);
    value
}

/// Flips one bit in a value of the store, and returns the number of its key.
///
/// Keys are stored in the order of their hashes, which are different in each store. The first value of a file shares
/// its block with rows that the server needs to start, so a value in the middle of a file is damaged.
pub(crate) fn damage(store: &Path) -> u8 {
    let marks = |bytes: &[u8]| -> Vec<usize> {
        let marks = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
        marks.map(|(at, _)| at).collect()
    };
    let found = files(store).into_iter().map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        (marks(&bytes), bytes, path)
    });
    let (marks, mut bytes, path) = found.max_by_key(|(marks, ..)| marks.len()).unwrap();
    assert!(marks.len() >= 3, "no file of the store has enough values: {marks:?}");
    let at = marks[marks.len() / 2];
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    bytes[at + MARK.len()]
}

pub(crate) fn start(data: &Path) -> (Server, Redis) {
    let server = Server::open(data, &["--redis-listen", "127.0.0.1:0"]);
    let address = server.process.said("roost serves redis://").unwrap();
    (server, Redis::new(address.parse().unwrap()))
}

/// Creates a data directory with the keys. Each value except the first has a block of the store for itself.
pub(crate) fn filled<T>(data: &Path, prepare: impl Fn(&Server) -> T) -> T {
    let (server, mut redis) = start(data);
    let prepared = prepare(&server);
    for number in 0..KEYS {
        assert_eq!(redis.run(&[b"SET", &[b'k', number], &value(number)]), Reply::ok());
    }
    server.stop();
    prepared
}

#[test]
fn a_damaged_row_refuses_what_needs_it_and_nothing_else() {
    let data = tempfile::tempdir().unwrap();
    let ann = filled(data.path(), |server| server.client().register("ann"));
    let damaged = damage(&data.path().join("store"));
    let (server, mut redis) = start(data.path());
    assert!(server.process.logged("the disk is damaged").is_some());
    let mut refused = 0;
    for number in 0..KEYS {
        match redis.run(&[b"GET", &[b'k', number]]) {
            Reply::Error(error) => {
                assert!(error.contains("its disk is damaged"), "{error}");
                refused += 1;
            }
            reply => assert_eq!(reply, Reply::Bulk(Some(value(number)))),
        }
    }
    assert_eq!(refused, 1);
    // The log has the number of the connection, as CLIENT ID returns it, on which the damage was found.
    let Reply::Integer(id) = redis.run(&[b"CLIENT", b"ID"]) else { panic!("no number") };
    let id = format!("\"connection_id\":{id}");
    for message in ["commands failed because of the server", "the disk is damaged"] {
        let line = |line: &String| line.contains(&id) && line.contains(message);
        assert!(server.process.logged_line(line).is_some(), "{message}");
    }
    let mut client = server.client();
    let answer = client.get(&format!("/v1/buckets/0/keys/k%{damaged:02x}")).expect(500);
    assert_eq!(answer.json()["error"], "damaged");
    // The log has the id of the request in which the damage was found.
    let id = answer.json()["request_id"].as_str().unwrap().to_owned();
    assert_eq!(answer.header("x-request-id"), Some(id.as_str()));
    let cause = |line: &String| line.contains(&id) && line.contains("the disk is damaged");
    let line = server.process.logged_line(cause).unwrap();
    assert!(line.contains("checksum") || line.contains("read"), "{line}");
    let error = redis.run(&[b"APPEND", &[b'k', damaged], b"more"]);
    assert!(error.error().contains("its disk is damaged"), "{error:?}");
    // All other data can be used.
    assert_eq!(redis.line("SET other 1"), Reply::ok());
    client.publish(ann, "still here");
    client.get(&format!("/v1/users/{ann}/timeline")).expect(200);
    let metrics = client.get("/metrics").expect(200).text();
    assert!(!metrics.contains("roost_unreadable_reads_total 0"), "{metrics}");
    server.stop();
}
