//! `roost export`: writes all data as lines of JSON, from a data directory, a backup, or a running server.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use node::{NodeOptions, RestoreOptions, TransferCounts};
use tempfile::TempDir;

use super::backup::{fetched, server};
use super::data_unless;
use crate::files::OutputFile;
use crate::output::note;
use crate::permissions;
use crate::simulate::target;

/// Export all data as lines of JSON, for `roost import` and other programs.
///
/// Reads the data directory of a stopped server, or a backup, or a running server, which is backed up first. A backup
/// is restored into a temporary directory next to the output file (or in the system's temporary directory), which needs
/// as much disk space as the data.
///
/// To export a running server, set the environment variable ROOST_SERVER_KEY to an application key with the scope
/// `admin`.
///
/// Exports all data that users can see, with exact ids, times and expiry, but no application keys or idempotency keys.
/// docs/import.md describes the lines.
#[derive(Args)]
pub(crate) struct Export {
    /// URL of the running server [default: http://127.0.0.1:8998, unless there is --data or --backup]
    #[arg(long, value_name = "URL", conflicts_with = "backup")]
    server: Option<String>,
    /// Trusted certificate authorities for an https server, in a PEM file [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,
    /// Data directory of a stopped server. --server and --backup override the environment variable
    #[arg(long, env = "ROOST_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Backup to export
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
    /// File to write, or - for standard output. An existing file is replaced
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

impl Export {
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let other = self.server.as_ref().map(|_| "--server");
        self.data = data_unless(self.data, other.or(self.backup.as_ref().map(|_| "--backup")))?;
        permissions::keep_new_files_private();
        let folder = match self.out.parent() {
            _ if self.out == Path::new("-") => std::env::temp_dir(),
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let out = match self.out == Path::new("-") {
            true => None,
            false => Some(OutputFile::open(&self.out, false)?),
        };
        // Next to a device or a pipe there is no place for temporary files.
        let folder = match &out {
            Some(out) if !out.is_regular() => std::env::temp_dir(),
            _ => folder,
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
        let counts = tokio::task::spawn_blocking(move || -> anyhow::Result<TransferCounts> {
            let Some(out) = out else { return write(&data, io::stdout().lock()) };
            let counts = write(&data, out.file())?;
            out.complete()?;
            Ok(counts)
        });
        // Messages go to standard error, because standard output may be the export.
        let counts = counts.await??;
        note!("exported {counts}");
        if counts.pictures > 0 {
            note!(
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
        let target = target::parse(server(self.server.as_deref()), self.ca.as_deref())?;
        let data = data.to_owned();
        fetched(&target, move |pieces| restored(pieces, &data)).await
    }
}

fn restored(stream: impl Read, data: &Path) -> anyhow::Result<()> {
    // Application keys are not exported.
    node::restore(stream, data, RestoreOptions::default(), |_| Ok(()))
        .context("cannot restore the backup")?;
    Ok(())
}

fn write(data: &Path, out: impl Write) -> anyhow::Result<TransferCounts> {
    crate::key::check_owner(data)?;
    let exported = node::export(&NodeOptions::new(data), env!("CARGO_PKG_VERSION"), out);
    exported.with_context(|| format!("cannot export {}", data.display()))
}
