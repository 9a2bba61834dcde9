//! Tests of application keys as operators use them: the first key, further keys, and their scopes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::http::Client;
use crate::support::process::{Ended, Process, Server, roost, serve};

/// Statuses of reads: first without a key, then with each of these keys.
fn statuses(server: &Server, keys: &[&str]) -> Vec<u16> {
    let keys = std::iter::once(None).chain(keys.iter().map(|key| Some((*key).to_owned())));
    let read = |key| Client::new(server.address, key).get("/v1/users").status;
    keys.map(read).collect()
}

/// Waits until the server has read these keys.
fn has_read(server: &Server, names: &str) {
    let read = server.process.logged(&format!("\"names\":\"{names}\""));
    assert!(read.is_some(), "the server reads that there are {names}");
}

fn key(data: &Path, arguments: &[&str]) -> Ended {
    Process::start(roost(["key"]).args(arguments).arg("--data").arg(data)).ended()
}

/// Checks that no file below a directory contains this text, and that the output does not.
fn check_nowhere(directory: &Path, ended: &Ended, text: &str) {
    assert!(!ended.err.contains(text) && !ended.out.contains(text), "{ended:#?}");
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_nowhere(&path, ended, text);
        } else {
            let bytes = fs::read(&path).unwrap();
            let holds = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!holds, "{} holds the key", path.display());
        }
    }
}

#[test]
fn the_first_start_makes_a_key_and_prints_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("not/there/yet");
    let server = Server::start(&mut serve(&data, &[]));
    let file = data.join("first-key");
    let text = fs::read_to_string(&file).unwrap();
    let key = text.trim();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(statuses(&server, &[key, "roost_wrong"]), [401, 200, 401]);
    assert_eq!(Client::new(server.address, None).get("/healthz").status, 200);
    let ended = server.stop();
    assert!(ended.out.contains(file.to_str().unwrap()), "{}", ended.out);
    fs::remove_file(&file).unwrap();
    check_nowhere(&data, &ended, key);

    let server = Server::start(&mut serve(&data, &[]));
    assert_eq!(statuses(&server, &[key]), [401, 200]);
    let ended = server.stop();
    assert!(!ended.out.contains("key") && !file.exists(), "no second one: {}", ended.out);
}

#[test]
fn a_key_of_the_environment_is_accepted_beside_the_stored_one_and_never_stored() {
    let data = tempfile::tempdir().unwrap();
    Server::start(&mut serve(data.path(), &[])).stop();
    let first = fs::read_to_string(data.path().join("first-key")).unwrap();
    let given = "a-key-from-the-environment";
    let server = Server::start(serve(data.path(), &[]).env("ROOST_KEY", given));
    assert_eq!(statuses(&server, &[first.trim(), given]), [401, 200, 200]);
    check_nowhere(data.path(), &server.stop(), given);
    let server = Server::start(&mut serve(data.path(), &[]));
    assert_eq!(statuses(&server, &[first.trim(), given]), [401, 200, 401]);
}

#[test]
fn a_start_that_fails_makes_no_key() {
    let data = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--redis-listen"] {
        let listen = format!("{flag}={taken_address}");
        let mut command = roost(["serve", &listen]);
        if flag == "--redis-listen" {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let ended = Process::start(command.arg("--data").arg(data.path())).ended();
        assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
        assert!(ended.err.contains(flag) && ended.out.is_empty(), "{ended:#?}");
        assert!(fs::read_dir(data.path()).unwrap().next().is_none(), "nothing was made");
    }
    // Make the start fail later, when the node is opened.
    fs::write(data.path().join("log"), "not a directory").unwrap();
    let ended = Process::start(&mut serve(data.path(), &[])).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    assert!(ended.out.is_empty(), "{ended:#?}");
    assert!(!data.path().join("first-key").exists() && !data.path().join("keys.json").exists());
    fs::remove_file(data.path().join("log")).unwrap();
    drop(taken);
    let server = Server::start(&mut serve(data.path(), &[]));
    let first = fs::read_to_string(data.path().join("first-key")).unwrap();
    assert_eq!(statuses(&server, &[first.trim()]), [401, 200]);
}

#[test]
fn keys_are_created_listed_and_revoked_while_a_server_runs() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut serve(data.path(), &[]));
    let first = fs::read_to_string(data.path().join("first-key")).unwrap();
    let made = key(data.path(), &["create", "reader", "--scope", "read"]);
    assert!(made.status.success(), "{made:#?}");
    let reader = made.out.trim().to_owned();
    has_read(&server, "default,reader");
    assert_eq!(statuses(&server, &[first.trim(), &reader]), [401, 200, 200]);
    let mut client = Client::new(server.address, Some(reader.clone()));
    let body = serde_json::json!({"handle": "ada"});
    assert_eq!(client.post("/v1/users", &body).status, 403);
    let listed = key(data.path(), &["list"]).out;
    for part in ["NAME", "default  read,write,admin", "reader   read  "] {
        assert!(listed.contains(part), "{part}? {listed}");
    }
    assert!(!listed.contains(&reader), "{listed}");
    let again = key(data.path(), &["create", "reader"]);
    assert_eq!(again.status.code(), Some(1), "{again:#?}");
    assert!(again.err.contains("already") && again.out.is_empty(), "{again:#?}");
    assert!(key(data.path(), &["revoke", "default"]).status.success());
    has_read(&server, "reader");
    assert_eq!(statuses(&server, &[first.trim(), &reader]), [401, 401, 200]);
    assert_eq!(key(data.path(), &["revoke", "default"]).status.code(), Some(1));
    assert_eq!(key(data.path(), &["create", "x", "--scope", "root"]).status.code(), Some(2));
    assert_eq!(key(&data.path().join("none"), &["list"]).status.code(), Some(1));
    fs::remove_file(data.path().join("first-key")).unwrap();
    check_nowhere(data.path(), &server.stop(), &reader);
}

#[test]
fn a_lost_key_is_replaced_by_another_one() {
    let data = tempfile::tempdir().unwrap();
    Server::start(&mut serve(data.path(), &[])).stop();
    let file = data.path().join("first-key");
    let lost = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let made = key(data.path(), &["create", "new", "--scope", "read,write,admin"]);
    assert!(made.status.success(), "{made:#?}");
    assert!(key(data.path(), &["revoke", "default"]).status.success());
    let server = Server::start(&mut serve(data.path(), &[]));
    assert_eq!(statuses(&server, &[lost.trim(), made.out.trim()]), [401, 401, 200]);
    // After the last key is revoked, a start does not create a first key again.
    assert!(key(data.path(), &["revoke", "new"]).status.success());
    server.stop();
    let server = Server::start(&mut serve(data.path(), &[]));
    assert_eq!(statuses(&server, &[made.out.trim()]), [401, 401]);
    assert!(!server.stop().out.contains("key") && !file.exists());
}
