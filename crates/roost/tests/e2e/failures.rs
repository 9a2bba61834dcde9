//! Tests of a command whose rule panics: only its request fails. The server goes on, and can be started again.
//!
//! In a debug build, rules panic at a text that an environment variable contains.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::http::Client;
use crate::support::process::{Process, Server, roost, serve};
use crate::support::redis::{Redis, Reply};

const PANIC: (&str, &str) = ("ROOST_TEST_PANIC", "boom");

/// Whether the tested binary reads this environment variable.
const CAN_FAIL: bool = cfg!(debug_assertions);

fn command(data: &Path) -> Command {
    let mut command = serve(data, &["--open", "--password-grant", "--redis-listen", "127.0.0.1:0"]);
    command.env(PANIC.0, PANIC.1);
    command
}

fn redis(server: &Server) -> Redis {
    Redis::new(server.process.said("roost serves redis://").unwrap().parse().unwrap())
}

/// All texts of a user's posts.
fn texts(client: &mut Client, user: u32) -> Vec<Value> {
    let posts = client.all(&format!("/v1/users/{user}/posts"));
    posts.into_iter().map(|post| post["text"].clone()).collect()
}

#[test]
fn what_panics_fails_alone_and_the_server_starts_again() {
    if !CAN_FAIL {
        return crate::support::not_here("rules panic on purpose only in a debug build");
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Server::start(&mut command(&data)).stop();
    let tokens = ["account", "test-tokens", "1", "--data"];
    let tokens = Process::start(roost(tokens).arg(&data)).ended();
    assert!(tokens.status.success(), "{tokens:#?}");
    let server = Server::start(&mut command(&data));
    let mut client = server.client();
    let user = client.register("ann");
    let path = format!("/v1/users/{user}/posts");
    for _ in 0..2 {
        let failed = client.post(&path, &json!({"text": "boom"}));
        failed.assert_error(500, "internal", "a panic");
        client.publish(user, "works");
    }
    let lines = ["one", "boom", "two"]
        .map(|text| json!({"op": "post", "user": "@ann", "text": text}).to_string())
        .join("\n");
    let headers = [("Content-Type", "application/x-ndjson")];
    let answers = client.send("POST", "/v1/batch", &headers, lines.as_bytes()).unwrap();
    let answers = answers.expect(200).lines();
    let done = answers.iter().map(|answer| answer["ok"] == true);
    assert_eq!(done.collect::<Vec<_>>(), [true, false, true], "{answers:#?}");
    assert_eq!(answers[1]["error"], "internal", "{answers:#?}");
    let token = tokens.out.lines().next().unwrap().to_owned();
    let mut app = Client::new(server.address, Some(token));
    assert_eq!(app.post("/api/v1/statuses", &json!({"status": "boom"})).status, 500);
    app.post("/api/v1/statuses", &json!({"status": "works"})).expect(200);
    let mut keys = redis(&server);
    assert!(matches!(keys.line("SET a 1"), Reply::Simple(_)));
    assert!(
        matches!(keys.line("SET boom 1"), Reply::Error(text) if text.contains("internal error"))
    );
    assert!(matches!(keys.line("INCR a"), Reply::Integer(2)));
    let metrics = client.get("/metrics").expect(200).text();
    assert!(metrics.contains("\nroost_failed_commands_total 5\n"), "{metrics}");
    let logged = server.process.logged("the rules have an error").unwrap();
    assert!(logged.contains("Publish") && logged.contains("fault.rs"), "{logged}");
    assert!(!logged.contains("boom") && !logged.contains("that the environment wants"), "{logged}");
    let before = texts(&mut client, user);
    assert_eq!(before, ["two", "one", "works", "works"]);
    drop(server.kill());
    let server = Server::start(&mut command(&data));
    assert_eq!(texts(&mut server.client(), user), before);
    let mut keys = redis(&server);
    assert!(matches!(keys.line("INCR a"), Reply::Integer(3)));
    assert!(matches!(keys.line("EXISTS boom"), Reply::Integer(0)));
    server.client().publish(user, "goes on");
    server.stop();
}
