//! Peers: programs in other languages that implement some of the designs, for a comparison of runtimes. A peer gets its
//! workload in files, prints the measured times, and writes its answers to a file. The answers are checked like those
//! of the other designs.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether all of these programs are in `PATH`.
pub(crate) fn are_installed(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    programs.iter().all(has)
}

/// Runs a program in a folder; returns its output. Blocks.
///
/// # Errors
/// If it cannot be started, or fails. The error contains its error output.
pub(crate) fn printed(command: &mut Command, folder: &Path) -> io::Result<String> {
    let output = command.current_dir(folder).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let program = command.get_program().display();
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{program} failed: {text}{error}")));
    }
    Ok(text)
}

/// Parses the two numbers that a peer prints: duration and processor time, in nanoseconds.
///
/// # Errors
/// If the output has another form.
pub(crate) fn times(printed: &str) -> io::Result<(u64, u64)> {
    let numbers: Vec<u64> =
        printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [wall_ns, cpu_ns] => Ok((wall_ns, cpu_ns)),
        _ => Err(io::Error::other(format!("the peer printed no times: {printed}"))),
    }
}
