//! Processes of `nats-server`: a single one, or a cluster of three.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::machine::SmallDisk;
use crate::process::Process;
use crate::skipped;

/// Finds a program where `cargo xtask test --install` puts it, or in `PATH`. If it is missing, reports a skipped test,
/// which is a failure in CI (with `ROOST_NO_SKIP`).
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(here, PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [target.join("fetched/nats")].into_iter().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        skipped(&format!("{name} is missing: cargo xtask test --install builds it with Go"));
    }
    found
}

/// Running servers. Their data is removed at the end.
pub struct NatsServers {
    program: PathBuf,
    servers: Vec<Server>,
    /// Small disk for the data of the last server, if requested.
    disk: Option<SmallDisk>,
    folder: TempDir,
}

struct Server {
    port: u16,
    /// Process of the server; `None` while it is down.
    process: Option<Process>,
}

impl NatsServers {
    /// Starts `count` servers with JetStream that sync always, and waits until they work. `settings` are added to the
    /// configuration of each. If the program is missing, reports a skipped test and returns `None`.
    #[must_use]
    pub fn start(count: usize, settings: &str) -> Option<Self> {
        let jetstream = "jetstream { store_dir: \"DIR\", sync_interval: always }\n";
        Self::start_with(count, &format!("{jetstream}{settings}"))
    }

    /// Starts `count` servers. `settings` is their whole configuration, except names and addresses; `DIR` in it is
    /// replaced by a folder of the server. If the program is missing, reports a skipped test and returns `None`.
    #[must_use]
    pub fn start_with(count: usize, settings: &str) -> Option<Self> {
        Self::configured(count, settings, None)
    }

    /// Starts `count` servers. The data of the last is on a disk of `bytes` bytes, if this user can mount one. The
    /// servers do not advertise addresses, so clients use only the addresses they are given, which may be those of
    /// proxies. If the program is missing, reports a skipped test and returns `None`.
    #[must_use]
    pub fn with_small_disk(count: usize, settings: &str, bytes: usize) -> Option<Self> {
        let jetstream = "jetstream { store_dir: \"DIR\", sync_interval: always }\n";
        Self::configured(count, &format!("{jetstream}{settings}"), Some(bytes))
    }

    fn configured(count: usize, settings: &str, disk: Option<usize>) -> Option<Self> {
        let program = program("nats-server")?;
        let folder = tempfile::tempdir().unwrap();
        let (ports, routes) = (free_ports(count), free_ports(count));
        let urls: Vec<String> =
            routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        for (at, (port, route)) in ports.iter().zip(&routes).enumerate() {
            let data = folder.path().join(at.to_string());
            fs::create_dir(&data).unwrap();
            let mut text = format!("server_name: s{at}\nlisten: 127.0.0.1:{port}\n");
            text += &settings.replace("DIR", data.to_str().unwrap());
            if count > 1 {
                let (urls, hides) = (urls.join(", "), disk.is_some());
                text += &format!(
                    "\ncluster {{ name: test, no_advertise: {hides}, listen: 127.0.0.1:{route}, routes: [{urls}] }}\n"
                );
            }
            fs::write(folder.path().join(format!("{at}.conf")), text).unwrap();
        }
        let servers = ports.into_iter().map(|port| Server { port, process: None }).collect();
        let last = folder.path().join((count - 1).to_string());
        let disk = disk.and_then(|bytes| SmallDisk::new(&last, bytes));
        let mut servers = Self { program, servers, disk, folder };
        (0..count).for_each(|at| servers.launch(at));
        (0..count).for_each(|at| servers.wait(at));
        Some(servers)
    }

    /// Comma-separated addresses of all servers.
    #[must_use]
    pub fn urls(&self) -> String {
        let urls = (0..self.servers.len()).map(|at| self.url(at));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Number of servers, including those that are down.
    #[must_use]
    pub fn count(&self) -> usize {
        self.servers.len()
    }

    /// Address of one server.
    #[must_use]
    pub fn url(&self, at: usize) -> String {
        format!("nats://127.0.0.1:{}", self.servers[at].port)
    }

    /// Stops a server with `kill -9`.
    pub fn kill(&mut self, at: usize) {
        drop(self.servers[at].process.take().expect("it runs").kill());
    }

    /// Starts a server that was killed, and waits until it works.
    pub fn restart(&mut self, at: usize) {
        self.launch(at);
        self.wait(at);
    }

    /// Path on the small disk, if there is one.
    #[must_use]
    pub fn on_small_disk(&self, name: &str) -> Option<PathBuf> {
        Some(self.disk.as_ref()?.outside(name))
    }

    /// Sends a signal to a server.
    pub fn signal(&self, at: usize, signal: Signal) {
        self.servers[at].process.as_ref().expect("it runs").signal(signal);
    }

    fn launch(&mut self, at: usize) {
        let config = self.folder.path().join(format!("{at}.conf"));
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(config);
        if let Some(disk) = self.disk.as_ref().filter(|_| at + 1 == self.servers.len()) {
            command = disk.inside(&command);
        }
        command.stdin(Stdio::null());
        self.servers[at].process = Some(Process::start(&mut command));
    }

    fn wait(&mut self, at: usize) {
        let process = self.servers[at].process.as_ref().expect("the child was launched");
        if process.logged("Server is ready").is_none() {
            panic!(
                "nats-server does not start: {:#?}",
                self.servers[at].process.take().map(Process::ended)
            );
        }
    }
}

/// Runs the program `nats` against a server. Panics if it fails, and returns its output; `None` if the program is
/// missing.
#[must_use]
pub fn nats<S: AsRef<OsStr>>(url: &str, arguments: impl IntoIterator<Item = S>) -> Option<String> {
    let mut command = Command::new(program("nats")?);
    let home = tempfile::tempdir().unwrap();
    command.env("NATS_URL", url).env("XDG_CONFIG_HOME", home.path()).stdin(Stdio::null());
    let output = command.args(arguments).output().unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{text}");
    Some(text)
}

/// Free ports, all distinct.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}
