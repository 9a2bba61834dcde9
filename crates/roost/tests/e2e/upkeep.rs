//! Tests of events that an operator must notice: failed log-ins, accounts that wait for approval, missing backups, and
//! a new version.

use std::net::SocketAddr;

use serde_json::Value;

use crate::support::http::{Answer, Client};
use crate::support::process::{Process, Server, roost, serve};

/// Sends a form.
fn form(address: SocketAddr, path: &str, fields: &str, token: Option<&str>) -> Answer {
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let mut client = Client::new(address, token.map(str::to_owned));
    client.send("POST", path, &headers, fields.as_bytes()).unwrap()
}

/// Value of a metric without labels.
#[track_caller]
fn metric(server: &Server, name: &str) -> f64 {
    let text = server.client().get("/metrics").expect(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
}

/// The first line of the log that contains this part.
fn logged(server: &Server, part: &str) -> Value {
    let line = server.process.logged(part).expect("it is logged");
    serde_json::from_str(&line).unwrap()
}

#[test]
fn failed_log_ins_a_block_and_accounts_that_wait_are_logged_and_counted() {
    let data = tempfile::tempdir().unwrap();
    let settings = ["--registrations", "approval", "--password-grant", "--open"];
    let server = Server::start(&mut serve(data.path(), &settings));
    let app = "client_name=x&redirect_uris=urn:ietf:wg:oauth:2.0:oob&scopes=read+write";
    let app = form(server.address, "/api/v1/apps", app, None).expect(200).json();
    let [id, secret] = ["client_id", "client_secret"].map(|name| app[name].as_str().unwrap());
    let of_app = format!("client_id={id}&client_secret={secret}&scope=read+write");
    let grant = format!("grant_type=client_credentials&{of_app}");
    let token = form(server.address, "/oauth/token", &grant, None).expect(200).json();
    let token = token["access_token"].as_str();
    assert_eq!(metric(&server, "roost_accounts_pending"), 0.0);
    let account = "username=bob&email=bob@example.org&password=a+long+password&agreement=true";
    form(server.address, "/api/v1/accounts", account, token).expect(403);
    let waits = logged(&server, "waits for approval");
    assert_eq!(waits["handle"], "bob", "{waits}");

    let guess = format!("grant_type=password&username=bob&password=guessed&{of_app}");
    for at in 0..25 {
        let status = form(server.address, "/oauth/token", &guess, None).status;
        assert_eq!(status == 429, at >= 20, "{at}: {status}");
    }
    let failed = logged(&server, "a log-in failed");
    assert_eq!((&failed["address"], &failed["level"]), (&"127.0.0.1".into(), &"INFO".into()));
    let blocked = logged(&server, "too many log-ins failed from an address");
    assert_eq!((&blocked["address"], &blocked["level"]), (&"127.0.0.1".into(), &"WARN".into()));
    assert_eq!(metric(&server, "roost_log_ins_failed_total"), 20.0);
    assert_eq!(metric(&server, "roost_log_ins_refused_total"), 5.0);
    let ended = server.stop();
    assert_eq!(ended.err.matches("too many log-ins").count(), 1, "once, and not for each");
    assert!(!ended.err.contains("guessed"), "no password is logged");
    let server = Server::start(&mut serve(data.path(), &settings));
    assert_eq!(metric(&server, "roost_accounts_pending"), 1.0);
    server.stop();
}

#[test]
fn the_time_of_the_last_backup_is_known_after_a_restart_and_the_version_always() {
    let data = tempfile::tempdir().unwrap();
    let name = "roost_last_backup_timestamp_seconds";
    let server = Server::open(data.path(), &["--media-max", "1GiB"]);
    let text = server.client().get("/metrics").expect(200).text();
    let version = Process::start(&mut roost(["--version"])).ended().out;
    let version = version.trim().strip_prefix("roost ").unwrap();
    assert!(text.contains(&format!("roost_build_info{{version=\"{version}\"}} 1")), "{text}");
    assert_eq!(metric(&server, name), 0.0);
    assert_eq!(metric(&server, "roost_picture_limit_bytes"), f64::from(1 << 30));
    assert_eq!(metric(&server, "roost_tls_certificate_expiry_timestamp_seconds"), 0.0);
    server.client().get("/v1/backup").expect(200);
    server.process.logged("made a backup").unwrap();
    let of_running = metric(&server, name);
    assert!(of_running > 1.7e9, "{of_running}");
    server.stop();
    let server = Server::open(data.path(), &[]);
    assert_eq!(metric(&server, name), of_running);
    server.stop();
    // A backup of a stopped server also counts.
    std::fs::remove_file(data.path().join("last-backup")).unwrap();
    let mut command = roost(["backup", "--data"]);
    let ended =
        Process::start(command.arg(data.path()).arg("--out").arg(data.path().join("x"))).ended();
    assert!(ended.status.success(), "{ended:#?}");
    let server = Server::open(data.path(), &[]);
    assert!(metric(&server, name) >= of_running);
    server.stop();
}
