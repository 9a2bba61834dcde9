//! `roost simulate`: a population made to measure against a server of our own or another.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use sim::workload::Load;
use sim::{SimulateOptions, simulate};
use tokio::sync::watch;

use crate::logging::{self, LogFormat};
use crate::running::RunningServer;
use crate::serve::stop_signal;
use crate::settings::duration;

/// Rehearse a launch: make a population, load it into a server over HTTP and drive it.
///
/// The people, whom they follow and how often they do what come from measured statistics of a
/// large network; --seed makes the same again. Actions are due at random times whatever the server
/// does, and latency counts from when an action was due. Without --target a server of its own is
/// started on a free port and a temporary directory, with the default settings.
#[derive(Args)]
pub(crate) struct Simulate {
    /// Server to drive, for example http://127.0.0.1:8998; it must have no users yet. Its key is
    /// read from ROOST_KEY
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// People to make
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    users: u32,
    /// How busy they are
    #[arg(long, value_enum, default_value_t = Busy::Light)]
    load: Busy,
    /// How long to drive the server once everybody is loaded
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    duration: Duration,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Take people and follows from an edge list instead: two numbers a line, mutual
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Connections that carry the load
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// Write the summary as JSON to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The two loads of the old report.
#[derive(Clone, Copy, ValueEnum)]
enum Busy {
    /// The most active 5 % post every 10 s.
    Light,
    /// The most active 5 % post every 2 s.
    Heavy,
}

impl Simulate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logging::start(LogFormat::Auto);
        let (server, target) = match &self.target {
            Some(url) => (None, address(url)?),
            None => {
                let server = RunningServer::start(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
                let address = server.address;
                (Some(server), address)
            }
        };
        let options = SimulateOptions {
            target,
            key: std::env::var("ROOST_KEY").ok().filter(|_| server.is_none()),
            users: self.users,
            load: match self.load {
                Busy::Light => Load::Light,
                Busy::Heavy => Load::Heavy,
            },
            duration: self.duration,
            seed: self.seed,
            graph: self.graph,
            connections: self.connections,
            json: self.json,
        };
        let summary = simulate(options, &mut std::io::stdout(), cancelled_by_signal()?).await?;
        drop(server);
        anyhow::ensure!(summary.error_count() == 0, "{} requests failed", summary.error_count());
        Ok(())
    }
}

/// Turns true at the first SIGINT or SIGTERM.
pub(crate) fn cancelled_by_signal() -> anyhow::Result<watch::Receiver<bool>> {
    let (cancel, cancelled) = watch::channel(false);
    let stop = stop_signal()?;
    tokio::spawn(async move {
        stop.await;
        cancel.send_replace(true);
        // Held open: a closed channel would say nothing.
        std::future::pending::<()>().await;
    });
    Ok(cancelled)
}

/// The address behind `http://HOST:PORT`.
fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let host = url
        .strip_prefix("http://")
        .map(|rest| rest.trim_end_matches('/'))
        .context("a target looks like http://127.0.0.1:8998")?;
    let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    host.to_socket_addrs()
        .with_context(|| format!("cannot find {host}"))?
        .next()
        .with_context(|| format!("{host} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_http_url_of_a_host() {
        for (url, expect) in [
            ("http://127.0.0.1:8998", Some("127.0.0.1:8998")),
            ("http://127.0.0.1:8998/", Some("127.0.0.1:8998")),
            ("http://127.0.0.1", Some("127.0.0.1:80")),
            ("127.0.0.1:8998", None),
            ("http://127.0.0.1:port", None),
        ] {
            assert_eq!(address(url).ok().map(|a| a.to_string()).as_deref(), expect, "{url}");
        }
    }
}
