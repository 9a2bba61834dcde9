//! The application key: made at the first start, shown once, kept only as its SHA-256.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

const FILE: &str = "key.sha256";
const PREFIX: &str = "roost_";
/// Random bytes of a key that we make.
const KEY_BYTES: usize = 24;
/// Shortest key that we take from the environment.
const CHARACTERS_MIN: usize = 16;

/// The digest that presented keys must have, and the key itself if it was made just now.
pub(crate) struct Key {
    pub(crate) sha256: [u8; 32],
    pub(crate) made: Option<String>,
}

/// The key of the data directory `data`. `given` (from `ROOST_KEY`) replaces what was there; with
/// nothing given and nothing there a key is made.
///
/// # Errors
/// If the given key is too short, or the file cannot be read, understood or written.
pub(crate) fn open(data: &Path, given: Option<&str>) -> anyhow::Result<Key> {
    let file = data.join(FILE);
    if let Some(given) = given {
        let visible = given.bytes().all(|byte| byte.is_ascii_graphic());
        anyhow::ensure!(
            given.len() >= CHARACTERS_MIN && visible,
            "ROOST_KEY must have at least {CHARACTERS_MIN} visible ASCII characters"
        );
        let sha256 = digest(given);
        write(&file, &sha256)?;
        return Ok(Key { sha256, made: None });
    }
    match fs::read_to_string(&file) {
        Ok(text) => {
            let sha256 = parse(text.trim()).with_context(|| {
                format!("{} holds no SHA-256; delete it to get a new key", file.display())
            })?;
            Ok(Key { sha256, made: None })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let key = make()?;
            let sha256 = digest(&key);
            write(&file, &sha256)?;
            Ok(Key { sha256, made: Some(key) })
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

fn make() -> anyhow::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).context("the operating system gives no random bytes")?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// Replaces the file in one step and for this user only.
fn write(file: &Path, sha256: &[u8; 32]) -> anyhow::Result<()> {
    let temporary = file.with_extension("new");
    let written = (|| {
        let mut open = OpenOptions::new();
        let mut handle =
            open.create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
        writeln!(handle, "{}", hex(sha256))?;
        handle.sync_all()?;
        fs::rename(&temporary, file)?;
        // The name as well: a key is shown once.
        fs::File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()
    })();
    written.with_context(|| format!("cannot write {}", file.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_digest_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let first = open(data.path(), None).unwrap();
        let made = first.made.unwrap();
        assert!(made.starts_with(PREFIX) && made.len() == PREFIX.len() + 48);
        assert_eq!(digest(&made), first.sha256);
        let second = open(data.path(), None).unwrap();
        assert_eq!((second.sha256, second.made), (first.sha256, None));
        let kept = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert!(!kept.contains(&made));
    }

    #[test]
    fn a_given_key_replaces_the_one_before() {
        let data = tempfile::tempdir().unwrap();
        let made = open(data.path(), None).unwrap();
        let given = open(data.path(), Some("correct-horse-battery")).unwrap();
        assert_ne!(made.sha256, given.sha256);
        assert_eq!(open(data.path(), None).unwrap().sha256, given.sha256);
    }

    #[test]
    fn short_keys_and_spoilt_files_are_refused() {
        let data = tempfile::tempdir().unwrap();
        assert!(open(data.path(), Some("short")).is_err());
        assert!(open(data.path(), Some("long enough but with spaces")).is_err());
        fs::write(data.path().join(FILE), "zz").unwrap();
        assert!(open(data.path(), None).is_err());
    }
}
