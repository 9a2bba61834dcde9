//! `roost export`: writes all data as lines of JSON, from a data directory, a backup, or a running server.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use anyhow::Context as _;
use clap::Args;
use node::{NodeOptions, TransferCounts};
use tempfile::{NamedTempFile, TempDir};

use super::backup::{PIECES_MAX, Pieces, fetch};
use crate::permissions;
use crate::simulate::target;

/// Export all data as lines of JSON, for `roost import` and other programs.
///
/// Exports the data directory of a stopped server, a backup, or a running server, of which it first makes a backup. A
/// backup is restored into a temporary directory next to the output file (or in the system's directory for temporary
/// files), which needs as much disk as the data and is removed afterwards.
///
/// To export a running server, set the environment variable ROOST_TARGET_KEY to an application key with the scope
/// `admin`.
///
/// All data that users can see is exported, with exact ids, times and expiry. Application keys and idempotency keys
/// are not exported. docs/import.md describes the lines.
#[derive(Args)]
pub(crate) struct Export {
    /// URL of the running server
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8998",
        conflicts_with_all = ["data", "backup"]
    )]
    server: String,
    /// Trusted certificate authorities for an https server, in a PEM file [default: those of the
    /// system]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "backup"])]
    ca: Option<PathBuf>,
    /// Data directory of a stopped server
    #[arg(long, value_name = "DIR", conflicts_with = "backup")]
    data: Option<PathBuf>,
    /// Backup to export
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
    /// File to write, or - for standard output. An existing file is replaced
    #[arg(long, value_name = "FILE", default_value = "-")]
    to: PathBuf,
}

impl Export {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        permissions::keep_new_files_private();
        let folder = match self.to.parent() {
            _ if self.to == Path::new("-") => std::env::temp_dir(),
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let cannot = || format!("cannot write to {}", folder.display());
        let (data, _restored) = match &self.data {
            Some(data) => (data.clone(), None),
            None => {
                let restored = TempDir::with_prefix_in("roost-export-", &folder);
                let restored = restored.with_context(cannot)?;
                let data = restored.path().join("data");
                self.restore(&data).await?;
                (data, Some(restored))
            }
        };
        let to = self.to.clone();
        let counts = tokio::task::spawn_blocking(move || -> anyhow::Result<TransferCounts> {
            if to == Path::new("-") {
                return write(&data, io::stdout().lock());
            }
            let cannot = || format!("cannot write {}", to.display());
            let file = NamedTempFile::new_in(&folder).with_context(cannot)?;
            let counts = write(&data, file.as_file())?;
            file.as_file().sync_all().with_context(cannot)?;
            file.persist(&to).with_context(cannot)?;
            File::open(&folder).and_then(|folder| folder.sync_all()).with_context(cannot)?;
            Ok(counts)
        });
        // Standard output may be the export.
        let counts = counts.await??;
        eprintln!("exported {counts}");
        if counts.pictures > 0 {
            eprintln!(
                "the files of pictures are not in it: copy the directory media of the data directory as well"
            );
        }
        Ok(())
    }

    /// Restores the given backup, or one of the running server, to the directory `data`.
    async fn restore(&self, data: &Path) -> anyhow::Result<()> {
        if let Some(backup) = &self.backup {
            let file = File::open(backup);
            let file = file.with_context(|| format!("cannot read {}", backup.display()))?;
            let (file, data) = (BufReader::with_capacity(1 << 20, file), data.to_owned());
            return tokio::task::spawn_blocking(move || restored(file, &data)).await?;
        }
        let target = target::parse(&self.server, self.ca.as_deref())?;
        let (sender, pieces) = sync_channel(PIECES_MAX);
        let (pieces, data) = (Pieces::new(pieces), data.to_owned());
        let restoring = tokio::task::spawn_blocking(move || restored(pieces, &data));
        let mut each = |bytes: &[u8]| {
            sender.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe.into())
        };
        let fetched = fetch(&target, &mut each).await;
        drop(sender);
        match (fetched, restoring.await?) {
            (Ok(()), restored) => restored,
            // The restore ended first.
            (Err(_), Err(error)) if !is_truncated(&error) => Err(error),
            (Err(error), _) => Err(error).context("cannot receive the backup"),
        }
    }
}

/// Whether the error is about a truncated backup.
fn is_truncated(error: &anyhow::Error) -> bool {
    let truncated =
        |error: &::backup::BackupError| matches!(error, ::backup::BackupError::Truncated { .. });
    error.chain().any(|cause| cause.downcast_ref().is_some_and(truncated))
}

fn restored(stream: impl Read, data: &Path) -> anyhow::Result<()> {
    // Application keys are not exported.
    node::restore(stream, data, (None, None), |_| Ok(())).context("cannot restore the backup")?;
    Ok(())
}

fn write(data: &Path, out: impl Write) -> anyhow::Result<TransferCounts> {
    crate::key::check_owner(data)?;
    let exported = node::export(&NodeOptions::new(data), env!("CARGO_PKG_VERSION"), out);
    exported.with_context(|| format!("cannot export {}", data.display()))
}
