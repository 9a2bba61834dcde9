//! `/v1/batch`

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::json;

use crate::client::TestServer;

#[test]
fn results_are_in_order_and_lines_see_changes_of_earlier_lines() {
    let server = TestServer::open();
    let lines = [
        r#"{"op":"register","handle":"ada","name":"Ada"}"#,
        r#"{"op":"register","handle":"bob"}"#,
        r#"{"op":"follow","user":"@ada","other":"@bob"}"#,
        r#"{"op":"post","user":"@bob","text":"hi @ada"}"#,
        r#"{"op":"register","handle":"ADA"}"#,
        "",
        "  \r",
        r#"{"op":"follow","user":0,"other":"0"}"#,
        r#"{"op":"follow","user":0,"other":9}"#,
        "nonsense",
        r#"{"op":"unfollow","user":"0","other":1}"#,
        r#"{"op":"delete_post","user":0,"id":1}"#,
    ]
    .join("\r\n");
    let answer = server.batch(&lines);
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let results = answer.lines();
    let post = results[3]["id"].clone();
    let short = |result: &serde_json::Value| {
        let code = result["error"].as_str().unwrap_or("-").to_owned();
        (result["ok"].as_bool().unwrap(), code, result["line"].as_u64())
    };
    let expect = [
        (true, "-", None),
        (true, "-", None),
        (true, "-", None),
        (true, "-", None),
        (false, "handle_taken", None),
        (false, "self_follow", None),
        (false, "user_not_found", None),
        (false, "bad_json", Some(10)),
        (true, "-", None),
        (false, "post_not_found", None),
    ];
    let shown: Vec<_> = results.iter().map(short).collect();
    let shown: Vec<_> = shown.iter().map(|(ok, code, line)| (*ok, code.as_str(), *line)).collect();
    assert_eq!(shown, expect);
    assert_eq!(results[0], json!({"ok": true, "id": "0"}));
    assert_eq!(results[2], json!({"ok": true}));
    assert_eq!(server.texts("/v1/users/@ada/mentions"), ["hi @ada"]);
    assert_eq!(server.get(&format!("/v1/posts/{}", post.as_str().unwrap())).status, 200);
    assert_eq!(server.totals(), (2, 1, 0));
}

#[test]
fn many_lines_are_processed_in_order_across_frames_and_chunks() {
    let server = TestServer::open();
    let mut lines = String::new();
    for n in 0..7_000 {
        lines += &format!("{{\"op\":\"register\",\"handle\":\"user_{n}\"}}\n");
        if n % 1_000 == 999 {
            lines += "wrong\n";
        }
    }
    let results = server.batch(&lines).lines();
    assert_eq!(results.len(), 7_007);
    let mut expected = 0;
    for (index, result) in results.iter().enumerate() {
        if index % 1_001 == 1_000 {
            assert_eq!(result["line"], index + 1);
        } else {
            assert_eq!(result["id"], expected.to_string());
            expected += 1;
        }
    }
    assert_eq!(server.totals().0, 7_000);
}

#[test]
fn each_line_is_answered_before_the_next_is_sent() {
    let server = TestServer::open();
    let mut stream = server.connect();
    let head = "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
        Content-Type: application/x-ndjson\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    for n in 0..3 {
        let line = format!("{{\"op\":\"register\",\"handle\":\"user_{n}\"}}\n");
        write!(stream, "{:x}\r\n{line}\r\n", line.len()).unwrap();
        let answer = answers.find_map(|line| Some(line.unwrap()).filter(|l| l.starts_with('{')));
        assert_eq!(answer.unwrap(), format!("{{\"ok\":true,\"id\":\"{n}\"}}"));
    }
    write!(stream, "0\r\n\r\n").unwrap();
    assert_eq!(answers.find(|line| line.as_ref().unwrap() == "0").unwrap().unwrap(), "0");
}

#[test]
fn a_line_that_is_too_long_ends_the_batch_and_keeps_earlier_changes() {
    let server = TestServer::open();
    let register = |handle: &str| format!("{{\"op\":\"register\",\"handle\":\"{handle}\"}}\n");
    let long = "x".repeat(70_000);
    let results = server.batch(&[register("ada"), long, register("bob")].concat()).lines();
    assert_eq!(results[0], json!({"ok": true, "id": "0"}));
    assert_eq!((&results[1]["error"], &results[1]["line"]), (&json!("line_too_long"), &json!(2)));
    assert_eq!(results.len(), 2);
    assert_eq!(server.totals().0, 1);
}

