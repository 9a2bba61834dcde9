//! `roost import`: creates a data directory from an export, or from a file of the same format.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use node::{NodeOptions, SetBack};

use crate::output::out;
use crate::permissions;
use crate::settings::{DATA_DIRECTORY, duration};

/// Create a data directory from an export, or from another program's file in the same format.
///
/// Ids, times and expiry are kept; missing ones are assigned in the order of the lines. Every line is validated like a
/// request to the server. The import ends at the first invalid line and prints its number. A server refuses the
/// directory of an unfinished import: remove it.
///
/// docs/import.md describes the lines.
#[derive(Args)]
pub(crate) struct Import {
    /// File to import, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Data directory to create; it must be empty or missing
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", default_value = DATA_DIRECTORY)]
    data: PathBuf,
    /// Time by which the clock was wrong (ahead), for example 87672h. Times and ids from --set-back-from on are reduced
    /// by it and keep their order
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "set_back_from")]
    set_back: Option<Duration>,
    /// Time between the last correct and the first wrong time, for example 2030-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", requires = "set_back")]
    set_back_from: Option<Timestamp>,
}

impl Import {
    fn set_back(&self) -> anyhow::Result<Option<SetBack>> {
        let (Some(by), Some(from)) = (self.set_back, self.set_back_from) else { return Ok(None) };
        let from_ms = u64::try_from(from.as_millisecond());
        let from_ms = from_ms.context("--set-back-from must be a time after 1970")?;
        let by_ms = u64::try_from(by.as_millis()).context("--set-back is too long")?;
        Ok(Some(SetBack { from_ms, by_ms }))
    }

    pub(crate) fn run(&self) -> anyhow::Result<()> {
        permissions::keep_new_files_private();
        let stream: Box<dyn Read> = if self.file == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(&self.file);
            let file = file.with_context(|| format!("cannot read {}", self.file.display()))?;
            Box::new(file)
        };
        let set_back = self.set_back()?;
        let import = || node::import(&NodeOptions::new(&self.data), stream);
        let imported = SetBack::during(set_back, import);
        let imported = imported.with_context(|| {
            format!("cannot import {} into {}", self.file.display(), self.data.display())
        })?;
        out!("imported {} into {}", imported, self.data.display());
        if imported.pictures > 0 {
            out!(
                "the files of pictures are not in an export: copy the directory media of the old data directory into {}",
                self.data.display()
            );
        }
        Ok(())
    }
}
