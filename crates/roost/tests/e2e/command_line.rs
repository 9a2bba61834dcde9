//! Tests of the command line as users type it: help pages, exit codes, sources of settings, and data that must not be
//! sent or shown. The declarations of options are tested next to them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use crate::support::http::Client;
use crate::support::process::{Ended, Process, Server, roost, run, serve};

/// Names of the commands in a help page.
fn commands(help: &str) -> Vec<String> {
    let line = |line: &str| {
        let rest = line.strip_prefix("  ")?;
        let name = rest.split(' ').next()?;
        (name.starts_with(char::is_alphabetic) && name != "help").then(|| name.to_owned())
    };
    help.lines().filter_map(line).collect()
}

#[test]
fn every_command_has_a_short_and_a_long_help_page() {
    let mut open = vec![Vec::<String>::new()];
    let mut pages = 0;
    while let Some(words) = open.pop() {
        let page = |option: &str| {
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            words.push(option);
            let ended = run(words);
            assert!(ended.status.success() && ended.err.is_empty(), "{ended:#?}");
            assert!(ended.out.contains("Usage: roost"), "{ended:#?}");
            ended.out
        };
        let (short, long) = (page("-h"), page("--help"));
        assert!(short.lines().count() <= long.lines().count(), "{words:?}: {short}");
        pages += 1;
        if short.contains("<COMMAND>") {
            for name in commands(&short) {
                open.push([words.clone(), vec![name]].concat());
            }
        }
    }
    // The pages are that of the program, those of 15 commands, and those of the subcommands of key, account, cluster
    // and lab.
    assert!(pages >= 16 + 3 + 9 + 3 + 4, "{pages} pages");
    let help = run(["serve", "--help"]).out;
    for word in ["ROOST_KEY", "[env: ROOST_LOG=]", "127.0.0.1:8998", "./roost-data", "--check"] {
        assert!(help.contains(word), "{word}? {help}");
    }
    let help = run(["simulate", "--help"]).out;
    for part in ["Exit codes:", "Options of --profile stories:", "ROOST_SERVER_KEY"] {
        assert!(help.contains(part), "{part}? {help}");
    }
    let version = run(["--version"]).out;
    let parts = [env!("CARGO_PKG_VERSION"), "(commit "];
    assert!(parts.iter().all(|part| version.contains(part)), "{version}");
}

#[test]
fn a_wrong_command_line_exits_with_2_and_says_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (to, data) = (path("to"), path("data"));
    let config = path("roost.toml");
    fs::write(&config, "memroy = 1").unwrap();
    fs::create_dir(directory.path().join("folder")).unwrap();
    let folder = path("folder");
    let secret = "nats://user:secret@127.0.0.1:1";
    for (arguments, says) in [
        (&["no-such-command"][..], "unrecognized subcommand"),
        (
            &["backup", "--server", "ftp://localhost:1", "--out", &to],
            "looks like http://127.0.0.1:8998",
        ),
        (&["backup", "--server", "http://localhost:1"], "--out"),
        (
            &["backup", "--server", "http://localhost:1", "--data", &data, "--out", &to],
            "--data cannot be used with --server",
        ),
        (&["backup", "--data", &data, "--ca", &to, "--out", &to], "--server"),
        (&["backup", "--archive", &to], "--data"),
        (
            &["backup", "--archive", &to, "--data", &data, "--rate", "1MiB"],
            "'--archive <DIR>' cannot be used with '--rate <SIZE>'",
        ),
        (
            &["backup", "--data", &data, "--rate", "1MiB", "--out", &to],
            "--data cannot be used with --rate",
        ),
        (&["export", "--server", "localhost", "--out", &to], "looks like http://127.0.0.1:8998"),
        (&["export", "--backup", &to, "--data", &data], "--data cannot be used with --backup"),
        (&["export", "--backup", &to, "--server", "http://localhost:1"], "--backup"),
        (&["restore"], "<BACKUP>"),
        (&["import"], "<FILE>"),
        (&["verify", &folder], "--data"),
        (&["verify", &to, "--data", &data], "--data cannot be used with PATH"),
        (&["repair"], "--out"),
        (&["simulate", "--server", "localhost"], "looks like http://127.0.0.1:8998"),
        (&["simulate", "--clustering", "7"], "clustering"),
        (&["population", "--reciprocity", "7"], "reciprocity"),
        (&["lab", "run", "none-of-these"], "none-of-these"),
        (&["lab", "run", "keys", "--set", "nothing=1"], "nothing"),
        (&["key", "list", "--config", &config], "unknown setting memroy"),
        (&["account", "list", "--config", &config], "unknown setting memroy"),
        (&["account", "invite", "--life", "366d"], "365d"),
        (
            &["cluster", "join", "--server", "localhost", "--data", &to, "--nats", "http://a:1"],
            "nats://HOST:4222",
        ),
        (&["cluster", "join", "--server", "localhost", "--data", &to], "--nats"),
        (
            &["cluster", "join", "--server", "localhost", "--data", &to, "--nats", secret],
            "can read on a command line",
        ),
        (
            &["cluster", "init", "--experimental", "--data", &to, "--nats", secret],
            "can read on a command line",
        ),
        (&["serve", "--data", &to, "--nats", secret], "can read on a command line"),
    ] {
        let ended = run(arguments.iter().copied());
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:#?}");
        assert!(ended.err.contains("error: ") && ended.out.is_empty(), "{ended:#?}");
        assert!(ended.err.contains(says), "{arguments:?}: {says:?}? {ended:#?}");
        assert!(!ended.err.contains("secret"), "{ended:#?}");
        assert!(!Path::new(&to).exists() && !Path::new(&data).exists(), "{arguments:?}");
    }
}

