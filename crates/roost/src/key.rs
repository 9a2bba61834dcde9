//! Application keys: `roost key`, the key of the first start, and the keys that a running server accepts.
//!
//! A running server checks once per second whether `keys.json` was replaced, which costs one `stat`. Signals are not
//! needed, so this works in containers and for users who may not signal the server. `roost key` also makes the server
//! reload the keys before it ends.

mod command;
mod file;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use edge::{KeyHash, KeySet, Scopes};
use file::StoredKey;

use crate::files::{Identity, replace};

pub(crate) use command::{Directory, Key, check_owner};
pub(crate) use file::{check, path, restore};

/// Name of the key created by the first start.
const FIRST_NAME: &str = "default";
/// File with the first key, for the operator to read and delete.
const FIRST_FILE: &str = "first-key";
const PREFIX: &str = "roost_";
/// Number of random bytes of a key.
const KEY_BYTES: usize = 32;
/// Smallest length of a key from the environment.
const CHARS_MIN: usize = 16;
/// Interval at which a running server checks for changed keys.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Keys that a server accepts: those of its data directory, and the one of its environment.
pub(crate) struct ServerKeys {
    data: PathBuf,
    given: Option<KeyHash>,
    set: Arc<KeySet>,
    /// Whether the first start must create a key: there has never been one, and the environment gives none.
    needs_first: bool,
    /// Version of `keys.json` that was read last.
    seen: Mutex<Seen>,
}

/// Hash of the key in `ROOST_KEY`, which has all scopes.
///
/// # Errors
/// If it is too short or has characters that keys cannot have.
pub(crate) fn given(key: &OsStr) -> anyhow::Result<KeyHash> {
    let key = key.as_encoded_bytes();
    anyhow::ensure!(
        key.len() >= CHARS_MIN && key.iter().all(u8::is_ascii_graphic),
        "ROOST_KEY must have at least {CHARS_MIN} visible ASCII characters"
    );
    Ok(KeyHash::new(key, Scopes::ALL).named("ROOST_KEY"))
}

/// Version of `keys.json` that was read last.
#[derive(Default)]
struct Seen {
    file: Option<Identity>,
    /// Whether the keys of this version are accepted.
    is_loaded: bool,
}

impl ServerKeys {
    /// Reads the keys of `data`. Accepts `given` too, without storing it.
    ///
    /// # Errors
    /// If the files cannot be read, parsed or written.
    pub(crate) fn open(data: &Path, given: Option<KeyHash>) -> anyhow::Result<Self> {
        let stored = file::change(data, |keys| Ok(keys.clone()))?;
        let needs_first = stored.is_none() && given.is_none();
        if given.is_none() && stored.as_ref().is_some_and(Vec::is_empty) {
            tracing::warn!(
                "no application key is stored, so every request is refused; see roost key create"
            );
        }
        let set = KeySet::new(accepted(stored.as_deref(), given.clone()));
        Ok(Self { data: data.to_owned(), given, set, needs_first, seen: Mutex::default() })
    }

    /// Keys that are accepted now, shared with the servers.
    pub(crate) fn set(&self) -> Arc<KeySet> {
        Arc::clone(&self.set)
    }

    /// Creates the first key if there is none yet, and returns the file that holds it. Call this last, so that a failed
    /// start creates no key.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn make_first(&self) -> anyhow::Result<Option<PathBuf>> {
        if !self.needs_first {
            return Ok(None);
        }
        let path = self.data.join(FIRST_FILE);
        let stored = file::change(&self.data, |keys| {
            // `roost key create` may have created a key meanwhile.
            if keys.is_none() {
                let key = make()?;
                // Write the key before its hash: in the other order, a crash could leave a key that nobody can read.
                replace(&path, key.as_bytes())?;
                *keys = Some(vec![StoredKey::new(FIRST_NAME, Scopes::ALL, &key)?]);
            }
            Ok(keys.clone())
        })?;
        self.set.replace(&accepted(stored.as_deref(), self.given.clone()));
        Ok(path.exists().then_some(path))
    }

    /// Reloads changed keys for as long as the server runs. An unreadable file changes nothing and is logged.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        loop {
            ticks.tick().await;
            let looking = Arc::clone(&self);
            // `look` has logged the error.
            drop(tokio::task::spawn_blocking(move || looking.look().is_ok()).await);
        }
    }

    /// Reads the file if it has changed since the last read. May block.
    ///
    /// # Errors
    /// If it cannot be read. The next call reads it again; the same error is logged only once.
    pub(crate) fn look(&self) -> anyhow::Result<()> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Identity::of(&path(&self.data));
        let is_new = now != seen.file;
        if !is_new && seen.is_loaded {
            return Ok(());
        }
        let loaded = file::load(&self.data);
        *seen = Seen { file: now, is_loaded: loaded.is_ok() };
        match &loaded {
            Ok(Some(keys)) => {
                self.set.replace(&accepted(Some(keys), self.given.clone()));
                let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
                tracing::info!(names = names.join(","), "loaded the application keys");
            }
            Ok(None) => {
                tracing::warn!("keys.json is missing; the loaded application keys stay valid");
            }
            Err(error) if is_new => tracing::error!("{error:#}; the keys loaded before stay valid"),
            Err(_) => (),
        }
        loaded.map(|_| ())
    }
}

