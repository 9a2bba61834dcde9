//! Tests of requests, long bodies, event streams and WebSockets over https.

use std::io::{BufRead as _, Read as _, Write as _};

use serde_json::{Value, json};

use super::{Connection, Files, Pair, ask, connect, start, trusting};
use crate::support::http::{Chunked, read_head, request};
use crate::support::process::{Process, roost};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn send(connection: &mut Connection, method: &str, path: &str, body: &Value) -> Value {
    let (status, body) = ask(connection, method, path, &[JSON], body.to_string().as_bytes());
    assert!((200..300).contains(&status), "{path}: {}", String::from_utf8_lossy(&body));
    if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() }
}

#[test]
fn requests_long_values_and_event_streams_work_over_https() {
    let files = Files::new(&Pair::valid());
    let (server, address) = start(&mut files.serve(&["--open"]));
    let client = || connect(&trusting(&[&files.cert]), address, "localhost").unwrap();
    let mut one = client();
    send(&mut one, "POST", "/v1/users", &json!({"handle": "ada"}));
    send(&mut one, "POST", "/v1/users", &json!({"handle": "bob"}));
    send(&mut one, "PUT", "/v1/users/@bob/following/@ada", &Value::Null);
    let value: Vec<u8> = (0..8_u32 << 20).map(|at| (at % 251) as u8).collect();
    assert_eq!(ask(&mut one, "PUT", "/v1/buckets/0/keys/long", &[], &value).0, 204);
    assert!(ask(&mut one, "GET", "/v1/buckets/0/keys/long", &[], b"").1 == value);

    let mut listening = client();
    let listen = request("localhost", "GET", "/v1/users/@bob/events", &[], b"");
    listening.get_mut().write_all(&listen).unwrap();
    assert_eq!(read_head(&mut listening).unwrap().0, 200);
    let mut events = std::io::BufReader::new(Chunked::new(listening));
    let mut wait_for = |part: &str| {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(events.read_line(&mut line).unwrap() > 0, "the stream ended before {part}");
        }
    };
    wait_for(": connected");
    for text in ["the first", "the second"] {
        send(&mut one, "POST", "/v1/users/@ada/posts", &json!({"text": text}));
        wait_for(text);
    }
    drop(server);
}

/// Text of a WebSocket message of the server, which has less than 64 KiB and one frame.
fn message(connection: &mut Connection) -> String {
    let mut head = [0; 2];
    connection.read_exact(&mut head).unwrap();
    assert_eq!(head[0], 0x81, "a text in one frame");
    let length = match head[1] {
        126 => {
            let mut long = [0; 2];
            connection.read_exact(&mut long).unwrap();
            usize::from(u16::from_be_bytes(long))
        }
        short => usize::from(short),
    };
    let mut text = vec![0; length];
    connection.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn apps_log_in_and_stream_by_websocket_over_https() {
    let files = Files::new(&Pair::valid());
    let (server, address) = start(&mut files.serve(&["--password-grant"]));
    let client = || connect(&trusting(&[&files.cert]), address, "localhost").unwrap();
    let made =
        Process::start(roost(["account", "create", "ann", "--data"]).arg(files.data())).ended();
    assert!(made.status.success(), "{made:#?}");
    let mut app = client();
    let wanted = json!({
        "client_name": "An app", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob", "scopes": "read write",
    });
    let app_is = send(&mut app, "POST", "/api/v1/apps", &wanted);
    let wanted = json!({
        "grant_type": "password", "scope": "read write", "username": "ann", "password": made.out.trim(),
        "client_id": app_is["client_id"], "client_secret": app_is["client_secret"],
    });
    let token = send(&mut app, "POST", "/oauth/token", &wanted);
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
    let (status, instance) = ask(&mut app, "GET", "/api/v2/instance", &[], b"");
    let instance: Value = serde_json::from_slice(&instance).unwrap();
    let streaming = &instance["configuration"]["urls"]["streaming"];
    assert_eq!((status, streaming), (200, &json!(format!("wss://{address}"))));

    let mut socket = client();
    let upgrade = [
        ("Authorization", bearer.as_str()),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    let bytes = request("localhost", "GET", "/api/v1/streaming?stream=user", &upgrade, b"");
    socket.get_mut().write_all(&bytes).unwrap();
    assert_eq!(read_head(&mut socket).unwrap().0, 101);
    let post = json!({"status": "seen at once"}).to_string();
    let headers = [("Authorization", bearer.as_str()), JSON];
    assert_eq!(ask(&mut app, "POST", "/api/v1/statuses", &headers, post.as_bytes()).0, 200);
    let message = message(&mut socket);
    assert!(message.contains("seen at once"), "{message}");
    drop(server);
}
