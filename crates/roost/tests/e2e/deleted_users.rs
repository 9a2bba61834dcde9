//! Tests of the deletion of a user with very many rows, with `kill -9` while the rows are removed.

use serde_json::{Value, json};

use crate::support::http::Client;
use crate::support::process::Server;

const POSTS: usize = 40_000;
const FOLLOWERS: u32 = 1_000;
/// Maximum number of kills while rows are removed.
const KILLS: usize = 20;

fn filled(client: &mut Client) -> u64 {
    client.register("ada");
    client.register("bob");
    let commands = |range: std::ops::Range<u32>| {
        let of = |n: u32| {
            [
                json!({"op": "register", "handle": format!("u{n}")}),
                json!({"op": "follow", "user": format!("@u{n}"), "other": "@ada"}),
            ]
        };
        range.flat_map(of).collect::<Vec<Value>>()
    };
    client.batch(&commands(2..2 + FOLLOWERS));
    for (user, other) in [(0, 1), (1, 0), (1, 2)] {
        client.follow(user, other);
    }
    client.put("/v1/users/0/friends/1").expect(204);
    let story = json!({"text": "a story", "ttl_s": 3_600});
    client.post("/v1/users/0/stories", &story).expect(201);
    let post = client.publish(0, "the first");
    let text = format!("@bob {}", "x".repeat(100));
    let posts = vec![json!({"op": "post", "user": "@ada", "text": text}); POSTS];
    posts.chunks(2_000).for_each(|posts| drop(client.batch(posts)));
    client.publish(1, "bob's own");
    post
}

/// Checks that nothing shows the user, at any stage of the removal.
fn check(client: &mut Client, post: u64) {
    for path in ["/v1/users/0", "/v1/users/@ada", "/v1/users/@ada/posts"] {
        client.get(path).expect(404);
    }
    client.get(&format!("/v1/posts/{post}")).expect(404);
    let texts = client.all("/v1/users/@bob/timeline");
    let texts: Vec<&str> = texts.iter().map(|post| post["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["bob's own"]);
    for list in ["followers", "friends", "mentions?limit=50", "timeline/stories"] {
        let page = client.get(&format!("/v1/users/@bob/{list}")).expect(200).json();
        assert_eq!(page["items"], json!([]), "{list}");
    }
    for (user, counts) in [("bob", [0, 1, 0]), ("u2", [1, 0, 0]), ("u999", [0, 0, 0])] {
        let profile = client.get(&format!("/v1/users/@{user}")).expect(200).json();
        let found =
            ["follower_count", "following_count", "friend_count"].map(|name| &profile[name]);
        assert_eq!(found, counts, "{user}");
    }
    let metrics = client.get("/metrics").expect(200).text();
    for (name, value) in [("users", FOLLOWERS + 1), ("posts", 1), ("follows", 1)] {
        let line = format!("\nroost_{name} {value}\n");
        assert!(metrics.contains(&line), "{line:?}: {metrics}");
    }
}

fn erasing(client: &mut Client) -> bool {
    let metrics = client.get("/metrics").expect(200).text();
    assert!(metrics.contains("\nroost_users_erasing "), "{metrics}");
    !metrics.contains("\nroost_users_erasing 0\n")
}

#[test]
fn a_user_with_very_many_rows_stays_deleted_through_kill_9_until_no_row_is_left() {
    let data = tempfile::tempdir().unwrap();
    let options = ["--overlay-memory", "256KiB"];
    let mut server = Server::open(data.path(), &options);
    let mut client = server.client();
    let post = filled(&mut client);
    let deleted = client.send("DELETE", "/v1/users/@ada", &[], b"").unwrap();
    assert_eq!(deleted.status, 204);
    let mut kills = 0;
    for _ in 0..KILLS {
        server.kill();
        server = Server::open(data.path(), &options);
        let mut client = server.client();
        kills += usize::from(erasing(&mut client));
        check(&mut client, post);
    }
    println!("{kills} of {KILLS} restarts while rows were left");
    assert!(kills > 0, "the test tests less than it says");
    let mut client = server.client();
    while erasing(&mut client) {}
    check(&mut client, post);
    client.send("DELETE", "/v1/users/0", &[], b"").unwrap().expect(404);
    client.post("/v1/users", &json!({"handle": "ada"})).expect(409);
    server.stop();
    check(&mut Server::open(data.path(), &options).client(), post);
}
