//! Test with the tool of the 2014 report's measurements: the report's command line works unchanged.

use std::process::Command;

use crate::support::process::Server;
use crate::support::skipped;

#[test]
fn the_old_reports_command_line_has_no_failed_request() {
    if Command::new("ab").arg("-V").output().is_err() {
        skipped("ab is not installed (apt-get install apache2-utils)");
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &[]);
    let mut client = server.client();
    for handle in ["ada", "bob", "eve", "dan"] {
        client.register(handle);
    }
    let url = format!("http://{}/tweet/2/1/3/hello", server.address);
    let output = Command::new("ab").args(["-n", "4000", "-c", "10", &url]).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}{said}");
    let line = |name: &str| {
        let rest = report.lines().find_map(|line| line.strip_prefix(name));
        rest.unwrap_or_else(|| panic!("{name}? {report}")).trim()
    };
    assert_eq!((line("Complete requests:"), line("Failed requests:")), ("4000", "0"), "{report}");
    assert!(!report.contains("Non-2xx"), "{report}");

    let author = client.get("/v1/users/2").expect(200).json();
    assert_eq!(author["post_count"], 4_000);
    let mentions = client.get("/mentionsfeed/3").expect(200).json();
    let mentions = mentions["items"].as_array().unwrap();
    assert_eq!(mentions.len(), 50);
    assert!(mentions.iter().all(|post| post["text"] == "@dan hello"), "{mentions:#?}");
    for (path, items) in [("/homepage/2", 100), ("/homepage/1", 0), ("/followers/2", 0)] {
        let page = client.get(path).expect(200).json();
        assert_eq!(page["items"].as_array().unwrap().len(), items, "{path}");
    }
}
