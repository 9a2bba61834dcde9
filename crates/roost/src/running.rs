//! A server in a separate process, for simulations: the measured binary is the one that users run.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Why a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For users of the demo.
    Demo,
    /// To be driven and measured by this process.
    Simulation {
        /// Whether a dashboard is on the terminal, so that nothing else may be written to it.
        drawn: bool,
    },
}

/// The `nice` value of a server that is driven. The load generator represents other machines: without
/// idle processor time it would otherwise be late, and its delay would count as the server's.
const NICENESS: &str = "5";

/// A `roost serve` in open mode on a temporary directory. Ends when dropped.
pub(crate) struct RunningServer {
    /// The address of HTTP.
    pub(crate) address: SocketAddr,
    /// The address for Redis clients, if any.
    pub(crate) redis: Option<SocketAddr>,
    _child: Child,
    /// Its data directory, removed on drop.
    data: tempfile::TempDir,
}

impl RunningServer {
    /// Its data directory.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Starts one on `listen`, and for Redis clients on `redis`, and waits until it serves. Unless
    /// `ROOST_LOG` says otherwise it logs warnings to our standard error output.
    ///
    /// # Errors
    /// If it cannot be started or does not say where it listens.
    pub(crate) async fn start(
        listen: SocketAddr,
        redis: Option<SocketAddr>,
        purpose: Purpose,
    ) -> anyhow::Result<Self> {
        // Closed to other users of the machine, as the server asks for.
        let data = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir();
        let data = data.context("no temporary directory")?;
        let log = if purpose == (Purpose::Simulation { drawn: true }) { "off" } else { "warn" };
        let mut child = command(purpose)?
            .args(["serve", "--open", "--listen", &listen.to_string(), "--data"])
            .arg(data.path())
            .args(redis.map(|redis| format!("--redis-listen={redis}")))
            // A simulation measures the defaults, whatever this shell sets for other servers.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| {
                !name.to_string_lossy().starts_with("ROOST_") || name == "ROOST_LOG"
            }))
            .env("ROOST_LOG", std::env::var("ROOST_LOG").unwrap_or_else(|_| log.into()))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for the simulation, which then ends the server.
            .process_group(0)
            .spawn()
            .context("cannot start a server")?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let mut redis = None;
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = line.strip_prefix("roost serves redis://") {
                redis = Some(address.parse()?);
            } else if let Some(address) = line.strip_prefix("roost serves http://") {
                return Ok(Self { address: address.parse()?, redis, _child: child, data });
            }
        }
        anyhow::bail!("the server ended before it served: {}", child.wait().await?)
    }
}

/// This program, at a lower priority if it is driven and the system has `nice`.
fn command(purpose: Purpose) -> anyhow::Result<Command> {
    let program = std::env::current_exe()?;
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let nice = std::env::split_paths(&paths).map(|path| path.join("nice"));
    match nice.into_iter().find(|nice| purpose != Purpose::Demo && nice.is_file()) {
        Some(nice) => {
            let mut command = Command::new(nice);
            command.args(["-n", NICENESS]).arg(program);
            Ok(command)
        }
        None => Ok(Command::new(program)),
    }
}
