//! Authorization of clients.

use std::io::{Read as _, Write as _};

use edge::{Access, KeyHash, KeySet, Scope, Scopes};
use serde_json::json;

use crate::client::{KEY, TestServer};

#[test]
fn with_keys_only_paths_without_data_are_public() {
    let server = TestServer::with_key();
    for path in ["/healthz", "/readyz", "/v1/openapi.json", "/docs/"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    for (method, path) in [("GET", "/nowhere"), ("TRACE", "/v1/users")] {
        let answer = server.send(method, path, &[], b"");
        answer.assert_error(401, "unauthorized", path);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

/// Documented route that is not public.
struct Protected {
    method: String,
    path: String,
    /// Path with 0 for each parameter.
    concrete: String,
    scope: String,
}

/// Protected routes of the OpenAPI document.
fn protected_routes(server: &TestServer) -> Vec<Protected> {
    let description = server.get("/v1/openapi.json").json();
    let mut routes = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        let segments = path.split('/').map(|part| if part.starts_with('{') { "0" } else { part });
        let concrete = segments.collect::<Vec<_>>().join("/");
        for (method, operation) in operations.as_object().unwrap() {
            let Some(scopes) = operation["security"][0]["key"].as_array() else { continue };
            let scope = scopes[0].as_str().unwrap().to_owned();
            let (path, concrete) = (path.clone(), concrete.clone());
            routes.push(Protected { method: method.to_uppercase(), path, concrete, scope });
        }
    }
    assert!(routes.len() > 70);
    routes
}

#[test]
fn every_route_needs_a_key_with_its_scope() {
    let server = TestServer::start(Access::with_keys(scoped_keys()), |_, _| ());
    for Protected { method, path, concrete, scope: needed } in protected_routes(&server) {
        let answer = server.send(&method, &concrete, &[], b"");
        answer.assert_error(401, "unauthorized", &format!("{method} {path}"));
        for scope in Scope::ALL.map(Scope::name).into_iter().filter(|scope| *scope != needed) {
            let key = format!("Bearer {scope}");
            let answer = server.send(&method, &concrete, &[("Authorization", &key)], b"");
            answer.assert_error(403, "missing_scope", &format!("{method} {path} with {scope}"));
        }
    }
}

#[test]
fn with_a_key_that_may_only_write_no_response_has_what_is_stored() {
    let mut keys = scoped_keys();
    keys.push(KeyHash::new(b"both", [Scope::Read, Scope::Write].into_iter().collect()));
    let server = TestServer::start(Access::with_keys(keys), |_, _| ());
    let send = |key: &str, method: &str, path: &str, body: &str| {
        let key = format!("Bearer {key}");
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
        server.send(method, path, &headers, body.as_bytes())
    };
    let user = r#"{"handle":"ada","name":"stored-name","bio":"stored-bio"}"#;
    let post = r#"{"text":"stored-text @ada","visibility":"direct"}"#;
    let made = send("both", "POST", "/v1/users", user).json();
    assert_eq!(made["name"], "stored-name", "who may read gets it");
    let post = send("both", "POST", "/v1/users/0/posts", post).json();
    let id = post["id"].as_str().unwrap();
    send("both", "PUT", "/v1/buckets/b", "");
    send("both", "PUT", "/v1/buckets/b/keys/k", "stored-value");

    let edited = send("write", "PATCH", &format!("/v1/users/0/posts/{id}"), "{}");
    assert_eq!((edited.status, edited.json()), (200, json!({"id": id})));
    let edited = send("write", "PATCH", "/v1/users/0", "{}");
    assert_eq!((edited.status, edited.json()), (200, json!({"id": "0"})));
    for Protected { method, path, concrete, .. } in protected_routes(&server) {
        // The post is not deleted here, since it gets a reply below.
        if method == "GET"
            || (method.as_str(), path.as_str()) == ("DELETE", "/v1/users/{user}/posts/{id}")
        {
            continue;
        }
        let concrete = concrete.replace("/posts/0", &format!("/posts/{id}"));
        let reply = format!(r#"{{"text":"x","in_reply_to_id":"{id}"}}"#);
        let reads = "{\"op\":\"edit_post\",\"id\":\"ID\"}\n".replace("ID", id);
        for body in ["", "{}", r#"{"text":"x"}"#, &reply, r#"{"handle":"bob"}"#, &reads] {
            for path in [concrete.clone(), path.replace("{bucket}", "b").replace("{key}", "k")] {
                let answer = send("write", &method, &path, body);
                let text = String::from_utf8_lossy(&answer.body);
                assert!(!text.contains("stored-"), "{method} {path} {body}: {text}");
            }
        }
    }
    let again = format!(r#"{{"text":"again","in_reply_to_id":"{id}"}}"#);
    let made = send("write", "POST", "/v1/users/0/posts", &again);
    let keys: Vec<_> = made.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!((made.status, keys), (201, vec!["id".to_owned()]));
    assert!(made.header("location").is_some_and(|path| path.starts_with("/v1/posts/")));
}

#[test]
fn an_idempotency_key_of_a_registration_is_of_its_application() {
    let keys = ["one", "other"].map(|key| KeyHash::new(key.as_bytes(), Scopes::ALL));
    let server = TestServer::start(Access::with_keys(keys.into()), |_, _| ());
    let register = |key: &str, handle: &str| {
        let key = format!("Bearer {key}");
        let headers = [("Authorization", key.as_str()), ("Idempotency-Key", "1")];
        server.with_json("POST", "/v1/users", &headers, &json!({"handle": handle}))
    };
    let line = |key: &str, handle: &str| {
        let key = format!("Bearer {key}");
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/x-ndjson")];
        let line = json!({"op": "register", "handle": handle, "idempotency_key": "1"});
        server.send("POST", "/v1/batch", &headers, format!("{line}\n").as_bytes())
    };
    for (key, handle, id) in [("one", "ada", "0"), ("other", "bob", "1")] {
        let first = register(key, handle);
        assert_eq!((first.status, &first.json()["id"]), (201, &json!(id)), "{key}");
        assert_eq!(register(key, handle).header("idempotent-replayed"), Some("true"), "{key}");
        assert_eq!(line(key, handle).lines()[0]["id"], id, "{key}");
    }
    register("one", "bob").assert_error(422, "idempotency_key_reused", "of the other");
}

#[test]
fn only_the_whole_key_as_a_bearer_token_is_accepted() {
    let server = TestServer::with_key();
    let with = |value: &str| server.send("GET", "/v1/users", &[("Authorization", value)], b"");
    for value in [format!("Bearer {KEY}"), format!("bearer  {KEY}")] {
        assert_eq!(with(&value).status, 200, "{value}");
    }
    let shorter = &KEY[..KEY.len() - 1];
    for value in [
        String::new(),
        KEY.to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {shorter}"),
        format!("Bearer {KEY}x"),
        format!("Basic {KEY}"),
    ] {
        with(&value).assert_error(401, "unauthorized", &value);
    }
    let key = format!("Bearer {KEY}");
    let twice = [("Authorization", key.as_str()), ("Authorization", key.as_str())];
    server.send("GET", "/v1/users", &twice, b"").assert_error(401, "unauthorized", "two keys");
}

/// Keys named after their scopes.
fn scoped_keys() -> Vec<KeyHash> {
    let key = |scope: Scope| {
        let scopes = [scope].into_iter().collect();
        KeyHash::new(scope.name().as_bytes(), scopes)
    };
    Scope::ALL.map(key).to_vec()
}

#[test]
fn a_key_allows_only_its_scopes() {
    let server = TestServer::start(Access::with_keys(scoped_keys()), |_, _| ());
    for (method, path, needed) in [
        ("GET", "/v1/users", "read"),
        ("GET", "/v1/users/0/events", "read"),
        ("GET", "/metrics", "read"),
        ("POST", "/v1/recognitions", "read"),
        ("POST", "/v1/users", "write"),
        ("PATCH", "/v1/users/0", "write"),
        ("PUT", "/v1/users/0/following/1", "write"),
        ("DELETE", "/v1/users/0/posts/1", "write"),
        ("POST", "/v1/batch", "write"),
        ("PUT", "/v1/buckets/b", "write"),
        ("DELETE", "/v1/buckets/b/keys/k", "write"),
        ("DELETE", "/v1/buckets/b", "admin"),
        ("DELETE", "/v1/users/0", "admin"),
    ] {
        for scope in Scope::ALL.map(Scope::name) {
            let key = format!("Bearer {scope}");
            let answer = server.send(method, path, &[("Authorization", &key)], b"");
            let about = format!("{method} {path} with {scope}");
            if scope == needed {
                // This test does not check whether the request itself is valid.
                assert!(![401, 403].contains(&answer.status), "{about}: {answer:?}");
            } else {
                answer.assert_error(403, "missing_scope", &about);
            }
        }
    }
}

#[test]
fn a_revoked_key_is_refused_at_once_and_its_streams_end() {
    let keys = KeySet::new(vec![KeyHash::new(KEY.as_bytes(), Scopes::ALL)]);
    let server = TestServer::start(Access::Keys(std::sync::Arc::clone(&keys)), |_, _| ());
    let key = format!("Bearer {KEY}");
    let get = |path: &str| server.send("GET", path, &[("Authorization", &key)], b"");
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    let made = server.send("POST", "/v1/users", &headers, br#"{"handle":"ada"}"#);
    assert_eq!(made.status, 201);
    let mut stream = server.connect();
    let request = format!(
        "GET /v1/users/0/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut begun = Vec::new();
    while !begun.windows(10).any(|part| part == b": connected".get(..10).unwrap()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        begun.push(byte[0]);
    }
    // Another key is valid from here on.
    keys.replace(&[KeyHash::new(b"another", Scopes::ALL)]);
    get("/v1/users").assert_error(401, "unauthorized", "revoked");
    let headers = [("Authorization", "Bearer another"), ("Content-Type", "application/json")];
    let posted = server.send("POST", "/v1/users/0/posts", &headers, br#"{"text":"secret"}"#);
    assert_eq!(posted.status, 201);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("secret"));
}

#[test]
fn with_a_key_the_host_and_the_origin_do_not_matter() {
    let server = TestServer::with_key();
    let key = format!("Bearer {KEY}");
    let headers = [
        ("Host", "feeds.example"),
        ("Origin", "https://app.example"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Authorization", key.as_str()),
    ];
    assert_eq!(server.send("GET", "/v1/users", &headers, b"").status, 200);
}

#[test]
fn open_mode_accepts_this_machine_and_refuses_pages_of_other_origins() {
    let server = TestServer::open();
    let mut cases = vec![
        (vec![("Host", "localhost:8998")], true),
        (vec![("Host", "127.0.0.1")], true),
        (vec![("Host", "[::1]:8998")], true),
        (vec![("Host", "feeds.example")], false),
        (vec![("Host", "localhost.feeds.example")], false),
        (vec![("Host", "192.168.1.5:8998")], false),
        (vec![("Host", "")], false),
    ];
    for (origin, allowed) in [
        ("http://localhost:3000", true),
        ("https://127.0.0.1", true),
        ("http://evil.example", false),
        ("http://localhost.evil.example", false),
        ("null", false),
        ("file://localhost", false),
    ] {
        cases.push((vec![("Origin", origin)], allowed));
    }
    for (site, allowed) in [
        ("same-origin", true),
        ("none", true),
        ("same-site", false),
        ("cross-site", false),
        ("", false),
    ] {
        cases.push((vec![("Sec-Fetch-Site", site)], allowed));
    }
    for (headers, allowed) in cases {
        for path in ["/v1/users", "/healthz", "/nowhere"] {
            let answer = server.send("GET", path, &headers, b"");
            if allowed {
                assert_ne!(answer.status, 403, "{headers:?} {path}");
            } else {
                answer.assert_error(403, "forbidden_origin", &format!("{headers:?} {path}"));
            }
        }
    }
    let absolute = b"GET http://evil.example/v1/users HTTP/1.1\r\nHost: localhost\r\n\
        Connection: close\r\n\r\n";
    server.raw(absolute).assert_error(403, "forbidden_origin", "absolute form");
}

/// Whether the server has closed a connection on which no data is pending.
fn is_closed(stream: &mut std::net::TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    read.is_ok_and(|bytes| bytes == 0)
}

#[test]
fn clients_without_a_key_cannot_block_others() {
    let access = Access::with_keys(vec![KeyHash::new(KEY.as_bytes(), Scopes::ALL)]);
    let server = TestServer::start(access, |_, options| options.connections_max = 4);
    let request =
        format!("GET /v1/users HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    let ask = |stream: &mut std::net::TcpStream| {
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 15];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        // The rest is short, so one read gets it.
        let mut rest = [0; 4_096];
        assert!(stream.read(&mut rest).unwrap() > 0);
    };
    let mut member = server.connect();
    ask(&mut member);
    // These connections are idle, or request only public paths.
    let mut guests: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for guest in guests.iter_mut().step_by(2) {
        drop(guest.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    let mut other = server.connect();
    ask(&mut other);
    let more: Vec<_> = (0..40).map(|_| server.connect()).collect();
    ask(&mut member);
    ask(&mut other);
    for guest in guests.iter_mut().step_by(2).take(19) {
        drop(guest.read_to_end(&mut Vec::new()));
    }
    assert!(guests.iter_mut().skip(1).step_by(2).take(19).all(is_closed));
    assert!(!is_closed(&mut member) && !is_closed(&mut other));
    drop(more);
}

/// Reads the remaining bytes until the server closes a connection.
fn rest_of(mut stream: std::net::TcpStream) -> String {
    let mut rest = Vec::new();
    drop(stream.read_to_end(&mut rest));
    String::from_utf8_lossy(&rest).into_owned()
}

/// Reads from a connection until `text` has arrived.
fn read_until(stream: &mut std::net::TcpStream, text: &str) {
    let mut read = Vec::new();
    while !read.ends_with(text.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        read.push(byte[0]);
    }
}

#[test]
fn long_requests_end_when_their_key_is_revoked_though_nothing_is_sent_on_them() {
    let keys = KeySet::new(vec![KeyHash::new(KEY.as_bytes(), Scopes::ALL)]);
    let server = TestServer::start(Access::Keys(std::sync::Arc::clone(&keys)), |_, _| ());
    let head = |method: &str, path: &str, kind: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\
             Content-Type: {kind}\r\n"
        )
    };
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let register = "{\"op\":\"register\",\"handle\":\"ada\"}\n";
    let mut batch = server.connect();
    let line = format!("{:x}\r\n{register}\r\n", register.len());
    let batch_head = head("POST", "/v1/batch", "application/x-ndjson");
    batch.write_all(format!("{batch_head}{chunked}{line}").as_bytes()).unwrap();
    read_until(&mut batch, "\"id\":\"0\"}\n");
    let mut events = server.connect();
    let events_head = head("GET", "/v1/users/0/events", "text/plain");
    events.write_all(format!("{events_head}\r\n").as_bytes()).unwrap();
    read_until(&mut events, ": connected\n");
    let authorized = [("Authorization", format!("Bearer {KEY}"))];
    let authorized = authorized.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(server.send("PUT", "/v1/buckets/b", &authorized, b"").status, 204);
    let mut body = server.connect();
    let body_head = head("PUT", "/v1/buckets/b/keys/k", "application/octet-stream");
    body.write_all(format!("{body_head}Content-Length: 1000000\r\n\r\nx").as_bytes()).unwrap();
    keys.replace(&[KeyHash::new(b"another", Scopes::ALL)]);
    // Lines that are sent now are not executed, and the connection ends without further input.
    let late = register.replace("ada", "late");
    drop(batch.write_all(format!("{:x}\r\n{late}\r\n", late.len()).as_bytes()));
    assert!(!rest_of(batch).contains("\"ok\":true"));
    rest_of(events);
    let refused = rest_of(body);
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let another = [("Authorization", "Bearer another")];
    assert_eq!(server.send("GET", "/v1/users/@late", &another, b"").status, 404);
}

#[test]
fn one_key_cannot_take_all_connections_and_health_is_always_answered() {
    let keys = [KEY, "another"].map(|key| KeyHash::new(key.as_bytes(), Scopes::ALL));
    let access = Access::with_keys(keys.into());
    let server = TestServer::start(access, |_, options| options.connections_max = 6);
    let begin = |key: &str| {
        let mut stream = server.connect();
        let head = format!(
            "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
    };
    let mut held = Vec::new();
    for (key, expect) in
        [(KEY, "200"), (KEY, "200"), (KEY, "200"), (KEY, "429"), ("another", "200")]
    {
        let (status, stream) = begin(key);
        assert_eq!(status, expect);
        held.extend((expect == "200").then_some(stream));
    }
    for _ in 0..2 {
        // The refused connection is in use until the server notices that it was closed.
        let stream = loop {
            match begin("another") {
                (status, stream) if status == "200" => break stream,
                (status, _) => assert_eq!(status, "503"),
            }
        };
        held.push(stream);
    }
    // All connections for requests are now in use. Health checks work even if idle connections are added.
    let idle: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.send("GET", path, &[], b"").status, 200, "{path}");
    }
    let key = [("Authorization", "Bearer another")];
    server.send("GET", "/v1/users", &key, b"").assert_error(503, "overloaded", "all are in use");
    drop((held, idle));
}
