//! `roost verify`: checks a backup, an archive or a data directory.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use ::backup::BackupError;
use anyhow::Context as _;
use clap::Args;
use node::{ArchiveReport, DataReport};

use super::{data_unless, describe, time};
use crate::exit::Exit;
use crate::key;
use crate::output::out;
use crate::settings::DATA_DIRECTORY;

/// Exit codes for `--help`.
const HELP: &str = "Exit codes:
  0  no damage was found
  1  error: the check could not be made
  2  the command line, or a setting, is wrong
  3  damage was found";
/// Advice about a damaged data directory.
const WAY_OUT: &str = "Copy the readable data to another directory and see what is lost: roost repair --data DATA --out DIR. \
    Or restore the last backup: roost restore BACKUP --data DIR. Keep this directory.";

/// Advice about a damaged archive.
const ARCHIVE_WAY_OUT: &str = "Copy the damaged or missing files back from other copies, or make a backup now: roost \
    backup. Times before the damage can be restored: roost restore BACKUP --archive DIR --to TIME.";

/// Check a backup, an archive, or the data directory of a stopped server.
///
/// Checks the checksums, positions, counts and completeness of a backup. In a data directory, checks every table file,
/// every group of the log, the file of keys, and the time when a server last ran, and that they belong together. In an
/// archive, which a server may write to meanwhile, checks every group of every file, and that no group is missing
/// between files. Changes no data.
#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct Verify {
    /// Backup, archive, or - for a backup on standard input
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Data directory of a stopped server. PATH overrides the environment variable [default: ./roost-data]
    #[arg(long, env = "ROOST_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Checks of one path.
struct Check {
    path: PathBuf,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let data = data_unless(self.data, self.path.as_ref().map(|_| "PATH"))?;
        match self.path {
            Some(path) => Check { path }.made(),
            None => {
                let path = data.unwrap_or_else(|| PathBuf::from(DATA_DIRECTORY));
                key::check_owner(&path)?;
                let report = node::verify(&path);
                let report = report.with_context(|| format!("cannot check {}", path.display()))?;
                Check { path }.directory(report)
            }
        }
    }
}

impl Check {
    fn made(&self) -> anyhow::Result<()> {
        let cannot = || format!("cannot check {}", self.path.display());
        if self.path == Path::new("-") {
            return self.backup(io::stdin().lock());
        }
        if node::is_archive(&self.path) {
            return self.archive(&node::verify_archive(&self.path).with_context(cannot)?);
        }
        if self.path.is_dir() {
            let path = self.path.display();
            return Err(Exit::usage(&format!(
                "{path} is not an archive; check a data directory with --data {path}"
            )));
        }
        let file = File::open(&self.path).with_context(cannot)?;
        self.backup(BufReader::with_capacity(1 << 20, file))
    }

    fn backup(&self, stream: impl Read) -> anyhow::Result<()> {
        match ::backup::verify(stream) {
            Ok((header, summary)) => {
                out!("{}: no damage", self.path.display());
                out!("{} bytes, {}", summary.total_bytes, describe(&header, &summary));
                Ok(())
            }
            Err(error @ (BackupError::Truncated { .. } | BackupError::Damaged { .. })) => {
                out!("{}: {error}", self.path.display());
                out!(
                    "This backup cannot be restored. Use another backup, or make one: roost backup."
                );
                Err(Exit::failed("damage was found".to_owned()))
            }
            Err(error) => {
                Err(error).with_context(|| format!("cannot check {}", self.path.display()))
            }
        }
    }

    fn archive(&self, report: &ArchiveReport) -> anyhow::Result<()> {
        let path = self.path.display();
        match report.positions {
            None => out!("{path}: an archive without groups"),
            Some((first, last)) => out!(
                "{path}: {} files with the groups {first} to {last}, from {} to {}",
                report.files,
                time(report.times_ms.0),
                time(report.times_ms.1)
            ),
        }
        if report.damage.is_empty() {
            out!("{path}: no damage");
            return Ok(());
        }
        report.damage.iter().for_each(|what| out!("{}", causes(what)));
        out!("{ARCHIVE_WAY_OUT}");
        Err(Exit::failed("damage was found".to_owned()))
    }

    fn directory(&self, report: DataReport) -> anyhow::Result<()> {
        let path = self.path.display();
        let mut damage = Vec::new();
        match report.store {
            Ok(store) => {
                out!(
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
            Err(error) => damage.push(error),
        }
        damage.extend(report.last_run.err().map(|error| causes(&error)));
        damage.extend(report.entries);
        match report.log {
            Ok(log) => {
                out!("{path}/log: groups up to {} in {} files", log.last.0, log.segments);
            }
            Err(error) => damage.push(causes(&error)),
        }
        if let Some(files) = report.files {
            out!("{path}/media: {} files of pictures, {} bytes", files.files, files.bytes);
            damage.extend(files.damage);
        }
        if let Err(error) = key::check(&self.path) {
            damage.push(format!("{error:#}"));
        }
        if damage.is_empty() {
            out!("{path}: no damage");
            return Ok(());
        }
        damage.iter().for_each(|what| out!("{what}"));
        out!("{WAY_OUT}");
        Err(Exit::failed("damage was found".to_owned()))
    }
}

/// Formats the causes of an error.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
