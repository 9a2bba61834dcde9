//! `roost generate`: man pages and shell completions, generated from the same declarations as `--help`.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap_complete::Shell;

/// Supported shells, each with the file name that its packages use for the completions of `roost`.
const SHELLS: [(Shell, &str); 3] =
    [(Shell::Bash, "roost.bash"), (Shell::Zsh, "_roost"), (Shell::Fish, "roost.fish")];

/// Write man pages and shell completions into a directory, for packages.
///
/// The man pages are in `man`, one for each subcommand, the completions in `completions`.
#[derive(Args)]
pub(crate) struct Generate {
    /// Directory to write to, created if it does not exist
    directory: PathBuf,
}

impl Generate {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let [man, completions] = ["man", "completions"].map(|folder| self.directory.join(folder));
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&man)?;
            fs::create_dir_all(&completions)?;
            let mut command = crate::command_line();
            command.set_bin_name("roost");
            clap_mangen::generate_to(command.clone(), &man)?;
            for (shell, name) in SHELLS {
                let mut file = File::create(completions.join(name))?;
                clap_complete::generate(shell, &mut command, "roost", &mut file);
            }
            Ok(())
        };
        write().with_context(|| format!("cannot write to {}", self.directory.display()))
    }
}
