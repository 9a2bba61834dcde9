//! Tests of wrong clocks. The real binary runs under libfaketime, which changes the time of the machine's clock, but
//! not its rate.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use testkit::machine::WrongClock;

use crate::support::http::number;
use crate::support::process::{Process, Server, run, serve};
use crate::support::redis::{Redis, Reply};

/// `roost serve` with a wrong clock.
struct Wrong {
    clock: WrongClock,
    folder: tempfile::TempDir,
}

impl Wrong {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        Some(Self { clock: WrongClock::new(folder.path().join("time"))?, folder })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn set(&self, time: &str) {
        self.clock.set(time);
    }

    fn command(&self, time: &str, more: &[&str]) -> Command {
        self.set(time);
        let redis = ["--open", "--redis-listen", "127.0.0.1:0"];
        let mut command = serve(&self.data(), &[&redis, more].concat());
        self.clock.give(&mut command);
        command
    }

    fn start(&self, time: &str, more: &[&str]) -> (Server, Redis) {
        let server = Server::start(&mut self.command(time, more));
        let address = server.process.said("roost serves redis://").unwrap();
        (server, Redis::new(address.parse().unwrap()))
    }

    fn refused(&self, time: &str) -> String {
        let ended = Process::start(&mut self.command(time, &[])).ended();
        assert!(!ended.status.success());
        assert!(!Path::new(&self.data()).join("first-key").exists());
        ended.err
    }
}

fn ahead_seconds(server: &Server) -> f64 {
    let metrics = server.client().get("/metrics").expect(200).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("roost_clock_offset_seconds "));
    line.unwrap().parse().unwrap()
}

/// Waits until the key has expired.
fn expires(redis: &mut Redis, key: &str) {
    while redis.line(&format!("EXISTS {key}")).integer() == 1 {
        std::thread::yield_now();
    }
}

#[test]
fn time_passes_after_the_clock_was_three_days_ahead_for_one_start() {
    let Some(wrong) = Wrong::new() else { return };
    let (server, mut redis) = wrong.start("+0", &[]);
    assert_eq!(redis.line("SET lasting v EX 1000000"), Reply::ok());
    server.stop();
    let (server, mut redis) = wrong.start("+3d", &[]);
    assert_eq!(redis.line("SET a v PX 200"), Reply::ok());
    expires(&mut redis, "a");
    server.stop();
    let (server, mut redis) = wrong.start("+0", &[]);
    assert!(server.process.logged("the time continues from when this server last ran").is_some());
    assert!(ahead_seconds(&server) < -2.9 * 86_400.0);
    assert_eq!(redis.line("SET b v PX 200"), Reply::ok());
    expires(&mut redis, "b");
    let mut client = server.client();
    let user = client.register("ann");
    let story = format!("/v1/users/{user}/stories");
    client.post(&story, &json!({"text": "soon gone", "ttl_s": 1})).expect(201);
    while !client.get(&story).expect(200).json()["items"].as_array().unwrap().is_empty() {}
    assert_eq!(redis.line("EXISTS lasting").integer(), 1);
    server.stop();
}

#[test]
fn a_clock_that_is_far_off_is_refused_at_the_start_unless_it_is_accepted() {
    let Some(wrong) = Wrong::new() else { return };
    let years = [
        "@1969-12-30 00:00:00",
        "@1999-12-31 00:00:00",
        "@2023-12-31 00:00:00",
        "@2093-01-02 00:00:00",
    ];
    for time in years {
        let error = wrong.refused(time);
        assert!(error.contains("roost works from 2024 to 2092"), "{time}: {error}");
    }
    let (server, mut redis) = wrong.start("+0", &[]);
    assert_eq!(redis.line("SET lasting v EX 604800"), Reply::ok());
    server.stop();
    for time in ["+8d", "-8d"] {
        let error = wrong.refused(time);
        assert!(error.contains("--accept-clock"), "{time}: {error}");
    }
    let (server, mut redis) = wrong.start("+2d", &[]);
    assert_eq!(redis.line("EXISTS lasting").integer(), 1);
    server.stop();
    let (server, mut redis) = wrong.start("+12d", &["--accept-clock"]);
    assert_eq!(redis.line("EXISTS lasting").integer(), 0);
    server.stop();
}

#[test]
fn a_running_server_does_not_follow_a_jump_of_its_clock_that_is_too_long() {
    let Some(wrong) = Wrong::new() else { return };
    let (server, mut redis) = wrong.start("+0", &["--clock-jump", "48h"]);
    assert_eq!(redis.line("SET a v EX 100000"), Reply::ok());
    wrong.set("+30d");
    assert!(server.process.logged("the machine's clock has jumped").is_some());
    assert!(ahead_seconds(&server) > 29.9 * 86_400.0);
    assert_eq!(redis.line("EXISTS a").integer(), 1);
    assert_eq!(redis.line("SET b v PX 200"), Reply::ok());
    expires(&mut redis, "b");
    // The server follows a shorter jump of the clock.
    wrong.set("+40h");
    expires(&mut redis, "a");
    assert!(ahead_seconds(&server).abs() < 60.0);
    // After the clock jumps back, the server's time still advances.
    wrong.set("+0");
    assert_eq!(redis.line("SET c v PX 200"), Reply::ok());
    expires(&mut redis, "c");
    server.stop();
}

#[test]
fn a_clock_that_was_ten_years_ahead_can_be_undone() {
    let Some(wrong) = Wrong::new() else { return };
    let (server, _) = wrong.start("+0", &[]);
    let ann = server.client().register("ann");
    server.client().publish(ann, "right");
    server.stop();
    let (server, _) = wrong.start("+3650d", &["--accept-clock"]);
    server.client().publish(ann, "ahead");
    let last = server.client().publish(ann, "further ahead");
    server.stop();
    let error = wrong.refused("+0");
    assert!(error.contains("--set-back"), "{error}");
    // With --accept-clock, a later start continues from the time of the last change.
    let (server, _) = wrong.start("+0", &["--accept-clock"]);
    assert!(server.client().publish(ann, "still ahead") > last);
    server.stop();
    let (export, data) = (wrong.folder.path().join("export"), wrong.folder.path().join("new"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let exported = run(["export", "--data", &path(&wrong.data()), "--out", &path(&export)]);
    assert!(exported.status.success(), "{exported:#?}");
    let import = |more: &[&str]| {
        drop(std::fs::remove_dir_all(&data));
        run([&["import", &path(&export), "--data", &path(&data)], more].concat())
    };
    let refused = import(&[]);
    assert!(refused.err.contains("--set-back"), "{refused:#?}");
    let from = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(5 * 365 * 24);
    let imported = import(&["--set-back", "87600h", "--set-back-from", &from.to_string()]);
    assert!(imported.status.success(), "{imported:#?}");
    let server = Server::open(&data, &[]);
    let posted = server.client().publish(ann, "right again");
    let posts = server.client().all(&format!("/v1/users/{ann}/posts"));
    let texts: Vec<_> = posts.iter().map(|post| post["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["right again", "still ahead", "further ahead", "ahead", "right"]);
    assert!(posts.iter().all(|post| number(&post["id"]) <= posted), "{posts:?}");
    server.stop();
}
