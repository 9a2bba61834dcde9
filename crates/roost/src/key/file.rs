//! Application keys of a data directory: names, scopes and hashes in `keys.json`.
//!
//! `roost key` and the start of a server change the file, one at a time (`keys.lock`). They replace the whole file, so
//! a running server may read it at any time. **Invariant:** it contains only SHA-256 hashes of keys.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use edge::{KeyHash, Scope, Scopes};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files::{lock, read_small, replace};

const FILE: &str = "keys.json";
const LOCK: &str = "keys.lock";
const VERSION: u32 = 1;
/// Maximum number of keys of a data directory. Every request is compared with all of them.
pub(super) const KEYS_MAX: usize = 64;
/// Maximum file size in bytes: more than twice that of a file with [`KEYS_MAX`] keys.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Longest name of a key.
const NAME_CHARS_MAX: usize = 64;

/// Entry of the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredKey {
    pub(super) name: String,
    #[serde(with = "scope_names")]
    pub(super) scopes: Scopes,
    #[serde(with = "hex")]
    sha256: [u8; 32],
    /// Time of creation (RFC 3339).
    pub(super) created_at: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    version: u32,
    keys: Vec<StoredKey>,
}

impl StoredKey {
    /// Creates the entry of a new key.
    ///
    /// # Errors
    /// If the name is not valid.
    pub(super) fn new(name: &str, scopes: Scopes, key: &str) -> anyhow::Result<Self> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
        anyhow::ensure!(
            (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(fits),
            "the name of a key is 1 to {NAME_CHARS_MAX} of a-z A-Z 0-9 _ . -"
        );
        let KeyHash { sha256, scopes, .. } = KeyHash::new(key.as_bytes(), scopes);
        let created_at = Timestamp::from_second(Timestamp::now().as_second())?.to_string();
        Ok(Self { name: name.to_owned(), scopes, sha256, created_at })
    }

    pub(super) fn hash(&self) -> KeyHash {
        KeyHash { name: self.name.as_str().into(), sha256: self.sha256, scopes: self.scopes }
    }
}

/// Path of the key file of `data`.
pub(crate) fn path(data: &Path) -> PathBuf {
    data.join(FILE)
}

/// Writes the key file of a backup into a restored directory.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn restore(data: &Path, file: &[u8]) -> std::io::Result<()> {
    replace(&path(data), file.trim_ascii_end()).map_err(std::io::Error::other)
}

/// Checks the key file; returns whether there is one.
///
/// # Errors
/// If it cannot be read or parsed.
pub(crate) fn check(data: &Path) -> anyhow::Result<bool> {
    Ok(load(data)?.is_some())
}

/// Reads the keys of the data directory; `None` if no key was ever created.
///
/// # Errors
/// If the file cannot be read or parsed.
pub(super) fn load(data: &Path) -> anyhow::Result<Option<Vec<StoredKey>>> {
    let path = path(data);
    let read = || -> anyhow::Result<Option<Vec<StoredKey>>> {
        let Some(text) = read_small(&path, FILE_BYTES_MAX)? else { return Ok(None) };
        let KeysFile { version, keys } = serde_json::from_str(&text)?;
        anyhow::ensure!(version == VERSION, "its version is {version}, not {VERSION}");
        anyhow::ensure!(keys.len() <= KEYS_MAX, "it has more than {KEYS_MAX} keys");
        Ok(Some(keys))
    };
    let way_out = "move the file away and create new keys with roost key create";
    read().with_context(|| {
        format!("cannot read the application keys in {}; {way_out}", path.display())
    })
}

/// Changes the keys under the lock. `change` gets `None` if no key was ever created. If `change` fails, nothing is
/// written.
///
/// # Errors
/// Those of `change`, or if files cannot be read, parsed or written.
pub(super) fn change<T>(
    data: &Path,
    change: impl FnOnce(&mut Option<Vec<StoredKey>>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let _locked = lock(&data.join(LOCK))?;
    let stored = load(data)?;
    let mut keys = stored.clone();
    let done = change(&mut keys)?;
    if keys != stored
        && let Some(keys) = keys
    {
        let file = KeysFile { version: VERSION, keys };
        replace(&path(data), &serde_json::to_vec_pretty(&file)?)?;
    }
    Ok(done)
}

/// Serialization of a SHA-256 as 64 hexadecimal digits.
mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn parse(hex: &str) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        if hex.len() != 2 * bytes.len() || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(bytes)
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&crate::key::hex_of(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).ok_or_else(|| D::Error::custom("a SHA-256 is 64 hexadecimal digits"))
    }
}

/// Serialization of scopes as a list of names.
mod scope_names {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::{Scope, Scopes};

    pub(super) fn serialize<S: Serializer>(scopes: &Scopes, to: S) -> Result<S::Ok, S::Error> {
        let scopes = Scope::ALL.into_iter().filter(|scope| scopes.contains(*scope));
        to.collect_seq(scopes.map(Scope::name))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Scopes, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        let scope = |name: &String| {
            Scope::parse(name)
                .ok_or_else(|| D::Error::custom(format!("there is no scope {name:?}")))
        };
        names.iter().map(scope).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(load(data.path()).unwrap(), None);
        let scopes = [Scope::Read, Scope::Admin].into_iter().collect();
        let made = StoredKey::new("a", scopes, "secret-secret").unwrap();
        change(data.path(), |keys| {
            keys.get_or_insert_default().push(made.clone());
            Ok(())
        })
        .unwrap();
        assert_eq!(load(data.path()).unwrap().unwrap(), [made]);
        let text = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert!(!text.contains("secret") && text.contains("\"admin\""), "{text}");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(data.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_change_that_fails_changes_nothing() {
        let data = tempfile::tempdir().unwrap();
        let made = StoredKey::new("a", Scopes::ALL, "secret").unwrap();
        let failed = change(data.path(), |keys| -> anyhow::Result<()> {
            *keys = Some(vec![made]);
            anyhow::bail!("no")
        });
        assert!(failed.is_err());
        assert_eq!(load(data.path()).unwrap(), None);
    }

    #[test]
    fn files_that_are_wrong_are_refused_with_their_name() {
        let data = tempfile::tempdir().unwrap();
        let hash = "0".repeat(64);
        let key = |name: &str, scope: &str, hash: &str| {
            format!(
                "{{\"name\":\"{name}\",\"scopes\":[\"{scope}\"],\"sha256\":\"{hash}\",\
                 \"created_at\":\"2026-11-22T00:00:00Z\"}}"
            )
        };
        let file = |version: u32, keys: &[String]| {
            format!("{{\"version\":{version},\"keys\":[{}]}}", keys.join(","))
        };
        let good = key("a", "read", &hash);
        let check = |text: &str, right: bool| {
            fs::write(data.path().join(FILE), text).unwrap();
            match load(data.path()) {
                Ok(_) => assert!(right, "{text}"),
                Err(error) => assert!(!right && format!("{error:#}").contains(FILE), "{error:#}"),
            }
        };
        check(&file(1, &[]), true);
        check(&file(1, &vec![good.clone(); KEYS_MAX]), true);
        check(&file(1, &vec![good.clone(); KEYS_MAX + 1]), false);
        check(&file(2, std::slice::from_ref(&good)), false);
        check(&file(1, &[key("a", "root", &hash)]), false);
        check(&file(1, &[key("a", "read", &hash[1..])]), false);
        check(&file(1, &[key("a", "read", &"+0".repeat(32))]), false);
        check(&(file(1, &[]) + &" ".repeat(FILE_BYTES_MAX as usize)), false);
        check("", false);
    }
}
