//! Webhooks of the real binary: the commands, and deliveries while the server and the receiver are killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::change_feed::{
    ACKS_MAX, Consumer, KILLS, Round, WRITERS, Writer, check, command, place,
};
use crate::crash::seed;
use crate::support::PATIENCE;
use crate::support::http::number;
use crate::support::process::{Ended, Process, Server, roost, run, serve};

/// Variable of the receiver's process: its file.
const LEDGER: &str = "TEST_LEDGER";

/// A receiver that appends the body of each request to a file, syncs it, and then accepts the request. It answers
/// `/refuse` with 422. Its standard input is the listening socket, so that the port stays taken when it is killed.
#[test]
#[ignore = "runs as the process of a receiver, which other tests kill"]
fn receiver_that_is_killed() {
    let ledger = OpenOptions::new().create(true).append(true).open(std::env::var(LEDGER).unwrap());
    let listener = TcpListener::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    println!("\nreceives on {}", listener.local_addr().unwrap().port());
    let ledger = ledger.unwrap();
    for stream in listener.incoming() {
        let ledger = ledger.try_clone().unwrap();
        std::thread::spawn(move || receive(stream.unwrap(), ledger));
    }
}

fn receive(stream: TcpStream, mut ledger: File) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        if stream.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        loop {
            let mut field = String::new();
            if stream.read_line(&mut field).unwrap_or_default() <= 2 {
                break;
            }
            let (name, value) = field.split_once(':').unwrap();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        let mut status = "200 OK";
        if line.starts_with("POST /refuse") {
            status = "422 No";
        } else {
            // The line before may be incomplete.
            ledger.write_all(&[b"\n", &body[..], b"\n"].concat()).unwrap();
            ledger.sync_data().unwrap();
            println!("received {}", String::from_utf8_lossy(&body));
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if stream.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Starts a receiver on a socket.
fn receiver(ledger: &Path, listener: &TcpListener) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "webhooks::receiver_that_is_killed", "--ignored", "--nocapture"]);
    command.stdin(OwnedFd::from(listener.try_clone().unwrap()));
    let process = Process::start(command.env(LEDGER, ledger));
    process.said("receives on ").unwrap();
    process
}

/// Changes of all complete requests in a file, in the order of arrival.
fn received(ledger: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(ledger).unwrap();
    let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    requests
        .flat_map(|request| request["changes"].as_array().cloned().unwrap_or_default())
        .collect()
}

fn webhook(data: &Path, arguments: &[&str]) -> Ended {
    let mut command = roost(["webhook"]);
    Process::start(command.args(arguments).arg("--data").arg(data)).ended()
}

fn done(data: &Path, arguments: &[&str]) -> String {
    let ended = webhook(data, arguments);
    assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:#?}");
    ended.out
}