fn accepted(stored: Option<&[StoredKey]>, given: Option<KeyHash>) -> Vec<KeyHash> {
    stored.unwrap_or_default().iter().map(StoredKey::hash).chain(given).collect()
}

/// Generates a random key.
fn make() -> anyhow::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).context("the operating system gives no random bytes")?;
    Ok(format!("{PREFIX}{}", hex_of(&bytes)))
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use edge::{Access, Scope};

    use super::*;

    fn accepts(keys: &ServerKeys, key: &str) -> bool {
        Access::Keys(keys.set()).admit(key.as_bytes()).is_some()
    }

    #[test]
    fn the_first_key_is_made_once_after_the_start() {
        let data = tempfile::tempdir().unwrap();
        let keys = ServerKeys::open(data.path(), None).unwrap();
        assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 1, "the lock alone");
        let path = keys.make_first().unwrap().unwrap();
        let key = std::fs::read_to_string(&path).unwrap();
        let key = key.trim();
        assert!(key.starts_with(PREFIX) && key.len() == PREFIX.len() + 2 * KEY_BYTES);
        assert!(accepts(&keys, key));
        let again = ServerKeys::open(data.path(), None).unwrap();
        assert_eq!(again.make_first().unwrap(), None);
        assert!(accepts(&again, key));
    }

    #[test]
    fn a_given_key_is_accepted_beside_the_stored_ones_and_never_written() {
        const GIVEN: &str = "correct-horse-battery";
        let data = tempfile::tempdir().unwrap();
        let of_environment = || Some(given(OsStr::new(GIVEN)).unwrap());
        let keys = ServerKeys::open(data.path(), of_environment()).unwrap();
        assert_eq!(keys.make_first().unwrap(), None, "there is a key already");
        assert!(accepts(&keys, GIVEN));
        let stored = ServerKeys::open(data.path(), None).unwrap();
        let path = stored.make_first().unwrap().unwrap();
        let first = std::fs::read_to_string(path).unwrap();
        let both = ServerKeys::open(data.path(), of_environment()).unwrap();
        assert!(accepts(&both, GIVEN) && accepts(&both, first.trim()));
        assert!(!accepts(&ServerKeys::open(data.path(), None).unwrap(), GIVEN));
        for bad in ["short", "long enough but with spaces", ""] {
            assert!(given(OsStr::new(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_server_that_runs_accepts_new_keys_and_no_revoked_ones() {
        let data = tempfile::tempdir().unwrap();
        let add = |name: &str, key: &str| {
            let key = StoredKey::new(name, Scope::ALL.into_iter().collect(), key).unwrap();
            file::change(data.path(), |keys| {
                keys.get_or_insert_default().push(key);
                Ok(())
            })
            .unwrap();
        };
        add("old", "the-old-key");
        let server = ServerKeys::open(data.path(), None).unwrap();
        server.look().ok();
        add("new", "the-new-key");
        assert!(accepts(&server, "the-old-key") && !accepts(&server, "the-new-key"));
        server.look().ok();
        assert!(accepts(&server, "the-old-key") && accepts(&server, "the-new-key"));
        file::change(data.path(), |keys| {
            keys.as_mut().unwrap().retain(|key| key.name != "old");
            Ok(())
        })
        .unwrap();
        server.look().ok();
        assert!(!accepts(&server, "the-old-key") && accepts(&server, "the-new-key"));
        // An unreadable file changes nothing.
        std::fs::write(path(data.path()), "nonsense").unwrap();
        server.look().ok();
        std::fs::remove_file(path(data.path())).unwrap();
        server.look().ok();
        assert!(accepts(&server, "the-new-key"));
    }
}
