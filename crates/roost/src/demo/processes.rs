//! Processes of a cluster demo: three NATS servers and three nodes, each of which can be killed and restarted. All end
//! on drop.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::balancer::asks_ready;

/// Number of NATS servers, and of nodes.
pub(super) const COUNT: usize = 3;
/// Longest time for servers to start.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

/// Process that may be down.
pub(super) struct Part {
    pub(super) name: String,
    program: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Part {
    /// Kills the process with SIGKILL.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Starts the process unless it runs.
    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        if self.child.is_none() {
            let mut command = quiet(&self.program);
            let child = command.args(&self.arguments).spawn();
            self.child = Some(child.with_context(|| format!("cannot start {}", self.name))?);
        }
        Ok(())
    }
}

/// Returns a command that prints only warnings and errors and ignores `ROOST_` variables of the environment.
fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("ROOST_")))
        // The demo causes connection errors on purpose; they would fill the screen.
        .env("ROOST_LOG", std::env::var("ROOST_LOG").unwrap_or_else(|_| "off".into()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        // Ctrl-C must reach only the demo, which then ends its processes.
        .process_group(0);
    command
}

/// All processes and their data.
pub(super) struct Processes {
    /// Nodes first, then NATS servers.
    pub(super) parts: Vec<Part>,
    /// Addresses of the nodes.
    pub(super) nodes: Vec<SocketAddr>,
    urls: String,
    roost: PathBuf,
    folder: tempfile::TempDir,
}

impl Processes {
    /// Starts NATS servers, creates a cluster, and starts its nodes.
    ///
    /// # Errors
    /// If a process does not start in time.
    pub(super) async fn start(nats_server: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary directory")?;
        let (clients, routes, nodes) = (free_ports()?, free_ports()?, free_ports()?);
        let roost = std::env::current_exe()?;
        let urls = clients.map(|port| format!("nats://127.0.0.1:{port}")).join(",");
        let nodes = nodes.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut parts = Vec::new();
        for (at, address) in nodes.iter().enumerate() {
            let data = folder.path().join(format!("node-{at}"));
            let (address, data) = (address.to_string(), data.display().to_string());
            let fixed = ["serve", "--open", "--listen", &address, "--data", &data, "--nats", &urls];
            let arguments = fixed.map(str::to_owned).to_vec();
            let name = format!("node {}", at + 1);
            parts.push(Part { name, program: roost.clone(), arguments, child: None });
        }
        for (at, port) in clients.iter().enumerate() {
            let file = folder.path().join(format!("nats-{at}.conf"));
            fs::write(&file, configuration(folder.path(), at, *port, routes))?;
            let arguments = vec!["--config".into(), file.display().to_string()];
            let (name, program) = (format!("NATS server {}", at + 1), nats_server.to_owned());
            parts.push(Part { name, program, arguments, child: None });
        }
        let mut made = Self { parts, nodes: nodes.to_vec(), urls, roost, folder };
        made.parts.iter_mut().skip(COUNT).try_for_each(Part::start)?;
        made.make_cluster().await?;
        Ok(made)
    }

    /// Creates the cluster like an operator: `init`, then `join` for each further node.
    async fn make_cluster(&mut self) -> anyhow::Result<()> {
        let first = self.nodes.first().context("there are nodes")?;
        let from = format!("http://{first}");
        for at in 0..COUNT {
            let data = self.folder.path().join(format!("node-{at}")).display().to_string();
            let how: &[&str] = match at {
                0 => &["init", "--experimental"],
                _ => &["join", "--server", &from],
            };
            let rest = ["--data", &data, "--nats", &self.urls];
            self.run_until_it_succeeds(&[&["cluster"], how, &rest].concat()).await?;
            let node = self.parts.get_mut(at).context("there is a node")?;
            node.start()?;
            let address = *self.nodes.get(at).context("it has an address")?;
            let start = Instant::now();
            while !asks_ready(address).await {
                anyhow::ensure!(start.elapsed() < STARTS_WITHIN, "node {} does not start", at + 1);
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// Repeats a command until it succeeds: electing a NATS leader takes some seconds.
    async fn run_until_it_succeeds(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let mut command = quiet(&self.roost);
            let output = command.args(arguments).stderr(Stdio::piped()).output().await?;
            if output.status.success() {
                return Ok(());
            }
            let why = String::from_utf8_lossy(&output.stderr);
            anyhow::ensure!(
                start.elapsed() < STARTS_WITHIN,
                "roost {}: {why}",
                arguments.join(" ")
            );
            sleep(PAUSE).await;
        }
    }
}

/// Configuration of a NATS server as in `docs/cluster.md`, without a password, because only this machine has access.
fn configuration(folder: &Path, at: usize, port: u16, routes: [u16; COUNT]) -> String {
    let data = folder.join(format!("nats-{at}")).display().to_string();
    let urls = routes.map(|port| format!("nats://127.0.0.1:{port}")).join(", ");
    let route = routes.get(at).copied().unwrap_or_default();
    format!(
        "server_name: nats-{at}
listen: 127.0.0.1:{port}
max_payload: 8MB
jetstream {{ store_dir: \"{data}\", sync_interval: always }}
cluster {{ name: roost, listen: 127.0.0.1:{route}, routes: [{urls}] }}
"
    )
}

/// Finds free ports of this machine.
fn free_ports() -> anyhow::Result<[u16; COUNT]> {
    let listeners = [(); COUNT].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let mut ports = [0; COUNT];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}
