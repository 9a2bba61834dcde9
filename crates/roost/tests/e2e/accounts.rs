//! Tests of accounts as operators and apps use them: `roost account` while a server runs, and while none does.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::http::Client;
use crate::support::process::{Ended, Process, Server, roost, serve};

fn account(data: &Path, arguments: &[&str]) -> Ended {
    Process::start(roost(["account"]).args(arguments).arg("--data").arg(data)).ended()
}

/// Runs a command that must succeed. Returns its output.
fn done(data: &Path, arguments: &[&str]) -> String {
    let ended = account(data, arguments);
    assert!(ended.status.success(), "{arguments:?}: {ended:#?}");
    ended.out.trim().to_owned()
}

/// An app that asks for passwords.
struct App {
    id: String,
    secret: String,
}

impl App {
    fn register(server: &Server) -> Self {
        let app = json!({"client_name": "An app", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob"});
        let app = Client::new(server.address, None).post("/api/v1/apps", &app).expect(200).json();
        let text = |name: &str| app[name].as_str().unwrap().to_owned();
        Self { id: text("client_id"), secret: text("client_secret") }
    }

    /// Logs in with the app. Returns the token; `None` if the password is wrong.
    fn log_in(&self, server: &Server, name: &str, password: &str) -> Option<String> {
        let asked = json!({
            "grant_type": "password", "client_id": self.id, "client_secret": self.secret,
            "username": name, "password": password,
        });
        let got = Client::new(server.address, None).post("/oauth/token", &asked);
        (got.status == 200).then(|| got.json()["access_token"].as_str().unwrap().to_owned())
    }
}

fn me(server: &Server, token: &str) -> (u16, Value) {
    let path = "/api/v1/accounts/verify_credentials";
    let got = Client::new(server.address, Some(token.to_owned())).get(path);
    (got.status, got.json())
}

#[test]
fn accounts_are_managed_while_the_server_runs_and_while_it_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut serve(data, &["--password-grant"]));
    let password = done(data, &["create", "ann", "--email", "ann@example.org"]);
    let app = App::register(&server);
    let token = app.log_in(&server, "ann@example.org", &password).unwrap();
    assert_eq!(me(&server, &token).1["acct"], "ann");
    assert_eq!(app.log_in(&server, "ann", "a wrong password"), None);
    let again = account(data, &["create", "ann"]);
    assert!(!again.status.success() && again.err.contains("account already"), "{again:#?}");

    done(data, &["disable", "ann"]);
    assert_eq!(me(&server, &token).0, 401);
    let wrong = account(data, &["approve", "ann"]);
    assert!(wrong.err.contains("the account is disabled, not pending"), "{wrong:#?}");
    done(data, &["enable", "ann"]);
    assert_eq!(me(&server, &token).0, 401, "users log in again");
    done(data, &["role", "ann", "admin"]);
    let changed = done(data, &["reset-password", "ann"]);
    assert_eq!(app.log_in(&server, "ann", &password), None);
    let token = app.log_in(&server, "ann", &changed).unwrap();
    assert!(data.join("account.sock").exists());
    let ended = server.stop();
    assert!(!data.join("account.sock").exists());
    assert!(!ended.err.contains(&changed) && !ended.err.contains(&token), "{}", ended.err);

    let list = done(data, &["list"]);
    for part in ["ann", "admin", "active", "ann@example.org"] {
        assert!(list.contains(part), "{list}");
    }
    done(data, &["create", "bob"]);
    let server = Server::start(&mut serve(data, &["--password-grant"]));
    assert_eq!(me(&server, &token).0, 200, "tokens survive a restart");
    done(data, &["delete", "ann", "--yes"]);
    assert_eq!(me(&server, &token).0, 401);
    let taken = account(data, &["create", "ann"]);
    assert!(!taken.status.success() && taken.err.contains("taken"), "{taken:#?}");
    let list = done(data, &["list"]);
    assert!(list.contains("bob") && !list.contains("ann"), "{list}");
}

#[test]
fn a_server_that_was_killed_leaves_a_socket_that_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut serve(data, &[]));
    done(data, &["create", "ann"]);
    server.kill();
    assert!(done(data, &["list"]).contains("ann"));
    let server = Server::start(&mut serve(data, &[]));
    assert!(done(data, &["list"]).contains("ann"));
    server.stop();
}

#[test]
fn only_trusted_proxies_choose_the_address_that_limits_are_for() {
    // Number of apps that a client can register if each request has a different forged address.
    let registered = |flags: &[&str], forged: &dyn Fn(u32) -> String| {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(&mut serve(data.path(), flags));
        let app = json!({"client_name": "An app", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob"});
        let mut client = Client::new(server.address, None);
        let send = |number: &u32| {
            let forwarded = forged(*number);
            let headers =
                [("X-Forwarded-For", forwarded.as_str()), ("Content-Type", "application/json")];
            let sent = client.send("POST", "/api/v1/apps", &headers, app.to_string().as_bytes());
            sent.unwrap().status == 200
        };
        (0..40).filter(send).count()
    };
    let alone = |number: u32| format!("192.0.2.{number}");
    let before_another = |number: u32| format!("192.0.2.{number}, 198.51.100.1");
    assert_eq!(registered(&[], &alone), 40, "a proxy on this machine is trusted");
    assert_eq!(registered(&[], &before_another), 30, "what its client sends is not");
    let far = ["--trusted-proxies", "10.0.0.0/8"];
    assert_eq!(registered(&far, &alone), 30, "this machine is not in the list");
    let both = ["--trusted-proxies", "127.0.0.1,198.51.100.0/24"];
    assert_eq!(registered(&both, &before_another), 40);
}
