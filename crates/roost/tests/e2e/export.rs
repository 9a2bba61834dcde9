//! Tests of exports of running and stopped servers and of backups, and of imports of these and of handwritten files.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::http::{Client, number};
use crate::support::process::{Ended, Process, Server, roost, run, serve};

fn path(text: &Path) -> &str {
    text.to_str().unwrap()
}

fn done(arguments: &[&str]) -> Ended {
    let ended = run(arguments);
    assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:#?}");
    ended
}

fn refused(arguments: &[&str]) -> String {
    let ended = run(arguments);
    assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {ended:#?}");
    assert_eq!(ended.out, "", "{arguments:?}");
    ended.err
}

/// All lines of an export except the first, which contains the time of the export.
fn facts(file: &Path) -> String {
    let lines = fs::read_to_string(file).unwrap();
    assert!(lines.starts_with(r#"{"export":{"format":1,"roost":""#), "{lines}");
    lines.split_once('\n').unwrap().1.to_owned()
}

/// Adds data of every kind to a server.
fn fill(client: &mut Client) {
    let [ann, bob, cyd] = ["ann", "bob", "cyd"].map(|handle| client.register(handle));
    client.follow(ann, bob);
    client.put(&format!("/v1/users/{ann}/friends/{bob}")).expect(204);
    for at in 0..30 {
        client.publish([ann, bob][at % 2], &format!("post {at} for @cyd \u{1F600} \"{at}\""));
    }
    let post = client.publish(bob, "the first of a thread");
    let reply = json!({"text": "the second", "in_reply_to_id": post.to_string()});
    client.post(&format!("/v1/users/{ann}/posts"), &reply).expect(201);
    let story = json!({"text": "a story", "ttl_s": 600_000});
    let story = client.post(&format!("/v1/users/{bob}/stories"), &story).expect(201).json();
    let story = number(&story["id"]);
    client.put(&format!("/v1/users/{ann}/viewed_stories/{story}")).expect(204);
    let sample = json!({"set": "mine", "label": "seven", "sample": "0f".repeat(128)});
    client.post("/v1/samples", &sample).expect(201);
    client.put("/v1/buckets/b").expect(204);
    client.send("PUT", "/v1/buckets/b/keys/k?ttl_s=600000", &[], &[0, 255, 7]).unwrap().expect(204);
    client.send("PUT", "/v1/buckets/0/keys/text", &[], b"plain").unwrap().expect(204);
    client.send("DELETE", &format!("/v1/users/{cyd}"), &[], &[]).unwrap().expect(204);
}

/// Responses of a server that show everything that [`fill`] adds.
fn answers(client: &mut Client) -> Vec<Value> {
    let mut answers = Vec::new();
    for user in ["@ann", "@bob"] {
        for list in ["", "/timeline", "/posts", "/following", "/followers", "/friends", "/mentions"]
        {
            let path = format!("/v1/users/{user}{list}");
            answers.push(client.get(&path).expect(200).json());
        }
        let path = format!("/v1/users/{user}/timeline/stories");
        answers.push(client.get(&path).expect(200).json());
    }
    for post in client.all("/v1/users/@bob/posts") {
        let path = format!("/v1/posts/{}/context", number(&post["id"]));
        answers.push(client.get(&path).expect(200).json());
    }
    for story in client.all("/v1/users/@bob/stories") {
        let path = format!("/v1/users/@bob/stories/{}/views", number(&story["id"]));
        answers.push(client.get(&path).expect(200).json());
    }
    for key in ["b/keys/k", "0/keys/text"] {
        let answer = client.get(&format!("/v1/buckets/{key}")).expect(200);
        answers.push(json!([answer.header("etag"), answer.header("x-expires-at"), answer.text()]));
    }
    let drawing = json!({"sample": "0f".repeat(128)});
    answers.push(client.post("/v1/recognitions?set=mine&k=1", &drawing).expect(200).json());
    client.get("/v1/users/@cyd").expect(404);
    let taken = client.post("/v1/users", &json!({"handle": "cyd"}));
    assert_eq!(taken.expect(409).json()["error"], "handle_taken");
    answers
}

#[test]
fn what_is_imported_answers_like_what_was_exported_and_exports_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["data", "backup", "new", "of-server", "of-backup", "of-data", "of-new"];
    let [data, backup, new, of_server, of_backup, of_data, of_new] =
        names.map(|name| folder.path().join(name));
    let server = Server::open(&data, &[]);
    let mut client = server.client();
    fill(&mut client);
    let before = answers(&mut client);
    let url = format!("http://{}", server.address);
    done(&["backup", "--server", &url, "--out", path(&backup)]);
    let said = done(&["export", "--server", &url, "--out", path(&of_server)]).err;
    assert!(
        said.contains(
            "exported 3 users, 0 blocks, 0 mutes, 0 notes, 0 lists, 1 follows, 0 requests, 1 friendships, 32 posts with 0 reactions and 0 votes, 0 scheduled posts, 0 pictures, 1 stories"
        ),
        "{said}"
    );
    assert!(refused(&["export", "--data", path(&data)]).contains("another process uses"));
    server.stop();
    done(&["export", "--backup", path(&backup), "--out", path(&of_backup)]);
    done(&["export", "--data", path(&data), "--out", path(&of_data)]);
    assert_eq!(facts(&of_server), facts(&of_data));
    assert_eq!(facts(&of_backup), facts(&of_data));
    let mode = fs::metadata(&of_data).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    done(&["import", path(&of_data), "--data", path(&new)]);
    done(&["verify", "--data", path(&new)]);
    done(&["export", "--data", path(&new), "--out", path(&of_new)]);
    assert_eq!(facts(&of_new), facts(&of_data));
    let server = Server::open(&new, &[]);
    let mut client = server.client();
    assert_eq!(answers(&mut client), before);
    // The new server assigns ids after the last imported one.
    let post = client.publish(0, "one more");
    assert_eq!(number(&client.all("/v1/users/0/posts")[0]["id"]), post);
    assert_eq!(client.register("dan"), 3);
    server.stop();
    done(&["verify", "--data", path(&new)]);
    let mut left: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut expect = vec![data, backup, new, of_server, of_backup, of_data, of_new];
    left.sort();
    expect.sort();
    assert_eq!(left, expect, "no temporary directory is left");
}

#[test]
fn the_file_in_the_documents_is_imported_through_a_pipe_and_served() {
    let docs = include_str!("../../../../docs/import.md");
    let file = docs.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut import = roost(["import", "-", "--data", path(&data)]);
    let mut import = import.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(file.as_bytes()).unwrap();
    let ended = import.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(
        said.contains("imported 4 users, 1 blocks, 1 mutes, 0 notes, 0 lists, 1 follows, 0 requests, 1 friendships, 3 posts"),
        "{said}"
    );
    let server = Server::open(&data, &[]);
    let mut client = server.client();
    let user = client.get("/v1/users/@ann").expect(200).json();
    assert_eq!(user["created_at"], "2025-05-01T08:00:00.000Z");
    assert_eq!((&user["name"], &user["post_count"]), (&json!("Ann"), &json!(2)));
    let texts: Vec<Value> =
        client.all("/v1/users/@bob/mentions").iter().map(|post| post["text"].clone()).collect();
    assert_eq!(texts, ["A reply", "Hello @bob!"]);
    let thread = client.get("/v1/posts/176996273356800000/context").expect(200).json();
    assert_eq!(thread["items"][0]["text"], "A reply");
    assert_eq!(client.all("/v1/users/@bob/timeline/stories")[0]["seen"], true);
    assert_eq!(client.get("/v1/buckets/settings/keys/color").expect(200).text(), "green");
    assert_eq!(client.get("/v1/buckets/0/keys/binary").expect(200).text(), "\0\u{fffd}");
    client.get("/v1/users/@cyd").expect(404);
    server.stop();
    done(&["verify", "--data", path(&data)]);
}

#[test]
fn a_population_can_be_imported() {
    let folder = tempfile::tempdir().unwrap();
    let [file, data, exported] = ["file", "data", "exported"].map(|name| folder.path().join(name));
    let made = done(&["population", "--users", "300", "--import", "--out", path(&file)]).err;
    let said = done(&["import", path(&file), "--data", path(&data)]).out;
    let follows = said.split(" follows").next().unwrap().rsplit(' ').next().unwrap();
    assert!(made.starts_with(&format!("300 users with {follows} follows")), "{made} {said}");
    done(&["export", "--data", path(&data), "--out", path(&exported)]);
    let of = |file: &Path| -> Vec<String> {
        let lines = fs::read_to_string(file).unwrap();
        let follows = lines.lines().filter(|line| line.starts_with(r#"{"relation""#));
        follows.filter(|line| !line.contains("[]")).map(str::to_owned).collect()
    };
    assert_eq!(of(&file), of(&exported));
}

#[test]
fn a_wrong_line_ends_an_import_with_its_number_and_leaves_nothing_to_serve() {
    let folder = tempfile::tempdir().unwrap();
    let [file, data, other] = ["file", "data", "other"].map(|name| folder.path().join(name));
    let first = r#"{"export":{"format":1}}"#;
    let good = format!("{first}\n{{\"user\":{{\"handle\":\"ann\"}}}}\n{{\"end\":{{}}}}\n");
    fs::write(&file, format!("{first}\n{{\"user\":{{\"handle\":\"a n n\"}}}}\n")).unwrap();
    let error = refused(&["import", path(&file), "--data", path(&data)]);
    assert!(error.contains("line 2: a handle is 1 to 30 characters"), "{error}");
    let ended = Process::start(serve(&data, &[]).arg("--open")).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    assert!(ended.err.contains("did not finish"), "{ended:#?}");
    fs::write(&file, &good).unwrap();
    let error = refused(&["import", path(&file), "--data", path(&data)]);
    assert!(error.contains("did not finish"), "{error}");
    assert!(refused(&["export", "--data", path(&data)]).contains("did not finish"));
    // The import does not change a directory that is not empty.
    done(&["import", path(&file), "--data", path(&other)]);
    let error = refused(&["import", path(&file), "--data", path(&other)]);
    assert!(error.contains("not empty"), "{error}");
    done(&["verify", "--data", path(&other)]);
    fs::write(&file, &good[..good.len() - 12]).unwrap();
    let error = refused(&["import", path(&file), "--data", path(&folder.path().join("cut"))]);
    assert!(error.contains("ends after line 2") && error.contains("incomplete"), "{error}");
    let error = refused(&["export", "--data", path(&folder.path().join("none"))]);
    assert!(error.contains("none"), "{error}");
    assert!(!folder.path().join("none").exists());
}