#[test]
fn a_line_that_follows_many_is_told_which_of_its_fields_is_wrong() {
    let server = TestServer::open();
    server.register(&["ada"]);
    for (fields, field) in [
        (r#""user":"0","others":["9"]"#, "others"),
        (r#""user":"0","others":["0"]"#, "others"),
        (r#""user":"0","others":["@nobody"],"idempotency_key":"k""#, "others"),
        (r#""user":"9","others":["0"]"#, "user"),
        (r#""user":"0","other":"9""#, "other"),
    ] {
        let results = server.batch(&format!("{{\"op\":\"follow\",{fields}}}")).lines();
        assert_eq!((results.len(), &results[0]["field"]), (1, &json!(field)), "{fields}");
    }
}

#[test]
fn a_last_line_without_an_end_counts_and_an_empty_batch_has_no_results() {
    let server = TestServer::open();
    assert_eq!(server.batch("{\"op\":\"register\",\"handle\":\"ada\"}").lines().len(), 1);
    assert_eq!(server.batch("").body, b"");
    assert_eq!(server.batch("\n\n").body, b"");
    assert_eq!(server.totals().0, 1);
}

#[test]
fn a_line_with_a_repeated_key_is_replayed_and_a_key_for_the_batch_is_refused() {
    let server = TestServer::open();
    server.register(&["ada"]);
    let line = |op: &str| {
        format!("{{\"op\":\"{op}\",\"user\":\"@ada\",\"text\":\"x\",\"idempotency_key\":\"k\"}}\n")
    };
    for op in ["post", "post_story"] {
        let results = server.batch(&line(op).repeat(3)).lines();
        assert!(results.len() == 3 && results.iter().all(|result| *result == results[0]), "{op}");
    }
    assert_eq!(server.totals().1, 1);
    assert_eq!(server.texts("/v1/users/@ada/stories"), ["x"]);
    let other = line("post_story").replace("\"x\"", "\"y\"");
    assert_eq!(server.batch(&other).lines()[0]["error"], "idempotency_key_reused");
    let headers = [("Content-Type", "application/x-ndjson"), ("Idempotency-Key", "k")];
    let answer = server.send("POST", "/v1/batch", &headers, line("post").as_bytes());
    answer.assert_error(422, "idempotency_key_not_supported", "whole batch");
    // A separate request for the same change, with a handle or an id, returns the first result.
    let headers = [("Idempotency-Key", "k")];
    let again = server.with_json("POST", "/v1/users/0/posts", &headers, &json!({"text": "x"}));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(server.totals().1, 1);
}

#[test]
fn a_batch_larger_than_the_queue_waits_for_the_queue() {
    let server = TestServer::start(edge::Access::Open, |node, _| node.queue_commands_max = 8);
    let lines: String =
        (0..5_000).map(|n| format!("{{\"op\":\"register\",\"handle\":\"u{n}\"}}\n")).collect();
    let results = server.batch(&lines).lines();
    assert_eq!(results.len(), 5_000);
    assert!(results.iter().all(|result| result["ok"] == true));
}

#[test]
fn a_line_with_a_key_may_name_a_user_registered_by_the_same_batch() {
    let server = TestServer::open();
    let lines = [
        r#"{"op":"register","handle":"ada","idempotency_key":"k"}"#,
        r#"{"op":"post","user":"@ada","text":"x","idempotency_key":"k"}"#,
        r#"{"op":"post","user":"@nobody","text":"x","idempotency_key":"k"}"#,
        "nonsense",
        r#"{"op":"post","user":0,"text":"x","idempotency_key":"k"}"#,
        r#"{"op":"post","user":"0","text":"y","idempotency_key":"k"}"#,
    ]
    .join("\n");
    let first = server.batch(&lines).lines();
    let again = server.batch(&lines).lines();
    assert_eq!(first, again);
    let errors: Vec<_> = first.iter().map(|line| line["error"].as_str().unwrap_or("-")).collect();
    assert_eq!(errors, ["-", "-", "user_not_found", "bad_json", "-", "idempotency_key_reused"]);
    assert_eq!(first[1]["id"], first[4]["id"], "by handle and by number");
    assert_eq!(server.totals(), (1, 1, 0));
}
