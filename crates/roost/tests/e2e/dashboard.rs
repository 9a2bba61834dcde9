//! Tests of `roost simulate` on a terminal. tmux provides a screen that the tests can read.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, skipped};

/// Interval between two reads of the screen.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Terminal with a shell. It ends on drop, with all its processes.
struct Terminal {
    /// Directory of the socket of this tmux, which is separate from other servers and removed at the end.
    sockets: tempfile::TempDir,
}

impl Terminal {
    /// Starts a terminal of 100 by 30 characters, in which the command runs and then its exit code is printed.
    fn running(command: &str) -> Self {
        let terminal = Self { sockets: tempfile::tempdir().unwrap() };
        // `cat` keeps the terminal open, so that the screen can be read after the command has ended.
        let shell = format!("{command}; echo ended with $?; exec cat");
        let size = ["-x", "100", "-y", "30"];
        let began = terminal.tmux(&[&["new-session", "-d"], &size[..], &[&shell]].concat());
        assert!(began.status.success(), "{began:?}");
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        // Use no settings of this machine, and a type of terminal that every machine has.
        tmux.args(["-L", "roost", "-f", "/dev/null"]).env("TMUX_TMPDIR", self.sockets.path());
        tmux.env("SHELL", "/bin/sh").env("TERM", "xterm-256color");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ROOST_") || name == "TMUX" {
                tmux.env_remove(name);
            }
        }
        tmux.args(arguments).output().unwrap()
    }

    fn screen(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8_lossy(&captured.stdout).replace('\u{a0}', " ")
    }

    /// Waits until the screen contains all of these parts. Returns the screen.
    fn shows(&self, parts: &[&str]) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if parts.iter().all(|part| screen.contains(part)) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "{parts:?} do not all come:\n{screen}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn press(&self, key: &str) {
        assert!(self.tmux(&["send-keys", key]).status.success(), "{key} is pressed");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Starts a simulation of ten minutes. `None` if tmux is not installed.
fn simulation() -> Option<Terminal> {
    if Command::new("tmux").arg("-V").output().is_err() {
        skipped("the dashboard on a terminal: install the package tmux");
        return None;
    }
    let binary = env!("CARGO_BIN_EXE_roost");
    let command = format!("'{binary}' simulate --users 200 --load heavy --duration 10m");
    Some(Terminal::running(&command))
}

#[test]
fn a_simulation_on_a_terminal_has_a_dashboard_and_q_sums_it_up() {
    let Some(terminal) = simulation() else { return };
    let of_run = ["200 users with", "open loop", " of 10 min", "q or Ctrl-C"];
    terminal.shows(&of_run);
    let of_windows =
        ["Requests per second", "Latency: p50 ", "home reads", "memory ", "scheduling delay p99"];
    terminal.shows(&of_windows);
    terminal.tmux(&["resize-window", "-x", "50", "-y", "30"]);
    terminal.shows(&["too small: 50 by 30"]);
    terminal.tmux(&["resize-window", "-x", "100", "-y", "30"]);
    terminal.shows(&of_windows);
    terminal.press("q");
    let screen = terminal.shows(&["the run was cut short", "p99.9 ms", "ended with"]);
    assert!(!screen.contains("Requests per second"), "the screen is as it was:\n{screen}");
}

#[test]
fn ctrl_c_on_the_dashboard_sums_up_too_and_the_terminal_echoes_again() {
    let Some(terminal) = simulation() else { return };
    terminal.shows(&["Requests per second", "q or Ctrl-C"]);
    terminal.press("C-c");
    terminal.shows(&["the run was cut short", "ended with"]);
    // `cat` prints nothing before the end of the line, so what the screen shows is the echo of the terminal.
    terminal.tmux(&["send-keys", "-l", "heard"]);
    terminal.shows(&["heard"]);
}
