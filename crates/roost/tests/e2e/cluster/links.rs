//! Links between nodes and NATS servers: proxies of toxiproxy, which can be cut and slowed down.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use testkit::PATIENCE;
use testkit::http::{Answer, Client};
use testkit::nats::{NatsServers, program};
use testkit::process::Process;

/// A proxy for each pair of node and server.
pub(crate) struct Links {
    _process: Process,
    api: SocketAddr,
    /// Ports that lead to the servers, for each node.
    ports: Vec<Vec<u16>>,
}

impl Links {
    /// Starts the proxies. If toxiproxy is missing, reports a skipped test and returns `None`.
    pub(crate) fn new(nodes: usize, servers: &NatsServers) -> Option<Self> {
        let program = program("toxiproxy-server")?;
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["-host", "127.0.0.1", "-port", &port.to_string()]).stdin(Stdio::null());
        let process = Process::start(&mut command);
        let api = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let start = Instant::now();
        while Client::new(api, None).send("GET", "/version", &[], b"").is_err() {
            assert!(start.elapsed() < PATIENCE, "toxiproxy does not start");
            std::thread::yield_now();
        }
        let mut links = Self { _process: process, api, ports: Vec::new() };
        for node in 0..nodes {
            let ports = (0..servers.count()).map(|server| {
                let (port, upstream) = (free_port(), servers.url(server).replace("nats://", ""));
                let (name, listen) = (name(node, server), format!("127.0.0.1:{port}"));
                let proxy = json!({"name": name, "listen": listen, "upstream": upstream});
                links.ask("/proxies", &proxy).expect(201);
                port
            });
            let ports = ports.collect();
            links.ports.push(ports);
        }
        Some(links)
    }

    /// Sends a request to toxiproxy on a new connection, because toxiproxy closes idle ones.
    fn ask(&self, path: &str, body: &Value) -> Answer {
        Client::new(self.api, None).post(path, body)
    }

    /// Addresses at which a node reaches the servers.
    pub(crate) fn urls(&self, node: usize) -> String {
        let urls = self.ports[node].iter().map(|port| format!("nats://127.0.0.1:{port}"));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Cuts the link between a node and one server, or all servers.
    pub(crate) fn cut(&self, node: usize, server: Option<usize>) {
        for at in (0..self.ports[node].len()).filter(|at| server.is_none_or(|only| only == *at)) {
            let path = format!("/proxies/{}", name(node, at));
            self.ask(&path, &json!({"enabled": false})).expect(200);
        }
    }

    /// Delays everything between a node and all servers, in both directions.
    pub(crate) fn slow_down(&self, node: usize, by_ms: u64) {
        for at in 0..self.ports[node].len() {
            let path = format!("/proxies/{}/toxics", name(node, at));
            for stream in ["upstream", "downstream"] {
                let attributes = json!({"latency": by_ms, "jitter": by_ms / 2});
                let toxic = json!({"type": "latency", "stream": stream, "attributes": attributes});
                self.ask(&path, &toxic).expect(200);
            }
        }
    }

    /// Restores all links.
    pub(crate) fn heal(&self) {
        self.ask("/reset", &json!({})).expect(204);
    }
}

fn name(node: usize, server: usize) -> String {
    format!("{node}-{server}")
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
