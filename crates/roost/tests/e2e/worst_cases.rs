//! Tests of the smallest requests with the largest effect, against a server with little memory. Other clients are
//! served, memory stays below the limit that the server reports, and after `kill -9` the server starts again with all
//! acknowledged changes.

mod http;
mod keys;
mod slow_clients;
mod values;

use std::net::SocketAddr;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::http::Client;
use crate::support::process::{Server, serve};
use crate::support::redis::{Redis, Reply};

const MIB: u64 = 1 << 20;

/// Server with little memory, for HTTP and Redis clients, and its data.
struct Small {
    data: TempDir,
    settings: Vec<&'static str>,
    server: Option<Server>,
    redis: SocketAddr,
    /// Memory limit that the server reports, in bytes.
    memory: u64,
    strangers: u32,
}

impl Small {
    /// Starts a server with 900 MiB. It does not call fsync, because no power is lost here.
    fn start() -> Self {
        Self::with(&["--memory", "900MiB", "--media-max", "0", "--durability", "never"])
    }

    fn with(settings: &[&'static str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let settings = [&["--redis-listen", "127.0.0.1:0"], settings].concat();
        let redis = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut small = Self { data, settings, server: None, redis, memory: 0, strangers: 0 };
        small.serve();
        small.client().register("stranger");
        small
    }

    fn serve(&mut self) {
        let server = Server::start(serve(self.data.path(), &self.settings).arg("--open"));
        let said: Value = server.process.logged("maximum memory").unwrap().parse().unwrap();
        self.memory = said["total"].as_u64().unwrap() * MIB;
        self.redis = server.process.said("roost serves redis://").unwrap().parse().unwrap();
        self.server = Some(server);
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn client(&self) -> Client {
        self.server().client()
    }

    fn redis(&self) -> Redis {
        Redis::new(self.redis)
    }

    /// Checks that other clients can read and write, over HTTP and as Redis clients.
    fn check_strangers(&mut self) {
        self.strangers += 1;
        let (text, mut client) = (self.strangers.to_string(), self.client());
        client.get("/healthz").expect(200);
        client.publish(0, &text);
        let posts = client.get("/v1/users/0/posts?limit=1").expect(200).json();
        assert_eq!(posts["items"][0]["text"], json!(text));
        let mut redis = self.redis();
        assert_eq!(redis.line("PING"), Reply::Simple("PONG".into()));
        assert_eq!(redis.line("SELECT 15"), Reply::ok());
        assert_eq!(redis.line(&format!("SET stranger {text}")), Reply::ok());
        assert_eq!(redis.line("GET stranger"), Reply::Bulk(Some(text.into_bytes())));
    }

    /// Checks that memory was never above the limit that the server reports, nor above `most_mib`.
    fn check_memory(&self, most_mib: u64) {
        let peak = self.server().process.peak_memory();
        assert!(peak <= self.memory, "{} MiB of {}", peak / MIB, self.memory / MIB);
        assert!(peak <= most_mib * MIB, "{} MiB, not {most_mib}", peak / MIB);
    }

    /// Kills the server with `kill -9` and starts it again.
    fn kill_and_start(&mut self) {
        self.server.take().unwrap().kill();
        self.serve();
    }

    /// Ends a case: checks that other clients are served and that memory was limited. Then kills the server and checks
    /// both again, and that `kept` holds.
    fn check(mut self, most_mib: u64, kept: impl Fn(&mut Redis)) {
        self.check_strangers();
        kept(&mut self.redis());
        self.check_memory(most_mib);
        self.kill_and_start();
        kept(&mut self.redis());
        self.check_strangers();
        self.check_memory(most_mib);
    }
}
