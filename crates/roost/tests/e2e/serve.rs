//! `roost serve` as operators use it: settings, keys, start, shutdown, refused starts.

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

use crate::support::process::{Process, Server, roost, run, serve};
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

#[test]
fn a_start_with_a_wrong_setting_exits_with_2_so_that_no_supervisor_repeats_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let data = directory.path().join("data");
    let file = |name: &str, text: &str| {
        std::fs::write(path(name), text).unwrap();
        path(name)
    };
    let check = |command: &mut Command, says: &str| {
        let ended = Process::start(command).ended();
        assert_eq!(ended.status.code(), Some(2), "{says}: {ended:#?}");
        assert!(ended.err.contains(says) && ended.out.is_empty(), "{says}: {ended:#?}");
        assert!(!data.exists(), "nothing is made by a start that is refused");
    };
    let about = file("about.toml", "titel = \"Cats\"");
    let unknown = file("unknown.toml", "memroy = \"1GiB\"");
    let value = file("value.toml", "story-life = 0");
    let missing = path("missing");
    for (flags, says) in [
        (&["--config", &missing][..], "cannot read the configuration file"),
        (&["--config", &unknown], "unknown field"),
        (&["--config", &value], "is wrong"),
        (&["--about", &missing], "--about"),
        (&["--about", &about], "unknown field"),
        (&["--web-assets", &missing], "is no directory"),
        (&["--tls-cert", &missing, "--tls-key", &missing], "cannot read the certificate file"),
        (&["--memory", "1MiB"], "too little"),
        (&["--sample-memory", "1MiB"], "at least"),
        (&["--max-connections", "4000000000"], "--max-connections"),
        (&["--nats-creds", &missing], "add --log"),
        (&["--log", "http://localhost:4222"], "nats://HOST:4222"),
        (&["--log", "nats://localhost:4222", "--archive", &missing], "roost backup"),
        (&["--archive", &missing, "--erase-within", "10s"], "--archive-interval"),
        // Those that the command line's parser finds.
        (&["--erase-within", "0s"], "--erase-within"),
        (&["--listen", "nowhere"], "--listen"),
        (&["--trusted-proxies", "10.0.0.0/99"], "--trusted-proxies"),
    ] {
        check(&mut serve(&data, flags), says);
    }
    check(serve(&data, &[]).env("ROOST_KEY", "short"), "ROOST_KEY");
    check(serve(&data, &[]).env("ROOST_MEMORY", "much"), "--memory");
    check(serve(&data, &[]).env("ROOST_CONFIG", &missing), "cannot read the configuration file");
    let listen = ["serve", "--listen", "127.0.0.1:0", "--data"];
    let plain = file("plain", "no directory");
    check(roost(listen).arg(&plain), "cannot use");
    // What may be right at another time is repeated.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = Process::start(roost(["serve", "--listen", &address, "--data"]).arg(&data)).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
}

#[test]
fn commands_exit_with_2_if_a_value_of_theirs_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("to").display().to_string();
    let config = directory.path().join("roost.toml").display().to_string();
    std::fs::write(&config, "memroy = 1").unwrap();
    for arguments in [
        &["backup", "--server", "ftp://localhost:1", "--to", &to][..],
        &["export", "--server", "localhost", "--to", &to],
        &["simulate", "--target", "localhost"],
        &["simulate", "--clustering", "7"],
        &["population", "--reciprocity", "7"],
        &["lab", "run", "none-of-these"],
        &["lab", "run", "keys", "--set", "nothing=1"],
        &["key", "list", "--config", &config],
        &["cluster", "join", "--from", "localhost", "--data", &to, "--log", "http://a:1"],
    ] {
        let ended = run(arguments.iter().copied());
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:#?}");
        assert!(ended.err.contains("error: ") && ended.out.is_empty(), "{ended:#?}");
        assert!(!Path::new(&to).exists(), "{arguments:?}");
    }
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
    // The first server is unaffected, and once it has ended another one can start.
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

