//! Tests of pictures that apps upload to one node and read from others.

use std::io;
use std::time::Instant;

use serde_json::json;
use testkit::http::{Answer, Client};
use testkit::nats::nats;
use testkit::process::{Server, run};
use testkit::{PATIENCE, gif};

use super::{World, text};

/// Creates an account on a node. Returns the token of an app.
pub(crate) fn log_in(world: &World, node: usize, handle: &str) -> String {
    let made = run(["account", "create", handle, "--data", text(&world.data(node))]);
    assert!(made.status.success(), "{made:#?}");
    let mut client = world.client(node);
    let app = json!({
        "client_name": "An app", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob", "scopes": "read write",
    });
    let answer = client.post("/api/v1/apps", &app).expect(200);
    answer.header("roost-position").expect("the API for apps has positions, too");
    let app = answer.json();
    let wanted = json!({
        "grant_type": "password", "scope": "read write", "username": handle, "password": made.out.trim(),
        "client_id": app["client_id"], "client_secret": app["client_secret"],
    });
    let token = client.post("/oauth/token", &wanted).expect(200).json();
    token["access_token"].as_str().unwrap().to_owned()
}

/// Uploads a picture that has one color.
pub(crate) fn try_upload(client: &mut Client, color: u8) -> io::Result<Answer> {
    let head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.gif\"\r\n\r\n";
    let body = [head.as_bytes(), &gif(color), b"\r\n--b--\r\n"].concat();
    let form = [("Content-Type", "multipart/form-data; boundary=b")];
    client.send("POST", "/api/v2/media", &form, &body)
}

/// The path of an uploaded picture.
pub(crate) fn path(answer: &Answer) -> String {
    let attachment = answer.json();
    let url = attachment["url"].as_str().unwrap();
    url[url.find("/media/").unwrap()..].to_owned()
}

/// Uploads a picture until a node acknowledges it. Returns the path of the picture.
fn upload(world: &World, node: usize, token: &str, color: u8) -> String {
    let start = Instant::now();
    let mut client = Client::new(world.address(node), Some(token.to_owned()));
    loop {
        let answer = try_upload(&mut client, color).unwrap();
        if answer.status == 200 {
            return path(&answer);
        }
        // The node may not yet have the account, which was created on another node.
        assert!(matches!(answer.status, 401 | 503), "{} {}", answer.status, answer.text());
        assert!(answer.status == 401 || answer.header("retry-after").is_some());
        assert!(start.elapsed() < PATIENCE, "{}", answer.text());
    }
}

/// Reads a picture from a node. Waits until the node has the picture.
pub(crate) fn read(mut client: Client, path: &str) -> Vec<u8> {
    let start = Instant::now();
    loop {
        let answer = client.get(path);
        if answer.status == 200 {
            return answer.body;
        }
        assert!(matches!(answer.status, 404 | 503), "{} {}", answer.status, answer.text());
        assert!(start.elapsed() < PATIENCE, "{path}: {}", answer.text());
    }
}

/// An acknowledged picture is on all nodes, even if a node or a server is killed.
#[test]
fn an_acknowledged_picture_is_on_every_node() {
    let Some(mut world) = World::start(3) else { return };
    let token = log_in(&world, 0, "anna");
    // Kill the node to which the picture was uploaded.
    let first = upload(&world, 0, &token, 1);
    world.kill(0);
    let bytes = read(world.client(1), &first);
    assert!(bytes.starts_with(&[0x89, b'P', b'N', b'G']) || bytes.starts_with(&[0xff, 0xd8]));
    assert!(read(world.client(2), &first) == bytes);
    // Uploads work while one NATS server and one node are down.
    world.servers.kill(1);
    let second = upload(&world, 1, &token, 2);
    let bytes = read(world.client(2), &second);
    world.servers.restart(1);
    world.kill(1);
    world.restart(0);
    assert!(read(world.client(0), &second) == bytes);
    world.restart(1);
    for node in 0..3 {
        assert!(read(world.client(node), &second) == bytes, "node {node}");
        assert!(read(world.client(node), &first) != bytes, "node {node}");
    }
    world.same_digests();
    // A node that joins has all pictures, and so has one that leaves.
    let joined = world.join(3);
    assert!(joined.status.success(), "{joined:#?}");
    world.nodes.push(None);
    world.restart(3);
    assert!(read(world.client(3), &second) == bytes);
    world.stop(3);
    let gone = run(["cluster", "leave", "--data", text(&world.data(3))]);
    assert!(gone.status.success(), "{gone:#?}");
    let alone = Server::open(&world.data(3), &[]);
    assert!(read(alone.client(), &second) == bytes);
}

/// While the stream of files is missing, pictures are refused and not stored, and everything else works.
#[test]
fn without_the_stream_of_files_pictures_are_refused_and_nothing_is_stored() {
    let Some(mut world) = World::start(1) else { return };
    let token = log_in(&world, 0, "anna");
    let first = upload(&world, 0, &token, 1);
    let url = world.servers.url(0);
    if nats(&url, ["stream", "rm", "roost-files", "--force"]).is_none() {
        return;
    }
    let mut client = Client::new(world.address(0), Some(token.clone()));
    let refused = try_upload(&mut client, 2).unwrap();
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    world.client(0).register("ben");
    let said = world.nodes[0].as_ref().unwrap().process.logged("nats stream add roost-files");
    assert!(said.is_some(), "the log has the command");
    // The start of a node creates the stream.
    world.stop(0);
    world.restart(0);
    upload(&world, 0, &token, 3);
    read(world.client(0), &first);
    let files = std::fs::read_dir(world.data(0).join("media")).unwrap().map(Result::unwrap);
    let count = |dir: std::fs::DirEntry| std::fs::read_dir(dir.path()).unwrap().count();
    // The third file is that of the refused picture, and is not used.
    assert_eq!(files.map(count).sum::<usize>(), 3);
}
