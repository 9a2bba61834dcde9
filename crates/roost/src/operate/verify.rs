//! `roost verify`: checks a backup or a data directory.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use ::backup::BackupError;
use anyhow::Context as _;
use clap::Args;
use node::DataReport;

use super::describe;
use crate::exit::Exit;

/// For `--help`.
const HELP: &str = "Exit codes:
  0  no damage was found
  1  error: it could not be checked
  2  the command line is wrong
  3  damage was found";
/// The way out after damage to a data directory.
const WAY_OUT: &str = "Make another directory of what can be read, and see what is lost: roost repair DATA --to DIR. \
    Or restore the last backup: roost restore BACKUP --data DIR. Keep this directory.";

/// Check a backup, or the data directory of a stopped server.
///
/// Of a backup, everything: checksums, positions, counts, and that it is complete. Of a data directory, every file of
/// rows and every group of the log, and that they belong together. Changes no data.
#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct Verify {
    /// Backup, data directory, or - for a backup on standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Verify {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let cannot = || format!("cannot check {}", self.path.display());
        if self.path == Path::new("-") {
            return self.backup(io::stdin().lock());
        }
        if self.path.is_dir() {
            return self.directory(node::verify(&self.path).with_context(cannot)?);
        }
        let file = File::open(&self.path).with_context(cannot)?;
        self.backup(BufReader::with_capacity(1 << 20, file))
    }

    fn backup(&self, stream: impl Read) -> anyhow::Result<()> {
        match ::backup::verify(stream) {
            Ok((header, summary)) => {
                println!("{}: no damage", self.path.display());
                println!("{} bytes, {}", summary.bytes, describe(&header, &summary));
                Ok(())
            }
            Err(error @ (BackupError::Truncated { .. } | BackupError::Damaged { .. })) => {
                println!("{}: {error}", self.path.display());
                println!(
                    "Nothing of it can be restored. Use another backup, or make one: roost backup."
                );
                Err(Exit::failed("damage was found".to_owned()))
            }
            Err(error) => {
                Err(error).with_context(|| format!("cannot check {}", self.path.display()))
            }
        }
    }

    fn directory(&self, report: DataReport) -> anyhow::Result<()> {
        let path = self.path.display();
        let mut damage = Vec::new();
        match report.store {
            Ok(store) => {
                println!(
                    "{path}/store: {} rows in {} files, up to group {}: {} users, {} posts, {} follows, {} keys",
                    store.rows,
                    store.files,
                    store.applied,
                    store.counted.users,
                    store.counted.posts,
                    store.counted.follows,
                    store.keys
                );
                damage.extend(store.damage);
            }
            Err(error) => damage.push(format!("{:#}", anyhow::Error::new(error))),
        }
        match report.log {
            Ok(log) => {
                println!("{path}/log: groups up to {} in {} files", log.last.0, log.segments);
            }
            Err(error) => damage.push(format!("{:#}", anyhow::Error::new(error))),
        }
        if damage.is_empty() {
            println!("{path}: no damage");
            return Ok(());
        }
        damage.iter().for_each(|what| println!("{what}"));
        println!("{WAY_OUT}");
        Err(Exit::failed("damage was found".to_owned()))
    }
}
