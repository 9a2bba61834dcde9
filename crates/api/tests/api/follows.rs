//! `/v1/users/{user}/following` and `/followers`

use serde_json::{Value, json};
use testkit::http::at;

use crate::client::TestServer;

#[test]
fn following_and_unfollowing_are_idempotent() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    let path = "/v1/users/@ada/following/1";
    for (method, follows) in [("PUT", 1), ("PUT", 1), ("DELETE", 0), ("DELETE", 0)] {
        let answer = server.send(method, path, &[], b"");
        let relation = server.get("/v1/users/@ada/relations/@bob");
        assert_eq!(relation.json()["following"], follows > 0);
        match method {
            "PUT" => assert_eq!((answer.status, &answer.body), (200, &relation.body)),
            _ => assert_eq!((answer.status, answer.body.as_slice()), (204, b"".as_slice())),
        }
        assert_eq!(server.totals().2, follows, "{method}");
    }
}

#[test]
fn follows_of_oneself_and_of_unknown_users_are_refused() {
    let server = TestServer::open();
    server.register(&["ada"]);
    for (path, status, code) in [
        ("/v1/users/0/following/@ada", 422, "self_follow"),
        ("/v1/users/0/following/1", 404, "user_not_found"),
        ("/v1/users/@bob/following/0", 404, "user_not_found"),
    ] {
        for method in ["PUT", "DELETE"] {
            server.send(method, path, &[], b"").assert_error(status, code, path);
        }
    }
    assert_eq!(server.totals(), (1, 0, 0));
}

fn ids(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|user| user["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn followers_are_read_in_both_directions_by_the_links() {
    let server = TestServer::open();
    let mut lines = String::new();
    for n in 0..25 {
        lines += &format!("{{\"op\":\"register\",\"handle\":\"u{n}\"}}\n");
    }
    for n in 1..25 {
        lines += &format!("{{\"op\":\"follow\",\"user\":{n},\"other\":0}}\n");
    }
    assert_eq!(server.batch(&lines).lines().len(), 49);
    let (mut path, mut pages) = (String::from("/v1/users/@u0/followers?limit=10"), Vec::new());
    let first = server.get(&path).json();
    assert_eq!(first["items"][0], json!({"id": "1", "handle": "u1", "name": ""}));
    loop {
        let page = server.get(&path).json();
        pages.push(ids(&page));
        match page["next"].as_str() {
            Some(next) => path = at(&path, next),
            None => break,
        }
    }
    assert_eq!(pages, [(1..11).collect::<Vec<_>>(), (11..21).collect(), (21..25).collect()]);
    let mut back = Vec::new();
    while let Some(prev) = server.get(&path).json()["prev"].as_str() {
        path = at(&path, prev);
        back.push(ids(&server.get(&path).json()));
    }
    assert_eq!(back, [(11..21).collect::<Vec<_>>(), (1..11).collect()]);
    assert_eq!(ids(&server.get("/v1/users/3/following").json()), [0]);
    assert_eq!(ids(&server.get("/v1/users/3/followers").json()), [0u64; 0]);
    server.get("/v1/users/25/followers").assert_error(404, "user_not_found", "no such user");
}

#[test]
fn a_locked_user_is_asked_and_answers() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    let locked = server.with_json("PATCH", "/v1/users/@ada", &[], &json!({"locked": true}));
    assert_eq!(locked.json()["locked"], true);
    let send = |method: &str, path: &str| server.send(method, path, &[], b"");
    let list = |path: &str| ids(&server.get(path).json());
    for user in ["bob", "cyd"] {
        let path = format!("/v1/users/@{user}/following/@ada");
        let relation = send("PUT", &path).json();
        assert_eq!(
            (&relation["following"], &relation["requested"]),
            (&json!(false), &json!(true)),
            "{user}"
        );
    }
    assert_eq!(list("/v1/users/@ada/follow_requests"), [1, 2]);
    assert_eq!(list("/v1/users/@ada/followers"), [0u64; 0]);
    assert_eq!(send("PUT", "/v1/users/@ada/follow_requests/@cyd").status, 204);
    assert_eq!(send("DELETE", "/v1/users/@ada/follow_requests/1").status, 204);
    assert_eq!(list("/v1/users/@ada/follow_requests"), [0u64; 0]);
    assert_eq!(list("/v1/users/@ada/followers"), [2]);
    for method in ["PUT", "DELETE"] {
        for other in ["@bob", "@cyd", "@ada"] {
            let answer = send(method, &format!("/v1/users/@ada/follow_requests/{other}"));
            answer.assert_error(404, "request_not_found", other);
        }
    }
}
