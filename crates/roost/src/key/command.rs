//! `roost key`: creates, lists and revokes the application keys of a data directory.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use edge::Scope;

use super::file::{self, KEYS_MAX, StoredKey};
use crate::exit::Exit;
use crate::output::{self, out};
use crate::settings::Settings;

/// Create, list and revoke application keys.
///
/// Works on a data directory, also while its server runs: a change takes effect before the command ends. Only hashes of
/// keys are stored.
///
/// A key has scopes: `read` for reads, `write` for changes, `admin` for deleting users and whole buckets,
/// for backups and for controlling the server. No scope includes another.
#[derive(Args)]
pub(crate) struct Key {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    directory: Directory,
}

#[derive(Subcommand)]
enum Action {
    /// Create a key and print it. The key cannot be shown again
    Create {
        /// Name of the key, for listing and revoking it: 1 to 64 of a-z A-Z 0-9 _ . -
        name: String,
        /// Scopes of the key
        #[arg(
            long = "scope",
            value_name = "SCOPES",
            value_delimiter = ',',
            default_values = ["read", "write"],
            value_parser = scopes(),
        )]
        scopes: Vec<Scope>,
    },
    /// List names, scopes and times of creation
    List,
    /// Revoke a key
    Revoke {
        /// Name of the key
        name: String,
    },
}

/// Data directory of a server, which may be running.
#[derive(Args)]
pub(crate) struct Directory {
    /// Data directory of the server [default: ./roost-data]
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Configuration file of the server, read for its data directory
    #[arg(long, env = "ROOST_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl Directory {
    /// Returns the data directory.
    ///
    /// # Errors
    /// If it does not exist, belongs to another user's server, or the configuration file is wrong.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let settings = self.config.as_deref().map(Settings::of_file).transpose();
        let settings = settings.map_err(Exit::setting)?.unwrap_or_default();
        let path = self.data.clone().unwrap_or_else(|| settings.data());
        anyhow::ensure!(
            path.is_dir(),
            "there is no data directory {}; name one with --data, or start the server once",
            path.display()
        );
        check_owner(&path)?;
        Ok(path)
    }
}

/// Refuses to run as root on the data of another user's server, which could not read files created by root.
pub(crate) fn check_owner(data: &Path) -> anyhow::Result<()> {
    // The server created this file. Another user may have created the directory.
    let made = data.join("lock").symlink_metadata().or_else(|_| data.metadata());
    // The caller reports a missing directory.
    let Ok(owner) = made.map(|made| made.uid()) else { return Ok(()) };
    let is_root = rustix::process::geteuid().is_root();
    may_change(is_root, owner).with_context(|| format!("cannot use {}", data.display()))
}

fn may_change(is_root: bool, owner: u32) -> anyhow::Result<()> {
    anyhow::ensure!(
        !is_root || owner == 0,
        "its server runs as user {owner} and could not read files of root; run this command as that user, for example \
         with sudo -u '#{owner}'"
    );
    Ok(())
}

fn scopes() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(Scope::ALL.map(Scope::name))
        .try_map(|name| Scope::parse(&name).context("there is no such scope"))
}

impl Key {
    /// Runs the command; returns the directory whose keys have changed, if any.
    ///
    /// # Errors
    /// If the command fails.
    pub(crate) fn run(&self) -> anyhow::Result<Option<PathBuf>> {
        match &self.action {
            Action::Create { name, scopes } => {
                let key = super::make()?;
                let made = StoredKey::new(name, scopes.iter().copied().collect(), &key)?;
                let data = self.directory.path()?;
                file::change(&data, |keys| {
                    add(keys.get_or_insert_default(), made)?;
                    output::secret(&key)
                })?;
                Ok(Some(data))
            }
            Action::List => {
                let keys = file::change(&self.directory.path()?, |keys| Ok(keys.clone()))?;
                out!("{}", table(&keys.unwrap_or_default()).trim_end());
                Ok(None)
            }
            Action::Revoke { name } => {
                let data = self.directory.path()?;
                file::change(&data, |keys| {
                    let keys = keys.as_mut().context("there are no keys")?;
                    let before = keys.len();
                    keys.retain(|key| key.name != *name);
                    anyhow::ensure!(keys.len() < before, "there is no key {name:?}");
                    Ok(())
                })?;
                Ok(Some(data))
            }
        }
    }
}

fn add(keys: &mut Vec<StoredKey>, made: StoredKey) -> anyhow::Result<()> {
    let name = &made.name;
    anyhow::ensure!(keys.iter().all(|key| key.name != *name), "there is a key {name:?} already");
    anyhow::ensure!(keys.len() < KEYS_MAX, "there are already {KEYS_MAX} keys, the maximum");
    keys.push(made);
    Ok(())
}

fn table(keys: &[StoredKey]) -> String {
    let width = keys.iter().map(|key| key.name.len()).max().unwrap_or(0).max("NAME".len());
    let mut table = format!("{:width$}  {:16}  CREATED\n", "NAME", "SCOPES");
    for StoredKey { name, scopes, created_at, .. } in keys {
        table.push_str(&format!("{name:width$}  {:16}  {created_at}\n", scopes.to_string()));
    }
    table
}

#[cfg(test)]
mod tests {
    use edge::Scopes;

    use super::*;

    #[test]
    fn root_changes_no_keys_of_the_server_of_another_user() {
        let refused = may_change(true, 998).unwrap_err().to_string();
        assert!(refused.contains("sudo -u '#998'"), "{refused}");
        for (is_root, owner) in [(true, 0), (false, 0), (false, 998)] {
            may_change(is_root, owner).unwrap();
        }
    }

    #[test]
    fn names_are_unique_and_their_number_is_bounded() {
        let key = |name: &str| StoredKey::new(name, Scopes::ALL, "k");
        let mut keys = Vec::new();
        for number in 0..KEYS_MAX {
            add(&mut keys, key(&format!("k{number}")).unwrap()).unwrap();
        }
        let full = add(&mut keys, key("one-more").unwrap()).unwrap_err().to_string();
        assert!(full.contains("64 keys"), "{full}");
        keys.pop();
        assert!(add(&mut keys, key("k0").unwrap()).unwrap_err().to_string().contains("already"));
        add(&mut keys, key("one-more").unwrap()).unwrap();
        for bad in ["", "a b", "ä", "a/b", &"x".repeat(65)] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }
}
