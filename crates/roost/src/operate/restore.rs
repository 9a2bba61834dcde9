//! `roost restore`: creates a data directory from a backup.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use node::RestoreOptions;

use super::{describe, time};
use crate::output::out;
use crate::settings::DATA_DIRECTORY;
use crate::{key, permissions};

/// Restore a backup into a new data directory.
///
/// The backup is checked while it is read. A server refuses the directory of an unfinished restore: remove it.
///
/// With --archive, all later changes in the archive are added. With --to, changes after that time are omitted: the time
/// must be between the checkpoint of the backup and the end of the backup or archive.
#[derive(Args)]
pub(crate) struct Restore {
    /// Backup to restore, or - for standard input
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// Data directory to create; it must be empty or missing
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", default_value = DATA_DIRECTORY)]
    data: PathBuf,
    /// Archive of the server (`roost serve --archive`). It may also contain files older than the backup
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// Time to restore, for example 2026-11-22T12:30:00Z. Later changes are omitted
    #[arg(long = "to", value_name = "TIME")]
    until: Option<Timestamp>,
    /// Apply a log of another build with the rules of this build, even if some changes then have other outcomes than
    /// those that clients received. Better: restore with the build that made the backup
    #[arg(long)]
    accept_other_outcomes: bool,
}

impl Restore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        permissions::keep_new_files_private();
        let stream: Box<dyn Read> = if self.backup == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(&self.backup);
            let file = file.with_context(|| format!("cannot read {}", self.backup.display()))?;
            Box::new(BufReader::with_capacity(1 << 20, file))
        };
        let until_ms = self.until.map(|until| u64::try_from(until.as_millisecond()));
        let until_ms = until_ms.transpose().context("--to must be a time after 1970")?;
        let keys = |file: &[u8]| key::restore(&self.data, file);
        let accept_other_outcomes = self.accept_other_outcomes;
        let from =
            RestoreOptions { archive: self.archive.as_deref(), until_ms, accept_other_outcomes };
        let restored = node::restore(stream, &self.data, from, keys);
        let restored =
            restored.with_context(|| format!("cannot restore {}", self.backup.display()))?;
        let (users, posts, follows) = restored.counts;
        out!(
            "restored {}: {users} users, {posts} posts, {follows} follows; up to group {} ({})\nfrom {}",
            self.data.display(),
            restored.last,
            time(restored.last_ms),
            describe(&restored.header, &restored.summary)
        );
        if let Some(group) = restored.other_outcomes {
            out!(
                "group {group}, and perhaps later groups, has other outcomes than another build acknowledged"
            );
        }
        if restored.missing_files > 0 {
            out!(
                "{} files of pictures are missing. Copy the directory media of the old data directory, or of a later \
                 backup, into {}: equal names are equal files",
                restored.missing_files,
                self.data.display()
            );
        }
        Ok(())
    }
}
