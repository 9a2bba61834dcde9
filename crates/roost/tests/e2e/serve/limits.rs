//! Tests of limits of the operating system and of memory: errors are clear and occur at the start, not later.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::support::http::Client;
use crate::support::process::{Process, Server, roost, serve};

const KEY: &str = "a-key-for-these-tests";

/// Command of a server that may have this number of open files.
fn limited(data: &Path, files: u32, more: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_roost"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(more);
    command.env("ROOST_KEY", KEY);
    command
}

#[test]
fn idle_connections_beyond_the_limit_of_files_block_no_client_and_the_log_goes_on() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut limited(data.path(), 320, &["--overlay-memory", "16MiB"]));
    let mut client = Client::new(server.address, Some(KEY.into()));
    let ada = client.register("ada");
    let mut idle: Vec<TcpStream> = Vec::new();
    for round in 0..6 {
        // Each round opens more connections than the server may have open.
        idle.extend((0..100).map(|_| TcpStream::connect(server.address).unwrap()));
        // In each round, segments of the log are filled and checkpoints are taken.
        let path = format!("/v1/buckets/0/keys/{round}");
        let put = client.send("PUT", &path, &[], &vec![round; 15 << 20]).unwrap();
        assert_eq!(put.status, 204, "{}", put.text());
        client.publish(ada, "still here");
        Client::new(server.address, Some(KEY.into())).get("/v1/users/0").expect(200);
    }
    drop(idle);
    let first = data.path().join("log/00000000000000000001.log");
    let later = std::fs::read_dir(data.path().join("log")).unwrap();
    assert!(later.map(|entry| entry.unwrap().path()).any(|path| path != first), "no segment ended");
    let ended = server.kill();
    assert!(!ended.err.contains("Too many open files"), "{ended:#?}");
    let server = Server::start(&mut limited(data.path(), 320, &[]));
    let mut client = Client::new(server.address, Some(KEY.into()));
    assert_eq!(client.all("/v1/users/@ada/posts").len(), 6);
}

#[test]
fn limits_that_are_too_low_are_reported_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let check = |command: &mut Command, part: &str| {
        let ended = Process::start(command).ended();
        assert_eq!(ended.status.code(), Some(2), "{ended:#?}");
        assert!(ended.err.contains(part) && ended.out.is_empty(), "{ended:#?}");
        assert!(!data.path().join("log").exists(), "nothing is made by a start that is refused");
    };
    check(&mut limited(data.path(), 64, &[]), "the limit of open files is 64");
    let many = ["--max-connections", "1000"];
    check(&mut limited(data.path(), 1_024, &many), "set at most 768");
    check(&mut serve(data.path(), &["--memory", "100MiB"]), "--memory 100MiB is too little");
}

#[test]
fn a_soft_limit_of_files_is_raised() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 64; exec \"$@\"", "sh"]).arg(roost([""; 0]).get_program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data.path());
    let server = Server::start(command.env("ROOST_KEY", KEY));
    let all: Vec<_> = (0..200).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    Client::new(server.address, Some(KEY.into())).get("/v1/users").expect(200);
    drop(all);
    server.stop();
}

#[test]
fn a_start_is_ended_by_sigterm_at_once() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &[]);
    server.client().register("ada");
    server.kill();
    // Replace the log by a pipe into which nothing is written, so that reading it does not end.
    let log = std::fs::read_dir(data.path().join("log")).unwrap();
    let segment = log
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "log"));
    let segment = segment.unwrap();
    let kept = std::fs::read(&segment).unwrap();
    std::fs::remove_file(&segment).unwrap();
    assert!(Command::new("mkfifo").arg(&segment).status().unwrap().success());
    let process = Process::start(&mut serve(data.path(), &["--open"]));
    process.logged("maximum memory").expect("it says how memory is divided");
    process.signal(Signal::TERM);
    let ended = process.ended();
    assert!(ended.status.code().is_none_or(|code| code == 0), "{ended:#?}");
    assert!(!ended.out.contains("serves"), "{ended:#?}");
    std::fs::remove_file(&segment).unwrap();
    std::fs::write(&segment, kept).unwrap();
    Server::open(data.path(), &[]).client().get("/v1/users/@ada").expect(200);
}