fn refused(data: &Path, arguments: &[&str], says: &str) {
    let ended = webhook(data, arguments);
    assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {ended:#?}");
    assert!(ended.err.contains(says), "{arguments:?}: {ended:#?}");
}

#[test]
fn a_receiver_gets_every_acknowledged_change_in_order_although_it_and_the_server_are_killed() {
    let seed = seed();
    println!("to repeat: ROOST_TEST_SEED={seed} cargo test -p roost --test e2e webhooks");
    let mut rng = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let (data, ledger) = (folder.path().join("data"), folder.path().join("ledger"));
    let (listener, url) = listener();
    let mut receiving = receiver(&ledger, &listener);
    let mut writers = Writer::all();
    let mut server = Server::start(&mut command(&data, 0));
    done(&data, &["add", "ledger", &format!("{url}/in"), "--allow-private"]);
    for user in 0..WRITERS {
        server.client().register(&format!("user{user}"));
    }
    for round in 1..=KILLS {
        let at = rng.random_range(1..=ACKS_MAX);
        let at_receiver = rng.random_range(1..=at);
        let load = Round::killing(vec![(at_receiver, receiving.id()), (at, server.process.id())]);
        receiving = std::thread::scope(|scope| {
            for writer in &mut writers {
                let (client, load) = (server.client(), &load);
                scope.spawn(move || writer.work(client, load));
            }
            receiving.ended();
            receiver(&ledger, &listener)
        });
        server.process.ended();
        if rng.random_bool(0.5) {
            // A start is killed too.
            let process = Process::start(&mut command(&data, round));
            if rng.random_bool(0.5) {
                assert!(process.logged("recovered").is_some());
            }
            process.signal(Signal::KILL);
            process.ended();
        }
        server = Server::start(&mut command(&data, round));
    }
    let last = server.client().post("/v1/users/0/posts", &json!({"text": "the last one"}));
    let last = format!("\"post_id\":\"{}\"", number(&last.expect(201).json()["id"]));
    assert!(receiving.said_count(|line| line.contains(&last), 1));
    server.stop();
    receiving.kill();

    // Each change arrived for the first time in the order of the feed.
    let mut consumer = Consumer { after: "0".to_owned(), changes: Vec::new() };
    for change in received(&ledger) {
        let stored = |change: &Value| {
            let one = Consumer { after: String::new(), changes: vec![change.clone()] };
            place(&one.stored()[0])
        };
        if consumer.changes.last().is_none_or(|last| stored(last) < stored(&change)) {
            consumer.changes.push(change);
        }
    }
    let server = Server::start(&mut command(&data, 0));
    let mut feed = Consumer { after: "0".to_owned(), changes: Vec::new() };
    feed.read(server.client(), 0, 100);
    assert_eq!(consumer.stored(), feed.stored(), "nothing is missing");
    // The last post is not a writer's.
    consumer.changes.retain(|change| !change.to_string().contains(&last));
    let own = server.client().send("DELETE", &last_path(&last), &[], b"").unwrap();
    assert!(own.status < 300, "{own:?}");
    check(&server, &writers, &consumer);
    server.stop();
}

fn last_path(last: &str) -> String {
    let id = last.trim_start_matches("\"post_id\":\"").trim_end_matches('"');
    format!("/v1/users/0/posts/{id}")
}

/// Waits until the metrics contain a line.
fn shows(server: &Server, line: &str) {
    let (mut client, start) = (server.client(), Instant::now());
    loop {
        let metrics = client.get("/metrics").text();
        if metrics.lines().any(|shown| shown == line) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{line}? {metrics}");
    }
}

/// Waits until these webhooks have sent everything. Returns the list of all.
fn idle(data: &Path, names: &[&str]) -> String {
    let start = Instant::now();
    loop {
        let list = done(data, &["list"]);
        let is_idle =
            |name: &&str| list.lines().any(|line| line.starts_with(name) && line.contains("idle"));
        if names.iter().all(is_idle) {
            return list;
        }
        assert!(start.elapsed() < PATIENCE, "{list}");
    }
}

#[test]
fn commands_add_test_list_replay_and_remove_webhooks_of_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let (data, ledger) = (folder.path().join("data"), folder.path().join("ledger"));
    let (listener, base) = listener();
    let receiving = receiver(&ledger, &listener);
    let url = format!("{base}/in");

    // Webhooks need the change feed.
    let server = Server::open(&data, &[]);
    refused(
        &data,
        &["add", "early", &url, "--allow-private"],
        "start the server with --changes-max",
    );
    server.stop();
    done(&data, &["remove", "early"]);

    let server = Server::open(&data, &["--changes-max", "8MiB"]);
    done(&data, &["add", "all", &url, "--allow-private"]);
    let kinds = ["--kind", "user_edited,post_published", "--ids-only"];
    done(&data, &[&["add", "some", &url, "--allow-private"][..], &kinds].concat());
    done(&data, &["add", "refused", &format!("{base}/refuse"), "--allow-private"]);
    refused(&data, &["add", "all", &url, "--allow-private"], "already");
    assert!(done(&data, &["test", "all"]).contains("the receiver answered 200"));
    refused(&data, &["test", "refused"], "the receiver answered 422");
    server.client().register("ada");
    server.client().post("/v1/users/0/posts", &json!({"text": "hello"})).expect(201);
    let of = |name: &str, kind: &str| {
        let (name, kind) = (format!("\"webhook\":\"{name}\""), format!("\"kind\":\"{kind}\""));
        move |line: &str| line.contains(&name) && line.contains(&kind)
    };
    for name in ["all", "some"] {
        assert!(receiving.said_count(of(name, "post_published"), 1), "{name}");
    }
    let some = std::fs::read_to_string(&ledger).unwrap();
    let some: Vec<_> =
        some.lines().filter(|line| of("some", "")(line) || line.contains("\"some\"")).collect();
    let some = some.concat();
    assert!(!some.contains("user_registered") && !some.contains("hello"), "{some}");

    // The metrics and the list have the same state.
    shows(&server, "roost_webhook_changes_total{webhook=\"some\"} 1");
    shows(&server, "roost_webhook_changes_total{webhook=\"all\"} 2");
    shows(&server, "roost_webhook_dead_letters{webhook=\"refused\"} 0");
    server.process.logged("a webhook fails").unwrap();
    let list = idle(&data, &["all", "some"]);
    let line = |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("refused").contains("failing") && list.contains("answered 422"), "{list}");
    assert!(line("all").contains(&url), "{list}");

    // Everything is sent again.
    let before = received(&ledger).len();
    done(&data, &["replay", "all", "oldest"]);
    assert!(receiving.said_count(of("all", "user_registered"), 2));
    assert!(received(&ledger).len() > before);
    for (arguments, says) in [
        (["replay", "all", "999999"], "are not kept"),
        (["replay", "all", "no"], "is not a position"),
        (["replay", "none", "oldest"], "there is no such webhook"),
    ] {
        refused(&data, &arguments, says);
    }
    done(&data, &["replay", "refused", "--dead-letters"]);
    done(&data, &["discard", "refused"]);
    done(&data, &["remove", "refused"]);
    assert!(!done(&data, &["list"]).contains("refused"));
    server.stop();
}

