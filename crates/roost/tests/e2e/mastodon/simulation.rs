//! Tests of `roost simulate --api mastodon` on the real binary, with accounts that `roost account test-tokens` creates.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::simulate::assert_ran;
use crate::support::http::Client;
use crate::support::process::{Ended, Process, Server, roost, run, serve};

fn simulate(server: &Server, arguments: &[&str]) -> Ended {
    let target = server.address.to_string();
    let common = ["simulate", "--api", "mastodon", "--duration", "1s", "--server", &target];
    run(common.into_iter().chain(arguments.iter().copied()))
}

/// Creates accounts. Returns their tokens.
fn test_tokens(data: &Path, arguments: &[&str]) -> Vec<String> {
    let command = ["account", "test-tokens"];
    let ended = Process::start(roost(command).args(arguments).arg("--data").arg(data)).ended();
    assert!(ended.status.success(), "{ended:#?}");
    ended.out.lines().map(str::to_owned).collect()
}

#[test]
fn some_hundred_users_act_by_mastodons_api_without_errors() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("summary.json");
    let small = ["simulate", "--api", "mastodon", "--users", "300", "--load", "heavy"];
    let arguments = small.into_iter().chain(["--rate", "200", "--duration", "2s", "--json"]);
    let ended = Process::start(roost(arguments).arg(&file)).ended();
    assert_ran(&ended);
    let summary: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let kinds = summary["kinds"].as_array().unwrap();
    let names: Vec<_> = kinds.iter().filter_map(|kind| kind["kind"].as_str()).collect();
    assert_eq!(names, ["posts", "home reads", "mention reads"]);
    assert!(kinds.iter().take(2).all(|kind| kind["count"].as_u64() > Some(0)), "{summary:#}");
    let correctness = &summary["correctness"];
    assert!(correctness["posts"].as_u64() > Some(0), "homes are compared: {summary:#}");
    assert!(summary["server"]["cores"].as_f64() > Some(0.0), "{summary:#}");
}

#[test]
fn users_sign_up_where_sign_up_is_open_and_act_again_with_tokens() {
    let data = tempfile::tempdir().unwrap();
    let open = ["--registrations", "open", "--password-grant"];
    let server = Server::open(&data.path().join("data"), &open);
    assert_ran(&simulate(&server, &["--users", "12", "--rate", "50", "--profile", "deathstar"]));
    // Test accounts have passwords that nobody knows, so use accounts with known ones.
    let lines: Vec<String> = (0..3).map(|user| {
        let handle = format!("person{user}");
        let app = json!({"client_name": "x", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob", "scopes": "read write"});
        let mut client = Client::new(server.address, None);
        let app = client.post("/api/v1/apps", &app).expect(200).json();
        let token = json!({"grant_type": "client_credentials", "client_id": app["client_id"],
            "client_secret": app["client_secret"], "scope": "write"});
        let token = client.post("/oauth/token", &token).expect(200).json();
        let account = json!({"username": handle, "email": format!("{handle}@example.org"),
            "password": "correct horse", "agreement": true});
        let token = token["access_token"].as_str().unwrap().to_owned();
        Client::new(server.address, Some(token)).post("/api/v1/accounts", &account).expect(200);
        format!("{handle} correct horse")
    }).collect();
    let file = data.path().join("passwords");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    assert_ran(&simulate(&server, &["--users", "3", "--rate", "20", "--tokens", file]));
    let again = simulate(&server, &["--users", "3", "--rate", "20", "--tokens", file]);
    assert!(again.err.contains("follows") && again.err.contains("--loaded"), "{again:#?}");
    let loaded = ["--users", "3", "--rate", "20", "--tokens", file, "--loaded"];
    assert_ran(&simulate(&server, &loaded));
}

#[test]
fn tokens_are_made_for_accounts_that_do_not_exist_yet() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&mut serve(&data, &[]));
    let tokens = test_tokens(&data, &["150"]);
    assert_eq!(tokens.len(), 150);
    let me = |token: &String| {
        let path = "/api/v1/accounts/verify_credentials";
        Client::new(server.address, Some(token.clone())).get(path).expect(200).json()
    };
    assert_eq!(me(&tokens[0])["id"], "0");
    assert_eq!(
        (me(&tokens[149])["id"].as_str(), me(&tokens[149])["statuses_count"].as_u64()),
        (Some("149"), Some(0))
    );
    let twice = ["account", "test-tokens", "1", "--data", data.to_str().unwrap()];
    let twice = run(twice);
    assert!(!twice.status.success() && twice.err.contains("account already"), "{twice:#?}");
    assert!(twice.out.is_empty(), "no token of an account that exists: {twice:#?}");

    let file = directory.path().join("tokens");
    std::fs::write(&file, tokens.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let small = ["--users", "150", "--rate", "100", "--tokens", file];
    assert_ran(&simulate(&server, &small));
    server.stop();
    let stopped = test_tokens(&data, &["2", "--seed", "9"]);
    assert_eq!(stopped.len(), 2, "also while the server is stopped");
}

#[test]
fn what_is_wrong_with_a_server_or_its_tokens_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let check = |ended: &Ended, code: i32, parts: &[&str]| {
        assert_eq!(ended.status.code(), Some(code), "{ended:#?}");
        for part in parts {
            assert!(ended.err.contains(part), "{part}? {ended:#?}");
        }
        assert!(!ended.out.contains("loaded in"), "{ended:#?}");
    };
    let closed = Server::start(&mut serve(&data, &[]));
    let few = ["--users", "12", "--rate", "20"];
    check(&simulate(&closed, &few), 1, &["sign-up is closed", "--tokens", "--registrations open"]);
    check(&simulate(&closed, &["--users", "12", "--loaded"]), 1, &["--loaded needs the tokens"]);

    let tokens = test_tokens(&data, &["12"]);
    let file = directory.path().join("tokens");
    let with = |lines: &[&str], parts: &[&str]| {
        std::fs::write(&file, lines.join("\n")).unwrap();
        let more = ["--tokens", file.to_str().unwrap()];
        let more: Vec<_> = ["--users", "3"].into_iter().chain(more).collect();
        check(&simulate(&closed, &more), 1, parts);
    };
    let [one, two, three] = [&*tokens[0], &*tokens[1], &*tokens[2]];
    with(&[one, two], &["3 users need as many tokens", "has 2"]);
    with(&[one, "wrong", three], &["line 2 of the file of --tokens", "401"]);
    with(&[one, two, one], &["lines 1 and 3", "one account"]);
    with(&[one, "", three], &["line 2 is neither"]);
    with(&[one, two, "ann a password"], &["line 3 of the file of --tokens", "400"]);
    check(&simulate(&closed, &["--tokens", "no/such/file"]), 1, &["no/such/file"]);
    check(&simulate(&closed, &["--profile", "stories"]), 2, &["no stories"]);

    let limited = directory.path().join("limited");
    let limited = Server::start(&mut serve(&limited, &["--registrations", "open"]));
    let parts = ["cannot sign a user up", "429", "retry-after", "--open"];
    check(&simulate(&limited, &few), 1, &parts);
    let approval = directory.path().join("approval");
    let approval = Server::start(&mut serve(&approval, &["--registrations", "approval"]));
    check(&simulate(&approval, &few), 1, &["must approve", "--tokens"]);
}

