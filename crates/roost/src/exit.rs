//! Exit codes, and the line that reports an error.
//!
//! 0 is success, and 2 is clap's code for a wrong command line.

use std::fmt;
use std::process::ExitCode;

use crate::output::note;

/// The command failed.
const ERROR: u8 = 1;
/// The command line or a setting is wrong.
const USAGE: u8 = 2;
/// A simulation finished, and the server failed an objective.
const FAILED: u8 = 3;
/// A simulation finished and is inconclusive.
const INCONCLUSIVE: u8 = 4;

/// Exit codes of `roost simulate` for `--help`.
pub(crate) const HELP: &str = "Exit codes:
  0  success; the objectives are met
  1  error: the command failed
  2  the command line, or a setting, is wrong
  3  the server missed an objective, returned wrong results or refused requests
  4  inconclusive: the generator was late, or the results vary too much";

/// Error with its own exit code.
#[derive(Debug)]
pub(crate) struct Exit {
    code: u8,
    message: String,
}

impl Exit {
    /// Returns an error of the command line that its parser cannot detect.
    pub(crate) fn usage(message: &str) -> anyhow::Error {
        Self { code: USAGE, message: message.to_owned() }.into()
    }

    /// Returns an error of a setting (command line, environment or configuration file) or of a file that a setting
    /// names. Supervisors must not restart the server, because it would fail again.
    pub(crate) fn setting(error: impl Into<anyhow::Error>) -> anyhow::Error {
        Self::usage(&message(&error.into()))
    }

    /// Returns the error for a failed objective.
    pub(crate) fn failed(message: String) -> anyhow::Error {
        Self { code: FAILED, message }.into()
    }

    /// Returns the error for an inconclusive simulation.
    pub(crate) fn inconclusive(why: &str) -> anyhow::Error {
        Self { code: INCONCLUSIVE, message: format!("inconclusive: {why}") }.into()
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Exit {}

/// Prints the error on one line, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    note!("error: {}", message(error));
    ExitCode::from(error.downcast_ref::<Exit>().map_or(ERROR, |exit| exit.code))
}

/// Joins an error and its causes. Skips a cause whose text the error already contains.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn every_cause_is_printed_once() {
        let io = || std::io::Error::other("disk on fire");
        let twice = anyhow::Error::new(io()).context("cannot save: disk on fire");
        assert_eq!(message(&twice), "cannot save: disk on fire");
        let chain =
            Err::<(), _>(io()).context("cannot write x").context("cannot save").unwrap_err();
        assert_eq!(message(&chain), "cannot save: cannot write x: disk on fire");
    }
}
