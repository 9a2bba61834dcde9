//! Tests of formats of data: format 1 is read, and newer formats are refused.
//!
//! `tests/fixtures/data-v1` is a data directory after `kill -9`. Some of its changes are in the store, the others only
//! in the log. The only segment of the log is truncated after its contents and some space, which the format allows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::copy;
use crate::support::http::{Answer, Client};
use crate::support::process::{Process, Server, serve};

const KEY: &str = "the-key-of-the-fixture";
/// Size of a sector in the log's format, and offsets of fields in a header, in bytes.
const SECTOR: usize = 512;
const VERSION_AT: usize = 4;
const LENGTH_AT: usize = 16;
const CRC_AT: usize = 24;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/data-v1")
}

/// Segments of the log in a data directory, extended to their full length.
fn segments(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(data.join("log")).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Writes a field in the header of a segment, and updates the checksum.
fn patch(segment: &mut [u8], at: usize, bytes: &[u8]) {
    segment[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c::crc32c(&segment[..CRC_AT]);
    segment[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn a_log_of_a_newer_format_is_refused_and_left_as_it_is() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &[]);
    server.client().register("ada");
    server.kill();
    for (path, mut segment) in segments(data.path()) {
        assert_eq!(segment[VERSION_AT..VERSION_AT + 4], [1, 0, 0, 0]);
        patch(&mut segment, VERSION_AT, &2_u32.to_le_bytes());
        fs::write(path, segment).unwrap();
    }
    let before = segments(data.path());
    let ended = Process::start(&mut serve(data.path(), &[])).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    assert!(ended.err.contains("format 2") && ended.err.contains(".log"), "{ended:#?}");
    assert!(ended.out.is_empty(), "no key for data that cannot be read: {ended:#?}");
    assert!(segments(data.path()) == before, "the log has been touched");

    for (path, mut segment) in before {
        patch(&mut segment, VERSION_AT, &1_u32.to_le_bytes());
        fs::write(path, segment).unwrap();
    }
    Server::open(data.path(), &[]).client().get("/v1/users/@ada").expect(200);
}

#[test]
fn data_of_version_1_are_read() {
    let data = tempfile::tempdir().unwrap();
    copy(&fixture(), data.path());
    let start = || Server::start(serve(data.path(), &[]).env("ROOST_KEY", KEY));
    let server = start();
    let line = server.process.logged("recovered").unwrap();
    assert!(line.contains("\"replayed\":6,"), "the log holds what the store does not: {line}");
    let mut client = Client::new(server.address, Some(KEY.to_owned()));
    check_fixture(&mut client);
    // The server also accepts changes of this data.
    client.register("dan");
    client.publish(3, "hello from a later version");
    server.stop();
    let server = start();
    let mut client = Client::new(server.address, Some(KEY.to_owned()));
    client.get("/v1/users/@dan").expect(200);
    check_fixture(&mut client);
}

/// Checks the data written by [`make_the_fixture`], which every later version must read.
fn check_fixture(client: &mut Client) {
    let texts = |answer: Answer| -> Vec<String> {
        let page = answer.expect(200).json();
        let items = page["items"].as_array().unwrap().iter();
        items.map(|post| post["text"].as_str().unwrap().to_owned()).collect()
    };
    let ada = client.get("/v1/users/@ada").expect(200).json();
    assert_eq!((&ada["id"], &ada["name"]), (&"0".into(), &"Ada".into()));
    assert_eq!(
        [&ada["post_count"], &ada["follower_count"], &ada["following_count"]],
        [2, 1, 0],
        "{ada}"
    );
    assert_eq!(
        texts(client.get("/v1/users/@bob/timeline")),
        ["@bob from the log", "bob's own", "@bob look: \u{1F426}", "from the store"]
    );
    assert_eq!(
        texts(client.get("/v1/users/@bob/mentions")),
        ["@bob from the log", "@bob look: \u{1F426}"]
    );
    assert_eq!(texts(client.get("/v1/users/@eve/timeline")), ["@bob from the log"]);
}

/// Writes the fixture. Run it once for each format, before the release; afterwards, the fixture must not change.
#[test]
#[ignore = "writes the fixture"]
fn make_the_fixture() {
    use serde_json::json;
    let data = tempfile::tempdir().unwrap();
    let start = || {
        let server = Server::start(serve(data.path(), &[]).env("ROOST_KEY", KEY));
        let client = Client::new(server.address, Some(KEY.to_owned()));
        (server, client)
    };
    let (server, mut client) = start();
    client.post("/v1/users", &json!({"handle": "ada", "name": "Ada"})).expect(201);
    client.register("bob");
    client.follow(1, 0);
    client.publish(0, "from the store");
    client.publish(0, "@bob look: \u{1F426}");
    server.stop();

    let (server, mut client) = start();
    client.register("eve");
    client.publish(1, "bob's own");
    let deleted = client.publish(2, "taken back");
    client.send("DELETE", &format!("/v1/users/2/posts/{deleted}"), &[], b"").unwrap().expect(204);
    client.publish(2, "@bob from the log");
    client.follow(1, 2);
    server.kill();

    for (path, mut segment) in segments(data.path()) {
        let used = segment.iter().rposition(|byte| *byte != 0).unwrap() / SECTOR + 1;
        segment.truncate((used + 16) * SECTOR);
        let length = segment.len() as u64;
        patch(&mut segment, LENGTH_AT, &length.to_le_bytes());
        fs::write(path, segment).unwrap();
    }
    // Remove files that mark the directory as in use or contain the time of the last use.
    ["lock", "last-run"].iter().for_each(|name| fs::remove_file(data.path().join(name)).unwrap());
    fs::remove_dir_all(fixture()).ok();
    copy(data.path(), &fixture());
}
