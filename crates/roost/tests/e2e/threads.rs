//! Tests of threads with the real binary, across `kill -9`.

use serde_json::{Value, json};

use crate::support::http::{Client, number};
use crate::support::process::Server;

fn reply(client: &mut Client, user: u32, parent: u64, text: &str) -> u64 {
    let body = json!({"text": text, "in_reply_to_id": parent.to_string()});
    number(&client.post(&format!("/v1/users/{user}/posts"), &body).expect(201).json()["id"])
}

fn texts(posts: &Value) -> Vec<String> {
    posts.as_array().unwrap().iter().map(|post| post["text"].as_str().unwrap().to_owned()).collect()
}

fn context(client: &mut Client, post: u64) -> (Vec<String>, Vec<String>) {
    let thread = client.get(&format!("/v1/posts/{post}/context")).expect(200).json();
    (texts(&thread["ancestors"]), texts(&thread["items"]))
}

#[test]
fn threads_edits_and_deletions_are_the_same_after_kill_9() {
    let data = tempfile::tempdir().unwrap();
    // The overlay is small, so that a part of the thread is in the store, and another part only in the log.
    let options = ["--overlay-memory", "64KiB"];
    let server = Server::open(data.path(), &options);
    let mut client = server.client();
    client.register("ada");
    client.register("bob");
    let top = client.publish(0, "top");
    let one = reply(&mut client, 1, top, "1");
    let gone = reply(&mut client, 0, top, "gone");
    let lost = reply(&mut client, 1, gone, "lost");
    for n in 0..400 {
        client.publish(1, &format!("{n} {}", "x".repeat(400)));
    }
    let deepest = reply(&mut client, 0, one, "1.1");
    let edit = json!({"text": "one, edited"});
    let body = serde_json::to_vec(&edit).unwrap();
    let path = format!("/v1/users/1/posts/{one}");
    let headers = [("Content-Type", "application/json")];
    client.send("PATCH", &path, &headers, &body).unwrap().expect(200);
    client.send("DELETE", &format!("/v1/users/0/posts/{gone}"), &[], b"").unwrap().expect(204);
    let check = |client: &mut Client| {
        let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(context(client, top), (vec![], list(&["one, edited", "1.1"])));
        assert_eq!(context(client, deepest), (list(&["top", "one, edited"]), vec![]));
        assert_eq!(context(client, lost), (vec![], vec![]));
        let lost = client.get(&format!("/v1/posts/{lost}")).expect(200).json();
        assert!(lost["in_reply_to_id"].is_null(), "{lost}");
        client.get(&format!("/v1/posts/{gone}/context")).expect(404);
    };
    check(&mut client);
    server.kill();
    for _ in 0..2 {
        let server = Server::open(data.path(), &options);
        check(&mut server.client());
        server.kill();
    }
}
