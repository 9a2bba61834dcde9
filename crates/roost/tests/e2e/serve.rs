//! Tests of `roost serve` as operators use it: settings, keys, start, shutdown, and starts that are refused.

mod formats;
mod keys;
mod limits;
mod starting;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::process::{Process, Server, roost, serve};
use crate::support::world::{Post, ids};

#[test]
fn open_mode_binds_to_loopback_only() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = directory.path().join("roost.toml");
    std::fs::write(&file, "open = true\nlisten = \"0.0.0.0:0\"\n").unwrap();
    let check = |command: &mut Command| {
        let ended = Process::start(command).ended();
        assert_eq!(ended.status.code(), Some(2), "{ended:#?}");
        assert!(ended.err.contains("loopback") && ended.out.is_empty(), "{ended:#?}");
        assert!(!data.exists(), "nothing is made by a start that is refused");
    };
    check(&mut listening(&data, "0.0.0.0:0", &["--open"]));
    check(&mut listening(&data, "[::]:0", &["--open"]));
    check(listening(&data, "0.0.0.0:0", &[]).env("ROOST_OPEN", "true"));
    let mut command = roost(["serve", "--data"]);
    check(command.arg(&data).arg("--config").arg(&file));
}

/// Checks that a start is refused with exit code 2 and creates nothing.
fn check_refused(command: &mut Command, data: &Path, says: &str) {
    let ended = Process::start(command).ended();
    assert_eq!(ended.status.code(), Some(2), "{says}: {ended:#?}");
    assert!(ended.err.contains(says) && ended.out.is_empty(), "{says}: {ended:#?}");
    assert!(!data.exists(), "nothing is made by a start that is refused");
}

#[test]
fn a_wrong_variable_is_refused_by_a_start_and_by_check() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let missing = directory.path().join("missing").display().to_string();
    for (variable, value, says) in [
        ("ROOST_MEMORY", "much", "--memory"),
        ("ROOST_LOG", "verbose", "a level looks like debug"),
        ("ROOST_LOG", "info,node=loud", "a level looks like debug"),
        ("ROOST_MAX_LAG", "10", "a time has a unit"),
        ("ROOST_OPEN", "yes", "--open"),
        ("ROOST_TLS_CERT", &missing, "--tls-key"),
        ("ROOST_NATS", "http://localhost:4222", "nats://HOST:4222"),
    ] {
        check_refused(serve(&data, &[]).env(variable, value), &data, says);
        // The option `--check` gives the same result.
        check_refused(serve(&data, &["--check"]).env(variable, value), &data, says);
    }
}

#[test]
fn a_start_with_a_wrong_setting_exits_with_2_so_that_no_supervisor_repeats_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let data = directory.path().join("data");
    let file = |name: &str, text: &str| {
        std::fs::write(path(name), text).unwrap();
        path(name)
    };
    let check = |command: &mut Command, says: &str| check_refused(command, &data, says);
    let about = file("about.toml", "titel = \"Cats\"");
    let unknown = file("unknown.toml", "memroy = \"1GiB\"");
    let value = file("value.toml", "story-life = 60");
    let kind = file("kind.toml", "queue = [1]");
    let syntax = file("syntax.toml", "queue =");
    let missing = path("missing");
    for (flags, says) in [
        (&["--config", &missing][..], "cannot read the configuration file"),
        (&["--config", &unknown], "unknown setting memroy; a similar one is memory"),
        (
            &["--config", &value],
            "value.toml is wrong: invalid value '60' for '--story-life <TIME>'",
        ),
        (&["--config", &kind], "queue must be a text, a number, true or false"),
        (&["--config", &syntax], "syntax.toml is wrong"),
        (&["--about", &missing], "--about"),
        (&["--about", &about], "unknown field"),
        (&["--web-assets", &missing], "is not a directory"),
        (&["--tls-cert", &missing, "--tls-key", &missing], "cannot read the certificate file"),
        (&["--tls-cert", &missing], "--tls-key"),
        (&["--tls-key", &missing], "--tls-cert"),
        (&["--memory", "1MiB"], "too little"),
        (&["--sample-memory", "1MiB"], "at least"),
        (&["--max-connections", "4000000000"], "--max-connections"),
        (&["--nats-creds", &missing], "add --nats"),
        (&["--nats", "http://localhost:4222"], "nats://HOST:4222"),
        (&["--nats", "nats://localhost:4222", "--archive", &missing], "roost backup"),
        (&["--archive", &missing, "--erase-within", "10s"], "--archive-interval"),
        // The parser of the command line finds these errors.
        (&["--erase-within", "0s"], "--erase-within"),
        (&["--listen", "nowhere"], "--listen"),
        (&["--trusted-proxies", "10.0.0.0/99"], "--trusted-proxies"),
        (&["--nats", "nats://user:secret@localhost:4222"], "every user of the machine can read"),
    ] {
        check(&mut serve(&data, flags), says);
    }
    check(serve(&data, &[]).env("ROOST_KEY", "short"), "ROOST_KEY");
    check(serve(&data, &[]).env("ROOST_CONFIG", &missing), "cannot read the configuration file");
    let listen = ["serve", "--listen", "127.0.0.1:0", "--data"];
    let plain = file("plain", "no directory");
    check(roost(listen).arg(&plain), "cannot use");
    // These errors may disappear, so another attempt may succeed.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = Process::start(roost(["serve", "--listen", &address, "--data"]).arg(&data)).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
}

