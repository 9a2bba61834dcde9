//! Server in a separate process for simulations, so that the measured binary is the one that users run.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Reason why a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Demo for its users.
    Demo,
    /// Server that this process loads and measures.
    Simulation {
        /// Whether a dashboard owns the terminal; nothing else may then be written to it.
        drawn: bool,
    },
}

/// `nice` value of a measured server. The load generator represents other machines and gets priority: otherwise it
/// would send requests late when no processor is idle, and its delay would count as the server's.
const NICENESS: &str = "5";

/// Files for a server that does not start empty.
pub(crate) struct Prepared {
    /// Lines of `roost import`.
    pub(crate) import: PathBuf,
    /// Definitions of ranked feeds, if there are any in addition to the built-in ones.
    pub(crate) feeds: Option<PathBuf>,
}

/// A `roost serve` in open mode on a temporary directory. Ends on drop.
pub(crate) struct RunningServer {
    /// Address for HTTP.
    pub(crate) address: SocketAddr,
    /// Address for Redis clients, if any.
    pub(crate) redis: Option<SocketAddr>,
    _child: Child,
    /// Data directory, removed on drop.
    data: tempfile::TempDir,
}

impl RunningServer {
    /// Data directory of the server.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Starts a server on `listen`, and for Redis clients on `redis`, and waits until it serves. With `prepared`, it
    /// begins with imported data. Its warnings go to this process's standard error, unless `ROOST_LOG` is set.
    ///
    /// # Errors
    /// If the data cannot be imported, or the server cannot be started or does not print its addresses.
    pub(crate) async fn start(
        listen: SocketAddr,
        redis: Option<SocketAddr>,
        purpose: Purpose,
        prepared: Option<&Prepared>,
    ) -> anyhow::Result<Self> {
        // With wider permissions, the server would warn that other users may read its directory.
        let data = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir();
        let data = data.context("no temporary directory")?;
        if let Some(Prepared { import, .. }) = prepared {
            let mut command = command(purpose)?;
            command.arg("import").arg(import).arg("--data").arg(data.path());
            let done = command.stdout(Stdio::null()).kill_on_drop(true).status().await;
            let done = done.context("cannot start an import")?;
            anyhow::ensure!(done.success(), "the import failed: {done}");
        }
        let log = if purpose == (Purpose::Simulation { drawn: true }) { "off" } else { "warn" };
        let feeds = prepared.and_then(|prepared| prepared.feeds.as_deref());
        let mut child = command(purpose)?
            .args(["serve", "--open", "--listen", &listen.to_string(), "--data"])
            .arg(data.path())
            .args(redis.map(|redis| format!("--redis-listen={redis}")))
            .args(feeds.into_iter().flat_map(|feeds| [OsStr::new("--feeds"), feeds.as_os_str()]))
            // Drop `ROOST_` variables, so that the measured server uses the defaults.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| {
                !name.to_string_lossy().starts_with("ROOST_") || name == "ROOST_LOG"
            }))
            .env("ROOST_LOG", std::env::var("ROOST_LOG").unwrap_or_else(|_| log.into()))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C must reach only the simulation, which then ends the server.
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

/// Command for this program, at a lower priority if it is measured and the system has `nice`.
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
