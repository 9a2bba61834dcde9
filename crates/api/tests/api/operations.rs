//! Health, readiness, metrics, the API's own description, overload and shutdown.

use std::io::{Read as _, Write as _};

use serde_json::json;

use crate::client::TestServer;

#[test]
fn metrics_count_requests_by_route_and_status() {
    let server = TestServer::open();
    server.register(&["ada"]);
    server.get("/v1/users/0");
    server.get("/v1/users/@ada");
    server.get("/v1/users/7");
    server.get("/nowhere");
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    for line in [
        "roost_http_requests_total{method=\"POST\",route=\"/v1/users\",status=\"201\"} 1",
        "roost_http_requests_total{method=\"GET\",route=\"/v1/users/{user}\",status=\"200\"} 2",
        "roost_http_requests_total{method=\"GET\",route=\"/v1/users/{user}\",status=\"404\"} 1",
        "roost_http_requests_total{method=\"*\",route=\"unknown path\",status=\"404\"} 1",
        "roost_users 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    let bucket = "roost_http_request_duration_seconds_bucket{le=\"+Inf\",method=\"GET\",\
        route=\"/v1/users/{user}\"} 3";
    assert!(text.lines().any(|known| known == bucket), "{bucket} is not in\n{text}");
    for name in ["process_resident_memory_bytes ", "process_cpu_seconds_total ", "roost_log_bytes "]
    {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line[name.len()..].parse::<f64>().unwrap() >= 0.0);
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_documentation_page_loads_the_description() {
    let server = TestServer::open();
    assert_eq!(server.get("/docs").header("location"), Some("/docs/"));
    let page = server.get("/docs/");
    assert_eq!(page.header("content-type"), Some("text/html"));
    assert!(String::from_utf8(page.body).unwrap().contains("<title>roost API</title>"));
    for file in ["swagger-ui.css", "swagger-ui-bundle.js"] {
        assert_eq!(server.get(&format!("/docs/{file}")).status, 200, "{file}");
    }
    let start = server.get("/docs/swagger-initializer.js").body;
    assert!(String::from_utf8(start).unwrap().contains("/v1/openapi.json"));
    server.get("/docs/nothing.js").assert_error(404, "not_found", "no such file");
}

#[test]
fn the_history_says_what_it_holds() {
    let server = TestServer::open();
    let history = server.get("/metrics/history").json();
    assert_eq!(history["version"], env!("CARGO_PKG_VERSION"));
    assert!(history["uptime_s"].is_u64() && history["samples"].is_array());
    assert!(history["columns"].as_array().unwrap().contains(&json!("server_errors_per_s")));
    let later = server.get(&format!("/metrics/history?after={}", u64::MAX)).json();
    assert_eq!(later["samples"], json!([]));
    for query in ["after=", "after=x", "before=1", "after=1&after=2"] {
        let refused = server.get(&format!("/metrics/history?{query}"));
        refused.assert_error(400, "bad_request", query);
    }
    assert_eq!(TestServer::with_key().send("GET", "/metrics/history", &[], b"").status, 401);
}

#[test]
fn the_description_is_sent_compressed_and_once() {
    let server = TestServer::with_key();
    for path in ["/v1/openapi.json", "/docs/", "/docs/swagger-ui-bundle.js"] {
        let plain = server.get(path);
        let packed = server.send("GET", path, &[("Accept-Encoding", "gzip")], b"");
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        assert!(packed.body.len() < 500_000 && packed.body.len() < plain.body.len(), "{path}");
        let tag = plain.header("etag").unwrap();
        let again = server.send("GET", path, &[("If-None-Match", tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
}

#[test]
fn too_many_changes_at_a_time_are_answered_with_503_and_taken_again_afterwards() {
    let server = TestServer::start(edge::Access::Open, |node, _| {
        node.queue_commands_max = 1;
        node.durability = node::Durability::Always;
    });
    server.register(&["ada"]);
    let body = "{\"text\":\"x\"}";
    let one = format!(
        "POST /v1/users/0/posts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // Rounds of simultaneous posts, until one is refused.
    let mut clients: Vec<_> = (0..64).map(|_| server.connect()).collect();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..200 {
        for client in &mut clients {
            client.write_all(one.as_bytes()).unwrap();
        }
        for client in &mut clients {
            let mut answer = vec![0; 4_096];
            let length = client.read(&mut answer).unwrap();
            let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
            if answer.starts_with("HTTP/1.1 201") {
                taken += 1;
            } else {
                assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
                let after = |secs: u32| answer.contains(&format!("retry-after: {secs}\r\n"));
                assert!((1..=3).any(after), "{answer}");
                assert!(answer.contains("{\"error\":\"overloaded\""), "{answer}");
                refused += 1;
            }
        }
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0 && taken > 0, "{taken} taken, {refused} refused");
    server.publish("ada", "afterwards");
    assert_eq!(server.totals().1, taken + 1, "refused posts do not exist");
}

#[test]
fn a_request_in_progress_at_shutdown_is_finished_and_the_connection_closed() {
    let mut server = TestServer::open();
    let mut stream = server.connect();
    let body = "{\"handle\":\"ada\"}";
    write!(
        stream,
        "POST /v1/users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        body.len()
    )
    .unwrap();
    let mut begun = [0; 25];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 100 Continue\r\n\r\n", "the handler waits for the body");
    let finished = std::thread::spawn(move || {
        write!(stream, "{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    server.stop();
    let answer = finished.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(server.totals().0, 1);
    assert!(std::net::TcpStream::connect(server.address).is_err(), "the port is closed");
}

#[test]
fn a_closed_node_refuses_changes_and_still_answers_reads() {
    let server = TestServer::open();
    server.register(&["ada"]);
    server.node.close();
    let answer = server.post("/v1/users", &json!({"handle": "bob"}));
    answer.assert_error(503, "stopping", "closed");
    assert!(["1", "2", "3"].contains(&answer.header("retry-after").unwrap()));
    let line = server.batch("{\"op\":\"register\",\"handle\":\"bob\"}\n").lines();
    assert_eq!((line.len(), &line[0]["error"]), (1, &json!("stopping")));
    assert_eq!(server.get("/v1/users/@ada").status, 200);
}

#[test]
fn responses_are_not_cached_and_head_is_get_without_a_body() {
    let server = TestServer::open();
    let get = server.get("/v1/users");
    assert_eq!(get.header("cache-control"), Some("no-store"));
    let head = server.send("HEAD", "/v1/users", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), get.header("content-length"));
}
