//! `cargo xtask dist`: builds a release as a directory, a tar archive and a Debian package.
//!
//! The directory has the program, man pages, completions, licenses, and the files of `packaging/`. Builds of the same
//! commit are identical, because all times in the archives are that of the commit.

mod debian;
mod notices;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::{cargo, step, target};

/// Maintainer of a package for which none is given. Debian requires an address; this one can never exist.
const NO_MAINTAINER: &str = "Local build without a maintainer <nobody@roost.invalid>";

/// Environment variable for the time of all files in an archive, in seconds since 1970. It is a convention of
/// reproducible builds.
const TIME: &str = "SOURCE_DATE_EPOCH";

/// Program to package, and options of the packages.
#[derive(Args)]
pub(crate) struct Options {
    /// Package this program instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Directory to write to [default: target/packages]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Person responsible for the Debian package. Required if others get the package
    #[arg(
        long,
        value_name = "NAME <ADDRESS>",
        value_parser = maintainer,
        default_value = NO_MAINTAINER,
        hide_default_value = true
    )]
    maintainer: String,
    /// Compress less, for tests
    #[arg(long)]
    fast: bool,
}

/// Sources of a distribution.
struct Distribution<'a> {
    root: &'a Path,
    /// Release directory.
    tree: PathBuf,
    version: String,
    /// Seconds since 1970.
    time: String,
    maintainer: String,
    is_fast: bool,
}

/// Builds everything and prints the paths.
///
/// # Errors
/// If a tool is missing, or a file cannot be written.
pub(crate) fn run(root: &Path, options: Options) -> anyhow::Result<()> {
    let version = version(root)?;
    let out = options.out.unwrap_or_else(|| target(root).join("packages"));
    let distribution = Distribution {
        root,
        tree: out.join(format!("roost-{version}")),
        version,
        time: time(root)?,
        maintainer: options.maintainer,
        is_fast: options.fast,
    };
    let binary = match options.binary {
        Some(binary) => binary,
        None => {
            step(cargo(root, &["build", "--profile", "dist", "--locked", "-p", "roost"]))?;
            target(root).join("dist/roost")
        }
    };
    distribution.fill(&binary)?;
    let archive = distribution.archive(&out)?;
    let package = debian::build(&distribution, &out)?;
    for path in [&distribution.tree, &archive, &package] {
        println!("{}", path.display());
    }
    Ok(())
}

/// Checks a value of Debian's field `Maintainer`: one line, a name and an address.
fn maintainer(text: &str) -> anyhow::Result<String> {
    let parts = text.strip_suffix('>').and_then(|text| text.split_once(" <"));
    let is_field = parts.is_some_and(|(name, address)| {
        let is_address = address.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !address.contains([' ', '<', '>'])
        });
        !name.trim().is_empty() && is_address
    });
    let is_one = !text.contains(|c: char| c.is_control() || c == ',');
    ensure!(is_field && is_one, "it must be NAME <ADDRESS>, without a comma");
    Ok(text.to_owned())
}

impl Distribution<'_> {
    /// Creates the release directory. Replaces an old one.
    fn fill(&self, binary: &Path) -> anyhow::Result<()> {
        let tree = &self.tree;
        if tree.exists() {
            fs::remove_dir_all(tree)?;
        }
        fs::create_dir_all(tree)?;
        install(binary, &tree.join("roost"), 0o755)?;
        // Backtraces need the names of functions. Lines and types are only needed by debuggers.
        tool(Command::new("strip").arg("--strip-debug").arg(tree.join("roost")))?;
        tool(Command::new(tree.join("roost")).arg("generate").arg(tree))?;
        for name in ["LICENSE", "NOTICE", "README.md", "CHANGELOG.md"] {
            install(&self.root.join(name), &tree.join(name), 0o644)?;
        }
        fs::write(tree.join("THIRD-PARTY"), notices::all(self.root)?)?;
        for folder in ["docs", "packaging"] {
            copy(&self.root.join(folder), &tree.join(folder))?;
        }
        Ok(())
    }

    /// Packs the release directory into an archive.
    fn archive(&self, out: &Path) -> anyhow::Result<PathBuf> {
        let platform = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
        let archive = out.join(format!("roost-{}-{platform}.tar.gz", self.version));
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w"]);
        let level = if self.is_fast { 1 } else { 9 };
        tar.arg(format!("--mtime=@{}", self.time));
        tar.arg(format!("--use-compress-program=gzip -{level}n")).arg("-cf");
        tar.arg(&archive).arg("-C").arg(out).arg(format!("roost-{}", self.version));
        tool(&mut tar)?;
        Ok(archive)
    }
}

/// Version in the manifest of the workspace.
fn version(root: &Path) -> anyhow::Result<String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    Ok(version.context("the workspace has no version")?.trim_matches('"').to_owned())
}

/// Returns the time in [`TIME`], or that of the commit.
fn time(root: &Path) -> anyhow::Result<String> {
    if let Ok(time) = std::env::var(TIME) {
        return Ok(time);
    }
    let mut git = Command::new("git");
    Ok(tool(git.current_dir(root).args(["log", "-1", "--format=%ct"]))?.trim().to_owned())
}

/// Copies a file with this mode. Creates missing parent folders.
fn install(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    write(to, &fs::read(from).with_context(|| format!("cannot read {}", from.display()))?, mode)
}

/// Writes a file with this mode. Creates missing parent folders.
fn write(to: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let put = || -> std::io::Result<()> {
        fs::create_dir_all(to.parent().unwrap_or(Path::new("/")))?;
        fs::write(to, bytes)?;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))
    };
    put().with_context(|| format!("cannot write {}", to.display()))
}

/// Copies a folder of files.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            install(&entry.path(), &target, 0o644)?;
        }
    }
    Ok(())
}

/// Runs a program and returns its output. The program must succeed.
fn tool(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {problem}");
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maintainer_is_a_name_and_an_address() {
        for text in ["Ann B <ann@feeds.example>", NO_MAINTAINER] {
            assert_eq!(maintainer(text).unwrap(), text);
        }
        for text in [
            "",
            "B, Ann <a@b>",
            "ann@feeds.example",
            "Ann <ann>",
            " <a@b>",
            "A <a@b> x",
            "A\nDepends: x <a@b>",
        ] {
            assert!(maintainer(text).is_err(), "{text}");
        }
    }
}