#[test]
fn a_server_without_the_api_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0; 4_096]);
            let body = "<html>no such page</html>";
            let head = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
    let ended = run(["simulate", "--api", "mastodon", "--users", "5", "--server", &target]);
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    for part in ["does not answer Mastodon's API", "/api/v1/instance", "404", "no such page"] {
        assert!(ended.err.contains(part), "{part}? {ended:#?}");
    }
    assert!(ended.out.is_empty(), "before the population is generated: {ended:#?}");
}

#[test]
fn requests_beyond_the_limit_of_a_user_make_a_run_inconclusive() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&mut serve(&data, &[]));
    let file = directory.path().join("tokens");
    std::fs::write(&file, test_tokens(&data, &["3"]).join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let many = ["--users", "3", "--profile", "deathstar", "--rate", "2000", "--duration", "5s"];
    let target = server.address.to_string();
    let common = ["simulate", "--api", "mastodon", "--server", &target, "--tokens", file];
    let ended = run(common.into_iter().chain(many));
    assert_eq!(ended.status.code(), Some(4), "{ended:#?}");
    assert!(ended.err.contains("rate limits (status 429)"), "{ended:#?}");
}

/// This test takes half a minute, because a missing post could still arrive.
#[test]
fn posts_that_are_hidden_on_purpose_are_found_missing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&mut serve(&data, &[]));
    let tokens = test_tokens(&data, &["8"]);
    let file = directory.path().join("tokens");
    std::fs::write(&file, tokens.join("\n")).unwrap();
    for (user, token) in tokens.iter().enumerate() {
        let mut client = Client::new(server.address, Some(token.clone()));
        for other in (0..8).filter(|other| *other != user) {
            let path = format!("/api/v1/accounts/{other}/mute");
            client.post(&path, &json!({"notifications": false})).expect(200);
        }
    }
    let small = ["--users", "8", "--profile", "deathstar", "--rate", "100", "--tokens"];
    let ended = simulate(&server, &[&small[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(ended.status.code(), Some(3), "{ended:#?}");
    assert!(ended.err.contains("faults in timelines"), "{ended:#?}");
    assert!(ended.out.contains("is missing in the home timeline of user"), "{ended:#?}");
}
