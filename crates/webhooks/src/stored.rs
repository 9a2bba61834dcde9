//! Stored state of a webhook: its position, and the changes that were given up.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::{Change, Webhook, random};

const VERSION: u32 = 1;
/// Maximum number of changes that are given up. Then delivery waits for the receiver.
pub const DEAD_MAX: usize = 100;
/// Maximum size of the file in bytes: more than twice that of a full one.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Maximum number of bytes of a stored error.
const ERROR_BYTES_MAX: usize = 200;
/// Number of bytes of the hash in the id of a message.
const ID_HASH_BYTES: usize = 8;

/// State of a webhook that survives a restart.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    version: u32,
    /// Position of the last delivered change; `None` before the oldest kept one.
    pub(crate) after: Option<String>,
    /// Position and time of the last change that was read before `after`. If the feed has another time there, it is
    /// that of another history: the data directory was restored, or lost its end with the power.
    pub(crate) last_read: Option<(String, u64)>,
    /// Random number, new with each replay. It makes the ids of repeated messages new.
    pub(crate) replay: u64,
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
    /// For a gap, the position after which delivery continued; `None` before the oldest kept change.
    pub to: Option<String>,
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
    /// The file is not one of a webhook; contains the reason.
    Damaged(io::Error),
    /// The file cannot be read for now; contains the reason.
    Unreadable(io::Error),
}

impl Stored {
    /// Creates the state of a webhook that begins after a position.
    pub(crate) fn beginning(after: Option<String>) -> Self {
        Self { version: VERSION, after, replay: random(), ..Self::default() }
    }

    /// Reads the state. Blocks.
    pub(crate) fn load(path: &Path) -> Loaded {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let parse = |bytes: &[u8]| -> io::Result<Self> {
            if bytes.len() as u64 > FILE_BYTES_MAX {
                return Err(io::Error::other("the file is too long"));
            }
            let stored: Self = serde_json::from_slice(bytes)?;
            let is_usable = stored.version == VERSION;
            is_usable.then_some(stored).ok_or_else(|| io::Error::other("its version is unknown"))
        };
        match read() {
            Ok(bytes) => parse(&bytes).map_or_else(Loaded::Damaged, Loaded::Kept),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Loaded::New,
            Err(error) => Loaded::Unreadable(error),
        }
    }

