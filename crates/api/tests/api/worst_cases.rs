//! Smallest requests with the largest effect, for each kind of route, against a server with little memory: the server
//! responds, also to other clients, and releases all reserved memory.

use std::io::{Cursor, Read as _, Write as _};
use std::net::TcpStream;

use edge::{Access, KeyHash, Scope, Scopes};
use image::{GrayImage, ImageFormat};
use serde_json::json;
use testkit::http::at;

use crate::client::{KEY, TestServer};

/// Memory for requests, in bytes. A quarter is for small amounts.
const MEMORY: usize = 4 << 20;

fn server() -> TestServer {
    TestServer::start(Access::Open, |_, options| options.request_memory = MEMORY)
}

/// Number of bytes reserved by requests.
fn held(server: &TestServer) -> usize {
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("roost_request_bytes "));
    line.unwrap().parse().unwrap()
}

/// Waits until no memory is reserved: the server notices closed connections with a delay.
fn nothing_is_held(server: &TestServer) {
    for _ in 0..100_000 {
        if held(server) == 0 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{} bytes are never released", held(server));
}

/// Sends small and larger requests of another client.
fn other_clients_are_served(server: &TestServer) {
    let value = vec![7; 256 << 10];
    let path = "/v1/buckets/15/keys/stranger";
    assert!(matches!(server.send("PUT", path, &[], &value).status, 201 | 204));
    assert_eq!(server.get(path).body, value);
    let publish = server.post("/v1/users/0/posts", &json!({"text": "hello"}));
    assert_eq!(publish.status, 201, "{publish:?}");
    assert_eq!(server.get("/v1/users/0/posts").status, 200);
}

fn begin(server: &TestServer, request: &str, body: &[u8]) -> TcpStream {
    let mut stream = server.connect();
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    stream
}

#[test]
fn announced_bodies_that_are_not_sent_take_no_memory() {
    let server = server();
    server.register(&["ada"]);
    let head = |method: &str, path: &str, media: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n\
             Content-Length: {}\r\n\r\n",
            4 << 20
        )
    };
    let mut open = Vec::new();
    for (method, path, media) in [
        ("PUT", "/v1/buckets/0/keys/k", "application/octet-stream"),
        ("POST", "/v1/recognitions", "image/png"),
        ("POST", "/v1/batch", "application/x-ndjson"),
    ] {
        let request = head(method, path, media);
        open.extend((0..20).map(|_| begin(&server, &request, b"x")));
    }
    assert!(held(&server) <= 20, "at most the size of the sent lines");
    other_clients_are_served(&server);
    drop(open);
    nothing_is_held(&server);
}

#[test]
fn requests_larger_than_the_memory_are_refused_and_change_nothing() {
    let server = server();
    server.register(&["ada"]);
    let mut white = Cursor::new(Vec::new());
    GrayImage::new(4_096, 4_096).write_to(&mut white, ImageFormat::Png).unwrap();
    let sample = json!("0".repeat(256));
    let samples = json!({"samples": vec![sample; 1_000]}).to_string();
    let json = [("Content-Type", "application/json")];
    let png = [("Content-Type", "image/png")];
    for (what, answer) in [
        ("a value", server.send("PUT", "/v1/buckets/0/keys/k", &[], &vec![0; 3 << 20])),
        ("an image", server.send("POST", "/v1/recognitions", &png, white.get_ref())),
        ("neighbors", server.send("POST", "/v1/recognitions?k=100", &json, samples.as_bytes())),
    ] {
        answer.assert_error(413, "beyond_memory", what);
    }
    server.get("/v1/buckets/0/keys/k").assert_error(404, "key_not_found", "a value");
    nothing_is_held(&server);
    other_clients_are_served(&server);
}

#[test]
fn unterminated_lines_are_refused_when_they_hold_too_much_memory() {
    let server = server();
    server.register(&["ada"]);
    let head = "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Content-Type: application/x-ndjson\r\nContent-Length: 1000000\r\n\r\n";
    // Each of these bodies is 60 KiB, and a quarter of the memory is for small amounts.
    let mut open: Vec<_> = (0..30).map(|_| begin(&server, head, &[b' '; 60 << 10])).collect();
    let mut refused = false;
    for at in 0..1_000_000 {
        let stream = &mut open[at % 30];
        stream.set_nonblocking(true).unwrap();
        let mut answer = [0; 4_096];
        let read = stream.read(&mut answer).unwrap_or(0);
        refused |= String::from_utf8_lossy(&answer[..read]).contains("overloaded");
        if refused {
            break;
        }
    }
    assert!(refused && held(&server) <= MEMORY / 4);
    drop(open);
    nothing_is_held(&server);
    other_clients_are_served(&server);
    let line = server.batch("{\"op\":\"register\",\"handle\":\"bob\"}\n").lines();
    assert_eq!(line[0]["ok"], true);
}

