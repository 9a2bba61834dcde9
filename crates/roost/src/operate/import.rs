//! `roost import`: creates a data directory from an export, or from a file of the same format.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use node::NodeOptions;

use crate::permissions;

/// Create a data directory from an export, or from a file of another program.
///
/// The directory must be empty or missing. Ids, times and expiry are kept; missing ones are assigned in the order of
/// lines. Every line is validated like a request to the server; the first invalid line ends the import with its number.
/// An import that did not finish leaves a directory on which no server starts: remove it.
///
/// docs/import.md describes the lines.
#[derive(Args)]
pub(crate) struct Import {
    /// File to import, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Data directory to create
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

impl Import {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        permissions::keep_new_files_private();
        let stream: Box<dyn Read> = if self.file == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(&self.file);
            let file = file.with_context(|| format!("cannot read {}", self.file.display()))?;
            Box::new(file)
        };
        let imported = node::import(&NodeOptions::new(&self.data), stream);
        let imported = imported.with_context(|| {
            format!("cannot import {} into {}", self.file.display(), self.data.display())
        })?;
        println!("imported {} into {}", imported, self.data.display());
        if imported.pictures > 0 {
            println!(
                "the files of pictures are not in an export: copy the directory media of the old data directory into {}",
                self.data.display()
            );
        }
        Ok(())
    }
}
