//! `/v1/users/{user}/friends`

use serde_json::{Value, json};
use testkit::http::at;

use crate::client::TestServer;

/// Ids of a user's friends; checks that the profile has the same number.
fn friends(server: &TestServer, user: &str) -> Vec<String> {
    let page = server.get(&format!("/v1/users/@{user}/friends")).json();
    let items = page["items"].as_array().unwrap();
    let profile = server.get(&format!("/v1/users/@{user}")).json();
    assert_eq!(profile["friend_count"], items.len(), "{user}");
    items.iter().map(|user| user["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn friendship_is_mutual_and_idempotent() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    for (method, path, friendly) in [
        ("PUT", "/v1/users/@ada/friends/1", true),
        ("PUT", "/v1/users/@ada/friends/1", true),
        ("PUT", "/v1/users/1/friends/@ADA", true),
        ("DELETE", "/v1/users/1/friends/0", false),
        ("DELETE", "/v1/users/0/friends/1", false),
        ("PUT", "/v1/users/1/friends/0", true),
    ] {
        let answer = server.send(method, path, &[], b"");
        assert_eq!((answer.status, answer.body.as_slice()), (204, b"".as_slice()), "{path}");
        let (of_ada, of_bob): (&[&str], &[&str]) =
            if friendly { (&["1"], &["0"]) } else { (&[], &[]) };
        assert_eq!(friends(&server, "ada"), of_ada, "{method} {path}");
        assert_eq!(friends(&server, "bob"), of_bob, "{method} {path}");
    }
    assert_eq!(server.totals(), (2, 0, 0), "friends do not follow");
}

#[test]
fn friendships_with_oneself_and_with_unknown_users_are_refused() {
    let server = TestServer::open();
    server.register(&["ada"]);
    for (path, status, code) in [
        ("/v1/users/0/friends/@ada", 422, "self_friend"),
        ("/v1/users/0/friends/1", 404, "user_not_found"),
        ("/v1/users/@bob/friends/0", 404, "user_not_found"),
        ("/v1/users/0/friends/bob", 400, "bad_request"),
        ("/v1/users/0/friends/@b-b", 422, "bad_handle"),
        ("/v1/users/0/friends/@ada?as=0", 400, "bad_request"),
    ] {
        for method in ["PUT", "DELETE"] {
            server.send(method, path, &[], b"").assert_error(status, code, path);
        }
    }
    assert_eq!(friends(&server, "ada"), [""; 0]);
}

#[test]
fn friends_are_read_in_both_directions_by_the_links() {
    let server = TestServer::open();
    let mut lines = String::new();
    for n in 0..25 {
        lines += &format!("{{\"op\":\"register\",\"handle\":\"u{n}\"}}\n");
    }
    for n in 1..25 {
        lines += &format!("{{\"op\":\"befriend\",\"user\":{n},\"other\":\"@u0\"}}\n");
    }
    lines += "{\"op\":\"unfriend\",\"user\":0,\"other\":24}\n";
    let results = server.batch(&lines).lines();
    assert!(results.len() == 50 && results.iter().all(|result| result["ok"] == true));
    let path = "/v1/users/@u0/friends?limit=10";
    let first = server.get(path).json();
    assert_eq!(first["items"][0], json!({"id": "1", "handle": "u1", "name": ""}));
    let ids = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|user| user["id"].as_str().unwrap().parse().unwrap()).collect::<Vec<u64>>()
    };
    let (mut page, mut pages) = (first, Vec::new());
    loop {
        pages.push(ids(&page));
        let Some(next) = page["next"].as_str() else { break };
        page = server.get(&at(path, next)).json();
    }
    assert_eq!(pages, [(1..11).collect::<Vec<_>>(), (11..21).collect(), (21..24).collect()]);
    let mut back = Vec::new();
    while let Some(prev) = page["prev"].as_str() {
        page = server.get(&at(path, prev)).json();
        back.push(ids(&page));
    }
    assert_eq!(back, [(11..21).collect::<Vec<_>>(), (1..11).collect()]);
    assert_eq!(ids(&server.get("/v1/users/3/friends").json()), [0]);
    assert_eq!(ids(&server.get("/v1/users/24/friends").json()), [0u64; 0]);
    server.get("/v1/users/25/friends").assert_error(404, "user_not_found", "no such user");
}