#[test]
fn readers_of_large_responses_stay_within_the_memory() {
    let server = server();
    server.register(&["ada"]);
    let value = vec![7; 1 << 20];
    assert_eq!(server.send("PUT", "/v1/buckets/0/keys/k", &[], &value).status, 204);
    let request = "GET /v1/buckets/0/keys/k HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Each of these clients sends ten requests and reads nothing. The server handles the second request after the
    // response to the first is sent.
    let open: Vec<_> = (0..20).map(|_| begin(&server, &request.repeat(10), b"")).collect();
    assert!(held(&server) <= MEMORY);
    assert_eq!(server.get("/v1/users/0").status, 200, "small answers have their own memory");
    drop(open);
    nothing_is_held(&server);
    other_clients_are_served(&server);
}

#[test]
fn responses_hold_their_memory_until_their_clients_have_read_them() {
    // This value is longer than what a socket buffers.
    const VALUE: usize = 14 << 20;
    let server = TestServer::start(Access::Open, |_, options| options.request_memory = 128 << 20);
    let path = "/v1/buckets/0/keys/k";
    assert_eq!(server.send("PUT", path, &[], &vec![7; VALUE]).status, 204);
    nothing_is_held(&server);
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut open: Vec<_> = (0..3).map(|_| begin(&server, &request, b"")).collect();
    for stream in &mut open {
        // The response has begun when its first byte arrives.
        stream.read_exact(&mut [0]).unwrap();
    }
    assert!(held(&server) >= 3 * VALUE);
    drop(open);
    nothing_is_held(&server);
}

#[test]
fn who_reads_nothing_leaves_memory_to_other_keys() {
    // This value is longer than what a socket buffers.
    const VALUE: usize = 14 << 20;
    let readers = "reads-slowly";
    let keys = [(readers, [Scope::Read].into_iter().collect()), (KEY, Scopes::ALL)];
    let keys = keys.map(|(key, scopes)| KeyHash::new(key.as_bytes(), scopes));
    let server = TestServer::start(Access::with_keys(keys.to_vec()), |_, options| {
        options.request_memory = 100 << 20;
    });
    let path = "/v1/buckets/0/keys/k";
    let key = format!("Bearer {KEY}");
    let with_key =
        |method, body: &[u8]| server.send(method, path, &[("Authorization", &key)], body);
    assert_eq!(with_key("PUT", &vec![7; VALUE]).status, 204);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {readers}\r\n\r\n"
    );
    let statuses: Vec<_> = (0..6)
        .map(|_| {
            let (mut stream, mut begin) = (begin(&server, &request, b""), [0; 12]);
            stream.read_exact(&mut begin).unwrap();
            (begin[9..] == *b"200", stream)
        })
        .collect();
    // Two of the responses fit in half of the budget of 75 MiB.
    assert_eq!(statuses.iter().filter(|(is_sent, _)| *is_sent).count(), 2);
    assert_eq!(with_key("PUT", &vec![8; VALUE]).status, 204);
    assert_eq!(with_key("GET", b"").body, vec![8; VALUE]);
}

#[test]
fn long_keys_are_listed_within_memory() {
    let server = TestServer::start(Access::Open, |_, options| options.request_memory = 64 << 20);
    server.register(&["ada"]);
    for number in 0..60 {
        let path = format!("/v1/buckets/0/keys/{number}{}", "%00".repeat(19_000));
        assert_eq!(server.send("PUT", &path, &[], b"v").status, 204);
    }
    let mut path = "/v1/buckets/0/keys?limit=100".to_owned();
    let mut keys = 0;
    loop {
        let page = server.get(&path).json();
        keys += page["items"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => path = at(&path, next),
            None => break,
        }
    }
    assert_eq!(keys, 60);
    nothing_is_held(&server);
    other_clients_are_served(&server);
}

#[test]
fn the_longest_response_to_a_change_reserves_no_memory() {
    let server = TestServer::start(Access::Open, |_, options| options.request_memory = 64 << 10);
    // No memory is left for responses, because a quarter of 64 KiB is less than one long head needs.
    let handles: Vec<String> = ('a'..='z')
        .chain('0'..='9')
        .flat_map(|a| ('a'..='e').map(move |b| format!("{a}{b}")))
        .collect();
    for handle in &handles {
        let name = "\u{1f600}".repeat(50);
        let body = json!({"handle": handle, "name": name});
        assert_eq!(server.post("/v1/users", &body).status, 201);
    }
    let mentions: String = handles.iter().take(125).map(|handle| format!("@{handle} ")).collect();
    let post = server.post("/v1/users/0/posts", &json!({"text": mentions}));
    assert_eq!(post.status, 201, "{post:?}");
    assert!(post.body.len() < 16 << 10, "{}", post.body.len());
    let text = json!({"text": "\"\u{1f600}".repeat(250)});
    assert_eq!(server.post("/v1/users/0/posts", &text).status, 201);
    assert_eq!(server.post("/v1/users/0/stories", &text).status, 201);
    let bio = json!({"bio": "\u{1f600}".repeat(500)});
    assert_eq!(server.with_json("PATCH", "/v1/users/0", &[], &bio).status, 200);
}