#[test]
fn nothing_but_its_file_has_the_secret_of_a_webhook_and_a_wrong_file_ends_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let feed = ["--open", "--changes-max", "8MiB"];
    let server = Server::start(serve(&data, &feed).env("ROOST_LOG", "debug"));
    let url = "http://127.0.0.1:1/hidden";
    let secret = done(&data, &["add", "all", url, "--allow-private"]);
    server.client().register("ada");
    server.process.logged("a webhook fails").unwrap();
    let (address, backup) = (format!("http://{}", server.address), folder.path().join("backup"));
    let ended = run(["backup", "--server", &address, "--out", backup.to_str().unwrap()]);
    assert!(ended.status.success(), "{ended:#?}");
    let ended = server.stop();
    let key = secret.trim().trim_start_matches("whsec_");
    let backup = std::fs::read(backup).unwrap();
    assert!(!backup.windows(key.len()).any(|part| part == key.as_bytes()));
    for output in [&ended.err, &ended.out] {
        assert!(!output.contains(key) && !output.contains("/hidden"), "{output}");
    }
    assert!(std::fs::read_to_string(data.join("webhooks.json")).unwrap().contains(key));
    assert!(done(&data, &["list"]).contains("stopped"));

    // A wrong file is reported, and the server starts.
    let file = data.join("webhooks.json");
    let right = std::fs::read(&file).unwrap();
    std::fs::write(&file, "nonsense").unwrap();
    let server = Server::open(&data, &["--changes-max", "8MiB"]);
    server.process.logged("cannot read the webhooks").unwrap();
    let is_loaded = |is_loaded: bool| {
        shows(&server, &format!("roost_webhooks_failed {}", u8::from(!is_loaded)));
        let list = done(&data, &["list"]);
        assert_eq!(list.contains("cannot read the webhooks"), !is_loaded, "{list}");
        list
    };
    assert!(!is_loaded(false).contains("/hidden"));
    // A wrong file in a running server leaves the webhooks that it has.
    for (text, loads) in [(&right[..], true), (b"nonsense", false), (&right, true)] {
        std::fs::write(&file, text).unwrap();
        server.process.signal(Signal::HUP);
        assert!(is_loaded(loads).contains("/hidden"));
    }
    server.stop();
}

#[test]
fn a_wrong_command_line_of_webhooks_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (&["add", "a", "ftp://a.example"][..], "a URL is https://HOST"),
        (&["add", "a", "https://u:p@a.example"], "a URL is https://HOST"),
        (&["add", "a", "https://a.example", "--kind", "no"], "followed"),
        (&["replay", "a"], "<POSITION>"),
        (&["replay", "a", "1", "--dead-letters"], "cannot be used with"),
    ] {
        let ended = webhook(folder.path(), arguments);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:#?}");
        assert!(ended.err.contains(says), "{arguments:?}: {ended:#?}");
    }
}