    /// Reads the state. A new webhook begins after `end`; its position is stored. A damaged file is renamed to
    /// `NAME.json.damaged`, and the webhook begins with the oldest kept change. Blocks.
    ///
    /// # Errors
    /// If the file cannot be read, written or renamed.
    pub(crate) fn open(path: &Path, end: String, now_ms: u64) -> io::Result<Self> {
        let stored = match Self::load(path) {
            Loaded::Kept(stored) => return Ok(stored),
            Loaded::Unreadable(error) => return Err(error),
            Loaded::New => Self::beginning(Some(end)),
            Loaded::Damaged(error) => {
                fs::rename(path, path.with_added_extension("damaged"))?;
                let file = path.display();
                tracing::error!(%file, %error, "the position of a webhook is damaged");
                let mut stored = Self::beginning(None);
                stored.skip_gap(String::new(), None, now_ms, "the file of the position is damaged");
                stored
            }
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        stored.save(path)?;
        Ok(stored)
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

    /// Moves to a position. `last_read` is the last change before it, if it is known.
    pub(crate) fn advance(&mut self, to: String, last_read: Option<(String, u64)>) {
        self.after = Some(to);
        self.last_read = last_read.or(self.last_read.take());
    }

    /// Moves to a position from which changes are sent again; `None` for the oldest kept one.
    pub(crate) fn replay_from(&mut self, after: Option<String>) {
        (self.after, self.last_read, self.replay) = (after, None, random());
    }

    /// Returns the id of a message with these changes. A message with the same changes has the same id, until they are
    /// replayed. All others differ: positions are used again after a restore, so times count too.
    pub(crate) fn message_id(&self, webhook: &Webhook, changes: &[Change]) -> String {
        let mut hashed = Context::new(&SHA256);
        hashed.update(&self.replay.to_le_bytes());
        hashed.update(&[u8::from(webhook.ids_only)]);
        hashed.update(webhook.name.as_bytes());
        for Change { position, time_ms, .. } in changes {
            hashed.update(format!(" {position} {time_ms}").as_bytes());
        }
        let hash = hashed.finish();
        let mut id = match (changes.first(), changes.last()) {
            (Some(first), Some(last)) => format!("{}_{}_", first.position, last.position),
            _ => String::new(),
        };
        for byte in hash.as_ref().iter().take(ID_HASH_BYTES) {
            let _ = write!(id, "{byte:02x}");
        }
        id
    }

    /// Gives up the change at a position. Returns false if too many were given up.
    pub(crate) fn give_up(&mut self, position: &str, at_ms: u64, error: &str) -> bool {
        if self.dead.len() >= DEAD_MAX {
            return false;
        }
        let position = position.to_owned();
        let error = shortened(error);
        self.dead.push(DeadLetter { position, is_gap: false, to: None, at_ms, error });
        true
    }

    /// Records that changes after a position cannot be delivered, and continues after `to`, or with the oldest kept
    /// change. A gap after another one, with no change given up between them, extends it.
    pub(crate) fn skip_gap(
        &mut self,
        position: String,
        to: Option<String>,
        at_ms: u64,
        error: &str,
    ) {
        (self.after, self.last_read) = (to.clone(), None);
        let error = shortened(error);
        match self.dead.last_mut().filter(|last| last.is_gap) {
            Some(gap) => (gap.to, gap.at_ms, gap.error) = (to, at_ms, error),
            None => self.dead.push(DeadLetter { position, is_gap: true, to, at_ms, error }),
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
        stored.advance("9".to_owned(), Some(("9-0".to_owned(), 3)));
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
    fn messages_with_other_changes_or_of_another_replay_have_other_ids() {
        let change = |position: &str, time_ms| Change {
            position: position.to_owned(),
            time_ms,
            json: Vec::new(),
        };
        let webhook = |name: &str, ids_only| Webhook {
            name: name.to_owned(),
            url: crate::Target::parse("https://a.example").unwrap(),
            secret: crate::Secret::generate().unwrap(),
            kinds: std::sync::Arc::new([]),
            ids_only,
            allow_private: false,
        };
        let (a, mut stored) = (webhook("a", false), Stored::beginning(None));
        let changes = || vec![change("1-0", 5), change("3-0", 7)];
        let id = stored.message_id(&a, &changes());
        assert!(id.starts_with("1-0_3-0_") && id.len() == 24, "{id}");
        assert_eq!(stored.message_id(&a, &changes()), id, "a repetition has the same id");
        let mut ids = vec![
            id,
            // The same positions after a restore, and other kinds between them.
            stored.message_id(&a, &[change("1-0", 6), change("3-0", 7)]),
            stored.message_id(&a, &[change("1-0", 5), change("2-0", 6), change("3-0", 7)]),
            stored.message_id(&webhook("b", false), &changes()),
            stored.message_id(&webhook("a", true), &changes()),
            Stored::beginning(None).message_id(&a, &changes()),
        ];
        stored.replay_from(None);
        ids.push(stored.message_id(&a, &changes()));
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "{ids:?}");
    }

    #[test]
    fn a_damaged_file_is_kept_under_another_name_and_one_that_cannot_be_read_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a.json");
        let open = || Stored::open(&path, "7".to_owned(), 5);
        let stored = open().unwrap();
        assert_eq!((stored.after.as_deref(), stored.dead.len()), (Some("7"), 0));
        assert_eq!(Stored::open(&path, "9".to_owned(), 5).unwrap(), stored);
        fs::write(&path, "dead letters, damaged").unwrap();
        let stored = open().unwrap();
        assert_eq!((&stored.after, stored.dead.len(), stored.dead[0].is_gap), (&None, 1, true));
        let kept = fs::read_to_string(folder.path().join("new/a.json.damaged")).unwrap();
        assert_eq!(kept, "dead letters, damaged");
        assert_eq!(open().unwrap(), stored);
        // A folder can be opened, and reading it is an error.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        open().unwrap_err();
        assert!(path.is_dir());
    }

    #[test]
    fn the_number_of_changes_that_are_given_up_is_bounded() {
        let mut stored = Stored::beginning(None);
        for number in 0..DEAD_MAX {
            assert!(stored.give_up(&format!("{number}-0"), 1, &"x".repeat(1_000)));
            stored.advance(format!("{number}-0"), None);
        }
        assert!(!stored.give_up("100-0", 1, "x"));
        for at_ms in 0..5 {
            stored.skip_gap("200".to_owned(), Some(format!("30{at_ms}")), at_ms, "gone");
        }
        assert_eq!((stored.dead.len(), stored.after.as_deref()), (DEAD_MAX + 1, Some("304")));
        let last = stored.dead.last().unwrap();
        assert_eq!((last.is_gap, last.at_ms), (true, 4));
        assert_eq!((last.position.as_str(), last.to.as_deref()), ("200", Some("304")));
        let bytes = serde_json::to_vec_pretty(&stored).unwrap().len() as u64;
        assert!(2 * bytes < FILE_BYTES_MAX, "{bytes}");
    }
}