#[test]
fn a_time_without_its_unit_is_refused_with_an_example() {
    for arguments in [
        &["simulate", "--duration", "60"][..],
        &["simulate", "--profile", "stories", "--life", "60"],
        &["simulate", "--day", "60"],
        &["simulate", "--flash", "60"],
        &["demo", "--duration", "60"],
        &["account", "invite", "--life", "7"],
        &["import", "x", "--set-back", "60", "--set-back-from", "2030-01-01T00:00:00Z"],
    ] {
        let ended = run(arguments.iter().copied());
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:#?}");
        assert!(ended.err.contains("a time has a unit: 500ms"), "{arguments:?}: {ended:#?}");
    }
}

#[test]
fn a_thing_has_no_second_name() {
    for arguments in [
        &["serve", "--log", "nats://localhost:4222"][..],
        &["simulate", "--target", "http://localhost:1"],
        &["backup", "--to", "x"],
        &["export", "--to", "x"],
        &["repair", "--to", "x"],
        &["cluster", "join", "--from", "http://localhost:1"],
        &["lab", "run", "keys", "--data", "x"],
    ] {
        let ended = run(arguments.iter().copied());
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:#?}");
        assert!(ended.err.contains("unexpected argument"), "{ended:#?}");
    }
}

#[test]
fn a_level_of_the_log_that_is_none_ends_every_command_that_logs() {
    for command in [&["demo"][..], &["simulate", "--users", "10"]] {
        let ended = Process::start(roost(command).env("ROOST_LOG", "verbose")).ended();
        assert_eq!(ended.status.code(), Some(2), "{ended:#?}");
        assert!(ended.err.contains("ROOST_LOG is wrong"), "{ended:#?}");
    }
}

