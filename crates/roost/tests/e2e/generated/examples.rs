//! Tests of the example apps: the commands in `docs/clients.md` generate a client from a real server, and start the app.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::documents::{blocks, repository, text};
use crate::support::http::{Answer, Chunked, connect, raw, read_head};
use crate::support::process::{Process, Server, serve};
use crate::support::{fetched, said, skipped};

const LINES_MAX: usize = 100;

/// Starts a server with an application key. Ada follows Bob, who has favourited a post by Dan.
fn server(data: &Path) -> Server {
    let mut server = Server::start(&mut serve(data, &[]));
    let key = std::fs::read_to_string(data.join("first-key")).unwrap();
    server.key = Some(key.trim().to_owned());
    let mut client = server.client();
    assert_eq!(["ada", "bob", "dan"].map(|handle| client.register(handle)), [0, 1, 2]);
    client.follow(0, 1);
    let liked = client.publish(2, "frogs & ponds");
    client.put(&format!("/v1/users/1/favourites/{liked}")).expect(204);
    server
}

/// Copies the files of an example to a folder, and runs the commands of a block of the document except the last one,
/// which it returns: it starts the app. `shell` defines the programs that a reader has; `variables` are for all commands.
fn prepared(
    folder: &Path,
    server: &Server,
    block: usize,
    (shell, variables): (&str, &[(&str, String)]),
) -> Command {
    let commands = &blocks(&text("docs/clients.md"))[block];
    let example = commands.lines().next().unwrap().strip_prefix("cd ").unwrap();
    let (from, to) = (repository().join(example), folder.join(example));
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    let url = format!("http://{}", server.address);
    let commands = commands.replace("http://127.0.0.1:8998", &url);
    let (before, last) = commands.trim_end().rsplit_once('\n').unwrap();
    let mut command = Command::new("sh");
    command.envs(variables.iter().cloned()).current_dir(folder);
    said(&command.args(["-c", &format!("set -e\n{shell}\n{before}")]).output().unwrap());
    // The process of the shell becomes that of the app, so that the test can end it.
    let mut start = Command::new("sh");
    start.envs(variables.iter().cloned()).current_dir(to).env("ROOST_URL", url).env("PORT", "0");
    start.args(["-c", &format!("exec {last}")]);
    start
}

fn get(address: SocketAddr, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    raw(address, request.as_bytes())
}

/// Checks that an app shows a post of For You with its reason, and new posts.
fn check(command: &mut Command, server: &Server) {
    let process = Process::start(command.env("ROOST_KEY", server.key.as_ref().unwrap()));
    let Some(address) = process.said("listening on http://") else {
        panic!("the example does not start: {:#?}", process.ended());
    };
    let address = address.parse().unwrap();
    let page = get(address, "/").expect(200).text();
    let (for_you, home) = page.split_once("id=\"home\"").unwrap();
    for expected in ["<b>dan</b>", "<small>liked by bob; popular; new author</small>"] {
        assert!(for_you.contains(expected), "no {expected}: {page}");
    }
    assert!(for_you.contains("frogs &") && !for_you.contains("frogs & "), "{page}");
    assert!(!home.contains("frogs"), "{page}");

    let mut stream = connect(address).unwrap();
    let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let (status, head) = read_head(&mut stream).unwrap();
    assert_eq!(status, 200);
    let is_chunked = head.iter().any(|(name, _)| name == "transfer-encoding");
    let body: Box<dyn Read> =
        if is_chunked { Box::new(Chunked::new(stream)) } else { Box::new(stream) };
    let mut lines = BufReader::new(body).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == ": connected"));
    let mut client = server.client();
    client.publish(1, "<i>live</i>");
    assert!(lines.any(|line| line == "event: post"));
    let data = lines.find(|line| line.starts_with("data: ")).unwrap();
    assert!(data.contains("\"text\":\"<i>live</i>\""), "{data}");
    let body = json!({"text": "<i>hidden</i>", "warning": "<i>spiders</i>"});
    client.post("/v1/users/1/posts", &body).expect(201);
    let home = get(address, "/home").expect(200).text();
    let expected = ["<b>bob</b><p>&", "i&gt;live", "<details><summary>&", "spiders"];
    let home = home.replace("&#60;", "&lt;").replace("&#62;", "&gt;");
    for expected in expected {
        assert!(home.contains(expected), "no {expected}: {home}");
    }
    assert!(!home.contains("<i>"), "{home}");
    assert_eq!(get(address, "/other").status, 404);
    process.kill();

    // An error of roost is shown, and not taken for an empty page.
    let process = Process::start(command.env("ROOST_KEY", "wrong"));
    let address = process.said("listening on http://").unwrap().parse().unwrap();
    let refused = get(address, "/").expect(502).text();
    assert!(refused.contains("key"), "{refused}");
    process.kill();
}

#[test]
fn the_example_in_python_shows_for_you_with_reasons_and_live_posts() {
    let library = fetched("openapi-python");
    if !library.is_dir() {
        return skipped(
            "openapi-python-client is not here (cargo xtask test --install fetches it)",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server(&folder.path().join("data"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", library.join("bin").display());
    let variables = [("PATH", path), ("PYTHONPATH", library.display().to_string())];
    check(&mut prepared(folder.path(), &server, 1, ("pip() { :; }", &variables)), &server);
    server.stop();
}

#[test]
fn the_example_in_typescript_shows_for_you_with_reasons_and_live_posts() {
    let library = fetched("openapi-typescript").join("node_modules");
    if !library.join("openapi-fetch").is_dir() {
        return skipped("openapi-fetch is not here (cargo xtask test --install fetches it)");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server(&folder.path().join("data"));
    let shell = "npm() { ln -s $LIBRARY node_modules; }\n\
        npx() { program=$1; shift; node_modules/.bin/$program \"$@\"; }";
    let variables = [("LIBRARY", library.display().to_string())];
    check(&mut prepared(folder.path(), &server, 0, (shell, &variables)), &server);
    server.stop();
}

#[test]
fn an_example_is_short() {
    for file in ["typescript/app.ts", "python/app.py"] {
        let lines = text(&format!("examples/{file}")).lines().count();
        assert!(lines < LINES_MAX, "{file} has {lines} lines");
    }
}
