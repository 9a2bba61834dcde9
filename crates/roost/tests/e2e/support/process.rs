//! Processes of the binary: their output as it comes, and how they end.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::PATIENCE;
use super::http::Client;

/// The binary with these arguments. No setting of this shell reaches it.
pub(crate) fn roost<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roost"));
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ROOST_") {
            command.env_remove(name);
        }
    }
    command
}

/// The lines of an output, filled as they come.
#[derive(Clone, Default)]
struct Lines(Arc<(Mutex<Output>, Condvar)>);

#[derive(Default)]
struct Output {
    lines: Vec<String>,
    over: bool,
}

impl Lines {
    fn of(output: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let filled = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                filled.update(|output| output.lines.push(line));
            }
            filled.update(|output| output.over = true);
        });
        lines
    }

    fn update(&self, change: impl FnOnce(&mut Output)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    /// The first that `find` finds in the lines so far and to come; `None` if the output ends.
    fn wait<T>(&self, mut find: impl FnMut(&Output) -> Option<T>) -> Option<T> {
        let start = Instant::now();
        let mut output = self.0.0.lock().unwrap();
        loop {
            if let Some(found) = find(&output) {
                return Some(found);
            }
            let left = PATIENCE.checked_sub(start.elapsed());
            if output.over {
                return None;
            }
            let left = left.unwrap_or_else(|| panic!("no more output; so far:\n{output}"));
            output = self.0.1.wait_timeout(output, left).unwrap().0;
        }
    }

    fn text(&self) -> String {
        self.0.0.lock().unwrap().to_string()
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// A running process; killed when dropped.
pub(crate) struct Process {
    child: Child,
    out: Lines,
    err: Lines,
}

/// How a process ended, and its output.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// What follows `before` on the first line of standard output that begins with it.
    pub(crate) fn said(&self, before: &str) -> Option<String> {
        let find = |output: &Output| {
            output.lines.iter().find_map(|line| Some(line.strip_prefix(before)?.to_owned()))
        };
        self.out.wait(find)
    }

    /// Waits for a line of the log that holds `part`; `None` if the process ends without one.
    pub(crate) fn logged(&self, part: &str) -> Option<String> {
        self.logged_line(|line| line.contains(part))
    }

    /// As [`Process::logged`], for the first line that is `wanted`.
    pub(crate) fn logged_line(&self, wanted: impl Fn(&String) -> bool) -> Option<String> {
        self.err.wait(|output| output.lines.iter().find(|line| wanted(line)).cloned())
    }

    /// The most memory that it has had resident so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.id().as_raw_nonzero());
        let status = std::fs::read_to_string(path).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        peak.unwrap_or_else(|| panic!("no peak: {status}")).parse::<u64>().unwrap() << 10
    }

    /// Whether it has not ended.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills it, unless it has ended.
    pub(crate) fn kill_if_running(&mut self) {
        drop(self.child.kill());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap();
    }

    /// Waits until it has ended.
    pub(crate) fn ended(mut self) -> Ended {
        for lines in [&self.out, &self.err] {
            lines.wait(|_| None::<()>);
        }
        let status = self.child.wait().unwrap();
        Ended { status, out: self.out.text(), err: self.err.text() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("standard error of a process:\n{}", self.err.text());
        }
    }
}

/// Runs the binary to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    Process::start(&mut roost(arguments)).ended()
}

/// A `roost serve` that serves.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    /// What clients present.
    pub(crate) key: Option<String>,
}

/// `roost serve` on a free port and the data in `data`, with more arguments.
pub(crate) fn serve(data: &Path, more: &[&str]) -> Command {
    let mut command = roost(["serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(data).args(more);
    command
}

impl Server {
    /// Starts one in open mode and waits until it serves.
    pub(crate) fn open(data: &Path, more: &[&str]) -> Self {
        Self::start(serve(data, more).arg("--open"))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let process = Process::start(command);
        let Some(address) = process.said("roost serves http://") else {
            panic!("the server does not start: {:#?}", process.ended());
        };
        Self { address: address.parse().unwrap(), process, key: None }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, self.key.clone())
    }

    /// Ends it with SIGTERM, which must be a clean shutdown.
    pub(crate) fn stop(self) -> Ended {
        self.process.signal(Signal::TERM);
        let ended = self.process.ended();
        assert_eq!(ended.status.code(), Some(0), "{ended:#?}");
        ended
    }

    /// Ends it with `kill -9`.
    pub(crate) fn kill(self) -> Ended {
        self.process.signal(Signal::KILL);
        self.process.ended()
    }
}
