//! Stored state of a webhook: its position, and the changes that were given up.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

const VERSION: u32 = 1;
/// Maximum number of changes that are given up. Then delivery waits for the receiver.
pub const DEAD_MAX: usize = 100;
/// Maximum size of the file in bytes: more than twice that of a full one.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Maximum number of bytes of a stored error.
const ERROR_BYTES_MAX: usize = 200;

/// State of a webhook that survives a restart.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    version: u32,
    /// Position of the last delivered change; `None` before the oldest kept one.
    pub(crate) after: Option<String>,
    /// Time at which the receiver refused the next change for the first time, in milliseconds since 1970.
    pub(crate) refused_since_ms: Option<u64>,
    /// Changes that were given up, oldest first.
    pub(crate) dead: Vec<DeadLetter>,
}

/// Change that was given up, or a gap.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    /// Position of the change, or that after which changes are missing.
    pub position: String,
    /// Whether it is a gap: changes that were not kept until the receiver accepted them.
    pub is_gap: bool,
    /// Time at which it was given up, in milliseconds since 1970.
    pub at_ms: u64,
    /// Last error.
    pub error: String,
}

/// The stored state of a webhook when it is loaded.
pub(crate) enum Loaded {
    /// The webhook is new.
    New,
    Kept(Stored),
    /// The file cannot be read; contains the reason.
    Damaged(io::Error),
}

impl Stored {
    /// Creates the state of a webhook that begins after a position.
    pub(crate) fn beginning(after: Option<String>) -> Self {
        Self { version: VERSION, after, ..Self::default() }
    }

    /// Reads the state. Blocks.
    pub(crate) fn load(path: &Path) -> Loaded {
        let read = || -> io::Result<Self> {
            let length = fs::metadata(path)?.len();
            if length > FILE_BYTES_MAX {
                return Err(io::Error::other("the file is too long"));
            }
            let stored: Self = serde_json::from_slice(&fs::read(path)?)?;
            let is_usable = stored.version == VERSION;
            is_usable.then_some(stored).ok_or_else(|| io::Error::other("its version is unknown"))
        };
        match read() {
            Ok(stored) => Loaded::Kept(stored),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Loaded::New,
            Err(error) => Loaded::Damaged(error),
        }
    }

    /// Replaces the file, and syncs it to disk. Blocks.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let Some(folder) = path.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(folder)?.sync_all()
    }

    /// Moves to a position.
    pub(crate) fn advance(&mut self, to: String) {
        self.after = Some(to);
        self.refused_since_ms = None;
    }

    /// Gives up the change at a position. Returns false if too many were given up.
    pub(crate) fn give_up(&mut self, position: &str, at_ms: u64, error: &str) -> bool {
        if self.dead.len() >= DEAD_MAX {
            return false;
        }
        let position = position.to_owned();
        self.dead.push(DeadLetter { position, is_gap: false, at_ms, error: shortened(error) });
        true
    }

    /// Records that the changes after a position are gone, and continues with the oldest kept one. A gap after another
    /// one, with no change given up between them, is not recorded again.
    pub(crate) fn skip_gap(&mut self, position: String, at_ms: u64, error: &str) {
        (self.after, self.refused_since_ms) = (None, None);
        match self.dead.last_mut().filter(|last| last.is_gap) {
            Some(gap) => gap.at_ms = at_ms,
            None => {
                let error = shortened(error);
                self.dead.push(DeadLetter { position, is_gap: true, at_ms, error });
            }
        }
    }
}

/// Beginning of an error, short enough to be stored.
pub(crate) fn shortened(error: &str) -> String {
    error.get(..error.floor_char_boundary(ERROR_BYTES_MAX)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_as_it_was_written_and_a_damaged_one_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        assert!(matches!(Stored::load(&path), Loaded::New));
        let mut stored = Stored::beginning(Some("7".to_owned()));
        assert!(stored.give_up("8-0", 5, &"é".repeat(200)));
        stored.refused_since_ms = Some(3);
        stored.save(&path).unwrap();
        assert!(matches!(Stored::load(&path), Loaded::Kept(kept) if kept == stored));
        for text in ["", "{}", "nonsense", "{\"version\":2,\"after\":null,\"dead\":[]}"] {
            fs::write(&path, text).unwrap();
            assert!(matches!(Stored::load(&path), Loaded::Damaged(_)), "{text}");
        }
        fs::write(&path, " ".repeat(1 << 20)).unwrap();
        assert!(matches!(Stored::load(&path), Loaded::Damaged(_)));
    }

    #[test]
    fn the_number_of_changes_that_are_given_up_is_bounded() {
        let mut stored = Stored::beginning(None);
        for number in 0..DEAD_MAX {
            assert!(stored.give_up(&format!("{number}-0"), 1, &"x".repeat(1_000)));
            stored.advance(format!("{number}-0"));
        }
        assert!(!stored.give_up("100-0", 1, "x"));
        for at_ms in 0..5 {
            stored.skip_gap("200".to_owned(), at_ms, "gone");
        }
        assert_eq!((stored.dead.len(), &stored.after), (DEAD_MAX + 1, &None));
        let last = stored.dead.last().unwrap();
        assert_eq!((last.is_gap, last.at_ms), (true, 4));
        let bytes = serde_json::to_vec_pretty(&stored).unwrap().len() as u64;
        assert!(2 * bytes < FILE_BYTES_MAX, "{bytes}");
    }
}
