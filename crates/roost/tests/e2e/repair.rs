//! Tests of damaged directories: the error names the remedy, the repair reports what is lost, and the server starts on
//! the repaired directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::damage::{KEYS, damage, filled, start, value};
use crate::support::files::files;
use crate::support::process::{Process, Server, run, serve};
use crate::support::redis::Reply;

fn path(text: &Path) -> &str {
    text.to_str().unwrap()
}

/// Starts a server, which must fail. Returns its error.
fn not_served(data: &Path) -> String {
    let ended = Process::start(&mut serve(data, &[])).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    ended.err
}

/// Repairs a directory, which must end with this exit code. Returns the output.
fn repair(data: &Path, to: &Path, more: &[&str], code: i32) -> String {
    let ended = run([&["repair", "--data", path(data), "--out", path(to)], more].concat());
    assert_eq!(ended.status.code(), Some(code), "{ended:#?}");
    ended.out + &ended.err
}

/// Values of the keys; `None` for a key that does not exist.
fn keys(data: &Path) -> Vec<Option<Vec<u8>>> {
    let (server, mut redis) = start(data);
    let values = (0..KEYS).map(|number| match redis.run(&[b"GET", &[b'k', number]]) {
        Reply::Bulk(value) => value,
        reply => panic!("{reply:?}"),
    });
    let values = values.collect();
    server.stop();
    values
}

#[test]
fn a_damaged_row_comes_from_the_log_or_is_named_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (data, from_log) = (folder.path().join("data"), folder.path().join("from-log"));
    filled(&data, |_| ());
    let copy = folder.path().join("copy");
    // The server is stopped, so a copy of the directory is consistent.
    let copied = std::process::Command::new("cp").args(["-a", path(&data), path(&copy)]).status();
    assert!(copied.unwrap().success());
    damage(&copy.join("store"));
    let printed = repair(&copy, &from_log, &[], 0);
    assert!(printed.contains("nothing is lost"), "{printed}");
    let all: Vec<_> = (0..KEYS).map(|number| Some(value(number))).collect();
    assert_eq!(keys(&from_log), all);
    // In a restored directory, the log begins only after the rows.
    let (backup, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    let back_up = run(["backup", "--data", path(&data), "--out", path(&backup)]);
    assert_eq!(back_up.status.code(), Some(0), "{back_up:#?}");
    let restore = run(["restore", path(&backup), "--data", path(&restored)]);
    assert_eq!(restore.status.code(), Some(0), "{restore:#?}");
    let data = restored;
    let damaged = damage(&data.join("store"));
    let to = folder.path().join("to");
    let printed = repair(&data, &to, &[], 3);
    let named = "a block does not match its checksum: rows after the key ";
    assert!(printed.contains(named) && printed.contains("are lost"), "{printed}");
    assert!(printed.contains(&format!("bucket 0: 1 of {KEYS} keys")), "{printed}");
    let mut expected = all;
    expected[usize::from(damaged)] = None;
    assert_eq!(keys(&to), expected);
    assert_eq!(run(["verify", "--data", path(&to)]).status.code(), Some(0));
    // The repair did not change the damaged directory.
    assert!(run(["verify", "--data", path(&data)]).status.code() == Some(3));
    let again = repair(&data, &to, &[], 1);
    assert!(again.contains("--out must be a directory that is empty or missing"), "{again}");
}

#[test]
fn a_missing_file_is_refused_with_the_way_out_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let (data, to) = (folder.path().join("data"), folder.path().join("to"));
    let server = Server::open(&data, &[]);
    let user = server.client().register("ann");
    let post = server.client().publish(user, "still here");
    server.stop();
    let is_current = |path: &PathBuf| path.ends_with("1/current");
    let current = files(&data.join("store")).into_iter().find(is_current).unwrap();
    fs::remove_file(&current).unwrap();
    fs::write(data.join("keys.json"), "{").unwrap();
    let error = not_served(&data);
    assert!(error.contains(path(&current)) && error.contains("roost repair"), "{error}");
    // In this case, the application keys are lost.
    let printed = repair(&data, &to, &[], 3);
    assert!(printed.contains(path(&current)) && printed.contains("roost key create"), "{printed}");
    let (lost, keys) =
        (printed.find("lost:").unwrap(), printed.find("the application keys").unwrap());
    assert!(lost < keys, "{printed}");
    let server = Server::open(&to, &[]);
    assert_eq!(
        server.client().get(&format!("/v1/posts/{post}")).expect(200).json()["text"],
        "still here"
    );
    server.stop();
}

#[test]
fn a_damaged_log_ends_before_the_damage_only_if_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (data, to) = (folder.path().join("data"), folder.path().join("to"));
    let server = Server::open(&data, &[]);
    let mut client = server.client();
    let user = client.register("ann");
    let posts: Vec<u64> =
        (0..20).map(|number| client.publish(user, &format!("number {number}"))).collect();
    server.kill();
    let segment = files(&data.join("log"))
        .into_iter()
        .find(|file| file.extension().is_some_and(|e| e == "log"));
    let segment = segment.unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.windows(9).position(|window| window == b"number 15").unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let error = not_served(&data);
    assert!(error.contains(path(&segment)) && error.contains("roost repair"), "{error}");
    let printed = repair(&data, &to, &[], 1);
    let (_, flag) = printed.split_once("--drop-after ").unwrap();
    let group: String = flag.chars().take_while(char::is_ascii_digit).collect();
    assert!(printed.contains("4 whole groups with 4 commands") && !to.exists(), "{printed}");
    let printed = repair(&data, &to, &["--drop-after", &group], 3);
    assert!(printed.contains("4 whole groups with 4 commands"), "{printed}");
    let server = Server::open(&to, &[]);
    let mut client = server.client();
    for (number, post) in posts.iter().enumerate() {
        client.get(&format!("/v1/posts/{post}")).expect(if number < 15 { 200 } else { 404 });
    }
    client.publish(user, "goes on");
    server.stop();
}

#[test]
fn the_scrub_reports_damage_before_anybody_reads_it() {
    let data = tempfile::tempdir().unwrap();
    let (server, mut redis) = start(data.path());
    for number in 0..KEYS {
        assert_eq!(redis.run(&[b"SET", &[b'k', number], &value(number)]), Reply::ok());
    }
    server.stop();
    damage(&data.path().join("store"));
    let server = Server::open(data.path(), &["--scrub-rate", "1GiB"]);
    let line = server.process.logged("damage on the disk").unwrap();
    assert!(line.contains("store/facts") && line.contains("roost verify"), "{line}");
    let metrics = server.client().get("/metrics").expect(200).text();
    assert!(metrics.contains("roost_scrub_damaged_files 1"), "{metrics}");
    server.stop();
}
