//! Processes of the binary: their output as it arrives, and their exit.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::PATIENCE;
use crate::http::Client;

/// Makes a command that runs `roost`. Works only in tests of the package `roost`, for which cargo builds the binary and
/// provides its path. The command does not inherit variables `ROOST_*`.
#[must_use]
pub fn roost<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let program = std::env::var_os("CARGO_BIN_EXE_roost");
    let mut command = Command::new(program.expect("cargo runs the test, in the package roost"));
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ROOST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Lines of an output; more are added as they arrive.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<(Mutex<Output>, Condvar)>);

#[derive(Debug, Default)]
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
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.1.notify_all();
    }

    /// Waits until `find` returns something for the lines so far; `None` if the output ends first.
    fn wait<T>(&self, mut find: impl FnMut(&Output) -> Option<T>) -> Option<T> {
        let start = Instant::now();
        let (mut lines, mut newest) = (0, start);
        let mut output = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = find(&output) {
                return Some(found);
            }
            if output.lines.len() > lines {
                (lines, newest) = (output.lines.len(), Instant::now());
            }
            // Each new line starts the timeout again, so that a slow process has more time.
            let left = PATIENCE.checked_sub(newest.elapsed());
            let left = left.filter(|_| start.elapsed() < 5 * PATIENCE);
            if output.over {
                return None;
            }
            let left = left.unwrap_or_else(|| panic!("output ended; so far:\n{output}"));
            output = self.0.1.wait_timeout(output, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn text(&self) -> String {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// Running process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    out: Lines,
    err: Lines,
}

/// Output of a process, and its exit.
#[derive(Debug)]
pub struct Ended {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Process {
    /// Starts a command, and reads its output as it arrives.
    pub fn start(command: &mut Command) -> Self {
        Self::try_start(command).unwrap()
    }

    /// Starts a command, and reads its output as it arrives.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn try_start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        Ok(Self { child, out, err })
    }

    /// Process id.
    #[must_use]
    pub fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for a line of standard output that begins with `before`; returns the rest of the line.
    pub fn said(&self, before: &str) -> Option<String> {
        let find = |output: &Output| {
            output.lines.iter().find_map(|line| Some(line.strip_prefix(before)?.to_owned()))
        };
        self.out.wait(find)
    }

    /// Waits until `count` lines of standard output satisfy `is_counted`. Returns false if the process ends before.
    #[must_use]
    pub fn said_count(&self, is_counted: impl Fn(&str) -> bool, count: usize) -> bool {
        let enough = |output: &Output| {
            (output.lines.iter().filter(|line| is_counted(line)).count() >= count).then_some(())
        };
        self.out.wait(enough).is_some()
    }

    /// Waits for a line of the log that contains `part`; `None` if the process ends without one.
    pub fn logged(&self, part: &str) -> Option<String> {
        self.logged_line(|line| line.contains(part))
    }

    /// Waits for the first line of the log for which `wanted` is true; `None` if the process ends without one.
    pub fn logged_line(&self, wanted: impl Fn(&String) -> bool) -> Option<String> {
        self.err.wait(|output| output.lines.iter().find(|line| wanted(line)).cloned())
    }

    /// Log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.err.text()
    }

    /// Maximum resident memory so far, in bytes.
    #[must_use]
    pub fn peak_memory(&self) -> u64 {
        crate::proc::memory(self.child.id()).expect("it runs").peak
    }

    /// Whether the process is running.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills the process, unless it has ended.
    pub fn kill_if_running(&mut self) {
        drop(self.child.kill());
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap();
    }

    /// Stops the process with `kill -9`.
    pub fn kill(self) -> Ended {
        self.signal(Signal::KILL);
        self.ended()
    }

    /// Waits until the process has ended.
    pub fn ended(mut self) -> Ended {
        for lines in [&self.err, &self.out] {
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
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    Process::start(&mut roost(arguments)).ended()
}

/// Running `roost serve`.
#[derive(Debug)]
pub struct Server {
    /// Process of the server.
    pub process: Process,
    /// Address of the HTTP server.
    pub address: SocketAddr,
    /// Key that clients present, if there is one.
    pub key: Option<String>,
}

/// Makes a command that runs `roost serve` on a free port with the data in `data` and more arguments.
pub fn serve(data: &Path, more: &[&str]) -> Command {
    let mut command = roost(["serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(data).args(more);
    command
}

impl Server {
    /// Starts a server in open mode, and waits until it serves.
    pub fn open(data: &Path, more: &[&str]) -> Self {
        Self::start(serve(data, more).arg("--open"))
    }

    /// Starts a server with this command, in open mode or with keys, and waits until it serves.
    pub fn start(command: &mut Command) -> Self {
        let process = Process::start(command);
        let Some(address) = process.said("roost serves http://") else {
            panic!("the server does not start: {:#?}", process.ended());
        };
        Self { address: address.parse().unwrap(), process, key: None }
    }

    /// Client that presents the key, if there is one.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.address, self.key.clone())
    }

    /// Stops the server with SIGTERM, and asserts that it shuts down cleanly.
    pub fn stop(self) -> Ended {
        self.process.signal(Signal::TERM);
        let ended = self.process.ended();
        assert_eq!(ended.status.code(), Some(0), "{ended:#?}");
        ended
    }

    /// Stops the server with `kill -9`.
    pub fn kill(self) -> Ended {
        self.process.kill()
    }
}