/// The help of a command, which must have these flags in this order.
fn help_with(command: &str, flags: &[&str]) -> String {
    let ended = run(command.split(' ').chain(["--help"]));
    assert!(ended.status.success(), "{ended:#?}");
    let mut found: Vec<&str> = ended
        .out
        .lines()
        // The description of a setting is indented further, and may begin with another's name.
        .filter(|line| line.trim_start().starts_with('-') && !line.starts_with("        "))
        .map(str::trim_start)
        .filter_map(|line| line.split(['[', ' ']).find_map(|word| word.strip_prefix("--")))
        .collect();
    found.retain(|flag| *flag != "help");
    assert_eq!(found, flags, "{}", ended.out);
    ended.out
}

#[test]
fn help_names_every_setting_of_the_server() {
    let settings = [
        "config",
        "data",
        "listen",
        "redis-listen",
        "tls-cert",
        "tls-key",
        "tls-self-signed",
        "redis-threads",
        "open",
        "log",
        "nats-creds",
        "nats-tls-ca",
        "max-lag",
        "durability",
        "fsync-interval",
        "memory",
        "timeline-memory",
        "post-memory",
        "entity-memory",
        "bucket-memory",
        "sample-memory",
        "store-cache",
        "overlay-memory",
        "request-memory",
        "redis-memory",
        "queue",
        "max-connections",
        "story-life",
        "erase-within",
        "disk-reserve",
        "media-max",
        "archive",
        "archive-interval",
        "archive-backlog",
        "scrub-rate",
        "clock-jump",
        "web",
        "web-assets",
        "public-url",
        "trusted-proxies",
        "registrations",
        "about",
        "password-grant",
        "anonymous-reads",
        "log-format",
        "log-level",
    ];
    // One that is no setting: it is for a single start.
    let flags = [&settings[..1], &["accept-clock"], &settings[1..]].concat();
    let help = help_with("serve", &flags);
    for setting in settings {
        let name = match setting {
            "log" => "log-servers",
            "log-level" => "log",
            setting => setting,
        };
        let variable = format!("[env: ROOST_{}=]", name.replace('-', "_").to_uppercase());
        assert!(help.contains(&variable), "{variable}? {help}");
    }
    for word in ["ROOST_KEY", "ROOST_LOG", "127.0.0.1:8998", "./roost-data", "always", "never"] {
        assert!(help.contains(word), "{word}? {help}");
    }
}

#[test]
fn help_names_every_command_and_its_options() {
    let users = ["users", "seed", "reciprocity", "clustering", "graph"];
    let of_profiles = [
        "load",
        "flash",
        "friends",
        "stories",
        "life",
        "home-reads",
        "ycsb",
        "records",
        "value-bytes",
    ];
    let run_options = ["duration", "rate", "loop", "day", "connections", "threads"];
    let results = ["find-capacity", "slo", "repeats", "plain", "html", "json"];
    let target = ["target", "ca", "api", "tokens", "loaded", "profile"];
    let simulate = [&target[..], &users, &of_profiles, &run_options, &results].concat();
    let help = help_with("simulate", &simulate);
    for part in ["Exit codes:", "Options of --profile stories:", "ROOST_TARGET_KEY"] {
        assert!(help.contains(part), "{part}? {help}");
    }
    help_with("population", &[&users[..], &["out", "import"]].concat());
    help_with("repair", &["to", "drop-after"]);
    let demo = ["listen", "redis-listen", "users", "duration", "cluster", "nats-server"];
    help_with("demo", &demo);
    help_with("recognise", &["k"]);
    help_with("key create", &["scope", "data", "config"]);
    help_with("key list", &["data", "config"]);
    help_with("key revoke", &["data", "config"]);
    let help = run(["--help"]).out;
    for command in ["serve", "key", "demo", "simulate", "population", "recognise"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}? {help}");
    }
    let version = run(["--version"]).out;
    let parts = [env!("CARGO_PKG_VERSION"), "(commit "];
    assert!(parts.iter().all(|part| version.contains(part)), "{version}");
}