#[test]
fn commands_exit_with_0_1_or_3_as_their_help_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let data = path("data");
    Server::open(Path::new(&data), &[]).stop();
    let (backup, export, missing) = (path("backup"), path("export"), path("missing"));
    fs::write(path("damaged"), "roost backup? no").unwrap();
    for (arguments, code, says) in [
        (&["backup", "--data", &data, "--out", &backup][..], 0, "wrote"),
        (&["verify", &backup], 0, "no damage"),
        (&["verify", "--data", &data], 0, "no damage"),
        (&["export", "--data", &data, "--out", &export], 0, "exported"),
        (&["restore", &backup, "--data", &path("restored")], 0, "restored"),
        (&["import", &export, "--data", &path("imported")], 0, "imported"),
        (&["repair", "--data", &data, "--out", &path("repaired")], 0, "nothing is lost"),
        (&["key", "create", "k", "--data", &data], 0, "roost_"),
        (&["account", "list", "--data", &data], 0, "HANDLE"),
        (&["webhook", "add", "a", "https://a.example/in", "--data", &data], 0, "whsec_"),
        (&["webhook", "list", "--data", &data], 0, "https://a.example/in"),
        // After these errors, another attempt may succeed.
        (&["backup", "--server", "http://127.0.0.1:1", "--out", &path("x")], 1, "cannot connect"),
        (&["backup", "--data", &missing, "--out", &path("x")], 1, "error: "),
        (&["verify", &path("damaged")], 1, "not a backup"),
        (&["verify", "--data", &missing], 1, "error: "),
        (&["restore", &missing, "--data", &path("x")], 1, "cannot read"),
        (&["restore", &backup, "--data", &data], 1, "is not empty"),
        (&["import", &export, "--data", &data], 1, "is not empty"),
        (&["repair", "--data", &missing, "--out", &path("y")], 1, "cannot repair"),
        (&["key", "revoke", "none", "--data", &data], 1, "there is no key"),
        (&["key", "list", "--data", &missing], 1, "there is no data directory"),
        (&["webhook", "add", "a", "https://a.example/in", "--data", &data], 1, "already"),
        (&["webhook", "add", "b", "http://a.example/in", "--data", &data], 1, "--allow-private"),
        (&["webhook", "add", "a b", "https://a.example/in", "--data", &data], 1, "a-z A-Z 0-9"),
        (&["webhook", "remove", "none", "--data", &data], 1, "there is no webhook"),
        (&["webhook", "test", "none", "--data", &data], 1, "there is no webhook"),
        (&["webhook", "replay", "a", "oldest", "--data", &data], 1, "the server does not answer"),
        (&["webhook", "list", "--data", &missing], 1, "there is no data directory"),
        (&["account", "list", "--data", &missing], 1, "there is no data directory"),
        (&["cluster", "leave", "--data", &data], 1, "error: "),
    ] {
        let ended = run(arguments.iter().copied());
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {ended:#?}");
        let said = format!("{}{}", ended.out, ended.err);
        assert!(said.contains(says), "{arguments:?}: {says:?}? {said}");
    }
    let mut bytes = fs::read(&backup).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path("flipped"), bytes).unwrap();
    let ended = run(["verify", &path("flipped")]);
    assert_eq!(ended.status.code(), Some(3), "{ended:#?}");
}

#[test]
fn the_variable_names_the_data_directory_of_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let data = path("data");
    let with = |data: &str, arguments: &[&str]| {
        let mut command = roost(arguments);
        let ended = Process::start(command.env("ROOST_DATA", data)).ended();
        assert!(ended.status.success(), "{arguments:?}: {ended:#?}");
        ended
    };
    let mut command = roost(["serve", "--open", "--listen", "127.0.0.1:0"]);
    Server::start(command.env("ROOST_DATA", &data)).stop();
    assert!(Path::new(&data).join("log").exists());
    with(&data, &["key", "create", "k"]);
    assert!(with(&data, &["key", "list"]).out.contains("\nk "));
    with(&data, &["account", "create", "ann"]);
    assert!(with(&data, &["account", "list"]).out.contains("ann"));
    with(&data, &["backup", "--out", &path("backup")]);
    with(&data, &["export", "--out", &path("export")]);
    assert!(with(&data, &["verify"]).out.contains("no damage"));
    with(&data, &["repair", "--out", &path("repaired")]);
    with(&path("restored"), &["restore", &path("backup")]);
    with(&path("imported"), &["import", &path("export")]);
    for made in ["repaired", "restored", "imported"] {
        assert!(with(&path(made), &["account", "list"]).out.contains("ann"), "{made}");
    }
    // A source named on the command line has priority.
    let none = path("none");
    assert!(with(&none, &["verify", &path("backup")]).out.contains("no damage"));
    with(&none, &["export", "--backup", &path("backup"), "--out", &path("again")]);
    with(&none, &["verify", "--data", &data]);
    let server = Server::open(Path::new(&path("other")), &[]);
    let url = format!("http://{}", server.address);
    with(&none, &["backup", "--server", &url, "--out", &path("of-server")]);
    with(&none, &["export", "--server", &url, "--out", &path("of-server")]);
    server.stop();
    assert!(!Path::new(&none).exists());
}

