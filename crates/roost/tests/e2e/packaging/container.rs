//! Test of the Containerfile. Building an image would need a registry; instead, its commands run here against a server.

use std::process::Command;

use super::read;
use crate::support::process::{Server, serve};

#[test]
fn the_health_check_of_the_image_follows_the_server() {
    let file = read("Containerfile");
    let check = file.lines().find_map(|line| line.trim_start().strip_prefix("CMD [\"bash\""));
    let check = format!("[\"bash\"{}", check.expect("it has a health check"));
    let check: Vec<String> = serde_json::from_str(&check).unwrap();
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut serve(data.path(), &[]));
    let is_healthy = |listen: &str| {
        let mut command = Command::new(&check[0]);
        command.args(&check[1..]).env("ROOST_LISTEN", listen);
        command.output().unwrap().status.success()
    };
    let listen = format!("0.0.0.0:{}", server.address.port());
    assert!(is_healthy(&listen));
    server.stop();
    assert!(!is_healthy(&listen));
}