fn listening(data: &Path, address: &str, more: &[&str]) -> Command {
    let mut command = roost(["serve", "--listen", address, "--data"]);
    command.arg(data).args(more);
    command
}

#[test]
fn a_flag_overrides_the_environment_which_overrides_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let file = path("roost.toml");
    let settings = json!({"data": path("by-file"), "listen": "127.0.0.1:0", "open": true});
    let lines =
        settings.as_object().unwrap().iter().map(|(key, value)| format!("{key} = {value}\n"));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let made = |flag: bool, variable: bool| {
        let mut command = roost(["serve"]);
        command.env("ROOST_CONFIG", &file);
        if flag {
            command.arg("--data").arg(path("by-flag"));
        }
        if variable {
            command.env("ROOST_DATA", path("by-variable"));
        }
        let server = Server::start(&mut command);
        server.client().get("/healthz").expect(200);
        server.stop();
        let names = ["by-flag", "by-variable", "by-file"];
        let made: Vec<&str> = names.into_iter().filter(|name| path(name).exists()).collect();
        made.iter().for_each(|name| std::fs::remove_dir_all(path(name)).unwrap());
        made
    };
    assert_eq!(made(true, true), ["by-flag"]);
    assert_eq!(made(true, false), ["by-flag"]);
    assert_eq!(made(false, true), ["by-variable"]);
    assert_eq!(made(false, false), ["by-file"]);
}

#[test]
fn a_second_server_on_the_same_data_refuses_to_start_and_says_why() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &[]);
    let second = Process::start(&mut serve(data.path(), &[])).ended();
    assert_eq!(second.status.code(), Some(1), "{second:#?}");
    assert!(second.err.contains("another process uses"), "{second:#?}");
    assert!(second.err.contains(data.path().to_str().unwrap()), "{second:#?}");
    assert!(second.out.is_empty(), "{second:#?}");
    // The first server still works. Once it has ended, another one can start.
    server.client().register("ada");
    server.kill();
    Server::open(data.path(), &[]).client().get("/v1/users/@ada").expect(200);
}

#[test]
fn sigterm_under_load_loses_nothing_and_the_next_start_has_nothing_to_replay() {
    const AUTHORS: u32 = 4;
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &[]);
    for author in 0..AUTHORS {
        server.client().register(&format!("author{author}"));
    }
    let acks = AtomicU32::new(0);
    let acknowledged: BTreeMap<u32, Vec<u64>> = std::thread::scope(|scope| {
        let (server, acks) = (&server, &acks);
        let post = move |author| {
            let mut client = server.client();
            let path = format!("/v1/users/{author}/posts");
            let mut posts = Vec::new();
            while let Ok(answer) = client.try_post(&path, &[], &json!({"text": "on and on"})) {
                posts.push(Post::read(&answer.expect(201).json()).1.id);
                if acks.fetch_add(1, Ordering::Relaxed) == 200 {
                    server.process.signal(Signal::TERM);
                }
            }
            posts
        };
        let authors: Vec<_> =
            (0..AUTHORS).map(|author| (author, scope.spawn(move || post(author)))).collect();
        authors.into_iter().map(|(author, posts)| (author, posts.join().unwrap())).collect()
    });
    let ended = server.process.ended();
    assert_eq!(ended.status.code(), Some(0), "{ended:#?}");

    let server = Server::open(data.path(), &[]);
    let line = server.process.logged("recovered").expect("a start logs what it recovered");
    let line: Value = serde_json::from_str(&line).expect("a log that is not on a terminal is JSON");
    assert_eq!((&line["replayed"], &line["level"]), (&0.into(), &"INFO".into()), "{line}");
    let mut client = server.client();
    for (author, mut posts) in acknowledged {
        posts.reverse();
        assert_eq!(ids(&mut client, &format!("/v1/users/{author}/posts?limit=100")), posts);
    }
}

#[test]
fn sigterm_right_after_the_start_is_a_clean_shutdown() {
    let data = tempfile::tempdir().unwrap();
    for _ in 0..10 {
        Server::open(data.path(), &[]).stop();
    }
}