#[test]
fn check_prints_each_setting_with_its_source_and_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let config = directory.path().join("roost.toml");
    fs::write(&config, "queue = 7\nmax-lag = \"90s\"\nlog-level = \"warn\"\n").unwrap();
    let config = config.to_str().unwrap();
    let mut command =
        serve(&data, &["--check", "--config", config, "--queue", "9", "--open=false"]);
    command.env("ROOST_LOG", "info").env("ROOST_MEMORY", "3GiB");
    command.env("ROOST_NATS", "tls://user:secret@nats-1:4222,tls://nats-2:4222");
    let ended = Process::start(command.env("ROOST_KEY", "a-key-of-the-environment")).ended();
    assert_eq!(ended.status.code(), Some(0), "{ended:#?}");
    assert!(!data.exists(), "nothing is made");
    let row = |name: &str| {
        let mut rows = ended.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.first() == Some(&name));
        row.unwrap_or_else(|| panic!("{name}? {}", ended.out))[1..].join(" ")
    };
    let of_file = format!("90s file {config}");
    for (name, expected) in [
        ("queue", "9 option --queue"),
        ("listen", "127.0.0.1:0 option --listen"),
        ("open", "false option --open"),
        ("max-lag", &of_file),
        ("log-level", "info variable ROOST_LOG"),
        ("memory", "3GiB variable ROOST_MEMORY"),
        ("nats", "tls://USER:PASSWORD@nats-1:4222,tls://nats-2:4222 variable ROOST_NATS"),
        ("story-life", "1d default"),
        ("disk-reserve", "512MiB default"),
        ("public-url", "http://127.0.0.1:0 default"),
        ("tls-cert", "none default"),
    ] {
        assert_eq!(row(name), expected, "{}", ended.out);
    }
    assert!(row("timeline-memory").ends_with("MiB share of memory"), "{}", ended.out);
    assert!(ended.out.contains("ROOST_KEY is set"), "{}", ended.out);
    for text in [&ended.out, &ended.err] {
        assert!(!text.contains("secret") && !text.contains("a-key-of-the"), "{ended:#?}");
    }
    // Every setting has a row in the table.
    let help = run(["serve", "--help"]).out;
    let variables = help.matches("[env: ROOST_").count();
    let rows = ended.out.lines().filter(|line| line.starts_with("  ")).count();
    assert_eq!(rows, variables - 1, "all but --config: {}", ended.out);
}

#[test]
fn a_password_of_nats_is_taken_from_the_environment_and_shown_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let check = |ended: Ended, code: i32| {
        assert_eq!(ended.status.code(), Some(code), "{ended:#?}");
        assert!(!ended.err.contains("secret") && !ended.out.contains("secret"), "{ended:#?}");
        ended.err
    };
    let config = directory.path().join("roost.toml");
    fs::write(&config, "nats = \"nats://user:secret@127.0.0.1:1\"").unwrap();
    let data = directory.path().join("data");
    let with_file = serve(&data, &["--check", "--config", config.to_str().unwrap()]);
    let mut with_variable = serve(&data, &["--check"]);
    with_variable.env("ROOST_NATS", "nats://user:secret@192.0.2.1:1");
    for (mut command, is_far) in [(with_file, false), (with_variable, true)] {
        let said = check(Process::start(&mut command).ended(), 0);
        assert_eq!(
            said.contains("password of the NATS servers travels unencrypted"),
            is_far,
            "{said}"
        );
    }
    for page in [&["serve", "--help"][..], &["cluster", "join", "--help"]] {
        let mut command = roost(page);
        check(Process::start(command.env("ROOST_NATS", "nats://user:secret@a:1")).ended(), 0);
    }
}

