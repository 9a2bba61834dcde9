//! `roost repair`: creates a data directory from the readable data of a damaged one.

use std::io;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use node::{OpenError, RepairError};

use crate::exit::Exit;
use crate::output::out;
use crate::settings::DATA_DIRECTORY;
use crate::{key, permissions};

/// Exit codes for `--help`.
const HELP: &str = "Exit codes:
  0  nothing is lost
  1  error: no usable directory was created. Remove what is there, and try again
  2  the command line, or a setting, is wrong
  3  the directory was created, but some data is lost, as printed";

/// Create a data directory from the readable data of a damaged one.
///
/// The server of the damaged directory must be stopped. The damaged directory is not changed. Nothing is lost if the
/// log still has the changes of the damaged part of the store. Otherwise the command keeps all readable rows, computes
/// derived rows (indexes, counts, the other direction of a follow) again, and prints what is lost.
#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct Repair {
    /// Damaged data directory
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", default_value = DATA_DIRECTORY)]
    data: PathBuf,
    /// Data directory to create; it must be empty or missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Discard the log after this group. Without this option, the command refuses a directory whose log cannot be read
    /// to its end, and prints the possible loss
    #[arg(long, value_name = "GROUP")]
    drop_after: Option<u64>,
    /// Apply a log of another build with the rules of this build, even if some changes then have other outcomes than
    /// those that clients received
    #[arg(long)]
    accept_other_outcomes: bool,
}

impl Repair {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        permissions::keep_new_files_private();
        let mut keys = Keys::Copied;
        let copy_keys = || {
            keys = self.copy_keys()?;
            Ok(())
        };
        let accepted = (self.drop_after, self.accept_other_outcomes);
        let repaired = node::repair(&self.data, &self.out, accepted, copy_keys);
        let mut repaired = repaired
            .map_err(hint)
            .with_context(|| format!("cannot repair {}", self.data.display()))?;
        if let Keys::Lost(error) = &keys {
            repaired.lost.push(format!("the application keys: {error}"));
        }
        let print = |head: &str, lines: &[String]| {
            if !lines.is_empty() {
                out!("{head}:");
                lines.iter().for_each(|line| out!("  {line}"));
            }
        };
        print("damage", &repaired.damage);
        print("corrected", &repaired.corrected);
        print("lost", &repaired.lost);
        let to = self.out.display();
        if !matches!(keys, Keys::Copied) {
            out!(
                "{to} has no application keys; create one with roost key create NAME --data {to} --scope admin"
            );
        }
        let ((checkpoint, last), (users, posts, follows)) = (repaired.positions, repaired.counts);
        out!(
            "created {to} from the checkpoint at group {checkpoint} and the log up to group {last}: {users} users, \
             {posts} posts, {follows} follows"
        );
        if repaired.lost.is_empty() {
            out!("nothing is lost; start the server with --data {to}");
            return Ok(());
        }
        out!("start the server with --data {to}, and keep {}", self.data.display());
        Err(Exit::failed("some data is lost".to_owned()))
    }

    /// Copies the file of application keys if it is intact.
    fn copy_keys(&self) -> io::Result<Keys> {
        match key::check(&self.data) {
            Ok(true) => {
                let file = std::fs::read(key::path(&self.data))?;
                key::restore(&self.out, &file)?;
                Ok(Keys::Copied)
            }
            Ok(false) => Ok(Keys::Missing),
            Err(error) => Ok(Keys::Lost(format!("{error:#}"))),
        }
    }
}

/// State of the damaged directory's file of application keys.
enum Keys {
    Copied,
    Missing,
    /// Unreadable, for this reason.
    Lost(String),
}

fn hint(error: RepairError) -> anyhow::Error {
    let advice = match &error {
        RepairError::Open(OpenError::NotEmpty(_)) => {
            Some("--out must be a directory that is empty or missing")
        }
        RepairError::Store(_) => Some("restore the last backup with roost restore"),
        _ => None,
    };
    let error = anyhow::Error::new(error);
    match advice {
        Some(advice) => error.context(advice),
        None => error,
    }
}