#[test]
fn a_server_that_others_can_reach_without_tls_warns_once_unless_a_proxy_has_it() {
    const WARNING: &str = "application keys and passwords travel unencrypted";
    for (more, warnings) in [
        (&["--listen", "0.0.0.0:0"][..], 1),
        (&["--listen", "0.0.0.0:0", "--public-url", "https://social.example"], 0),
        (&["--listen", "0.0.0.0:0", "--trusted-proxies", "10.0.0.1"], 0),
        (&["--listen", "127.0.0.1:0"], 0),
    ] {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(roost(["serve", "--data"]).arg(data.path()).args(more));
        let ended = server.stop();
        assert_eq!(ended.err.matches(WARNING).count(), warnings, "{more:?}: {}", ended.err);
    }
}

#[test]
fn a_command_warns_before_it_sends_a_key_that_others_can_read() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut serve(data.path(), &[]));
    Process::start(roost(["key", "create", "k", "--scope", "admin", "--data"]).arg(data.path()))
        .ended();
    let out = data.path().join("backup");
    let port = server.address.port();
    // This is another name for this machine, which is not a loopback address.
    for (host, key, warnings) in [
        ("0.0.0.0", Some("a-wrong-key"), 1),
        ("0.0.0.0", None, 0),
        ("127.0.0.1", Some("a-wrong-key"), 0),
    ] {
        let mut command = roost(["backup", "--server", &format!("http://{host}:{port}"), "--out"]);
        command.arg(&out).envs(key.map(|key| ("ROOST_SERVER_KEY", key)));
        let ended = Process::start(&mut command).ended();
        assert_eq!(ended.err.matches("the application key travels unencrypted").count(), warnings);
        assert!(!ended.err.contains("a-wrong-key"), "{ended:#?}");
    }
    server.stop();
}

#[test]
fn responses_are_logged_with_the_name_of_the_key_and_never_with_the_key() {
    const GIVEN: &str = "a-key-of-the-environment";
    let data = tempfile::tempdir().unwrap();
    let first = Server::start(&mut serve(data.path(), &[]));
    first.stop();
    let key = fs::read_to_string(data.path().join("first-key")).unwrap().trim().to_owned();
    let mut command = serve(data.path(), &["--log-level", "debug", "--log-format", "json"]);
    command.args(["--redis-listen", "127.0.0.1:0"]);
    let server = Server::start(command.env("ROOST_KEY", GIVEN));
    for (key, path) in [
        (Some(key.clone()), "/v1/users?limit=1"),
        (Some(GIVEN.to_owned()), "/v1/users?limit=2"),
        (Some("roost_wrong".to_owned()), "/v1/users?limit=3"),
        (None, "/healthz"),
    ] {
        Client::new(server.address, key).get(path);
    }
    let redis = server.process.said("roost serves redis://").unwrap();
    let mut redis = std::net::TcpStream::connect(redis).unwrap();
    for (key, reply) in [(&key, &b"+OK\r\n"[..]), (&"roost_wrong".to_owned(), b"-WRONGPASS")] {
        writeln!(redis, "AUTH {key}\r").unwrap();
        let mut said = vec![0; reply.len()];
        redis.read_exact(&mut said).unwrap();
        assert_eq!(said, reply);
    }
    drop(redis);
    let ended = server.stop();
    let authenticated: Vec<_> = ended
        .err
        .lines()
        .filter(|line| line.contains("a Redis client has authenticated"))
        .collect();
    assert_eq!(authenticated.len(), 1, "{authenticated:?}");
    assert!(authenticated[0].contains("\"key\":\"default\""), "{authenticated:?}");
    let responses: Vec<serde_json::Value> = ended
        .err
        .lines()
        .filter(|line| line.contains("\"message\":\"response\""))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = responses
        .iter()
        .map(|line| (line["status"].as_u64().unwrap(), line["key"].as_str()))
        .collect();
    assert_eq!(names, [(200, Some("default")), (200, Some("ROOST_KEY")), (401, None), (200, None)]);
    for secret in [&key, GIVEN, "roost_wrong"] {
        assert!(!ended.err.contains(secret), "{}", ended.err);
    }
}
