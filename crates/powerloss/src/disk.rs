//! Possible contents of a disk after a power loss: everything that was synced, and any part of the rest.
//!
//! State: for every file, its durable bytes and the changes since its last sync; for every directory, its names in the
//! same way. Syncing a file does not make its name durable, and syncing a directory makes no content durable. The disk
//! behaves as badly as POSIX allows:
//! - Each sector of 512 bytes, or each page of 4 KiB, has its content of any moment since the last sync, independent of
//!   the others. The length too is that of any moment, and bytes never written are zeros.
//! - Any of the names made, changed or removed since the last sync of the directory may be as before.
//! - A rename within a directory takes place as a whole or not at all: every journaling file system ensures that, and
//!   fjall and the log of roost rely on it. A rename into another directory is two independent changes: the new name
//!   appears, and the old one disappears.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::Record;
use crate::loss::{Change, Choice, Loss, PAGE_BYTES};

/// Kinds of syncs that the disk honors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    /// All syncs.
    Honest,
    /// All syncs except those of files. Such a disk must lose acknowledged changes; otherwise the test that uses it
    /// tests nothing.
    ForgetsFiles,
    /// All syncs except those of directories.
    ForgetsDirectories,
}

/// A directory and everything below it.
pub struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
    by_inode: HashMap<u64, usize>,
    /// Number of records applied so far, which serves as the time.
    now: u64,
    accounting: Accounting,
}

enum Node {
    File { durable: Vec<u8>, unsynced: Vec<(u64, Change)> },
    Dir(Dir),
}

#[derive(Default)]
struct Dir {
    durable: BTreeMap<PathBuf, usize>,
    /// Current files as a process sees them.
    current: BTreeMap<PathBuf, usize>,
    unsynced: Vec<(u64, NameChange)>,
}

#[derive(Clone)]
enum NameChange {
    Set(PathBuf, usize),
    Remove(PathBuf),
    /// Rename within a directory.
    Rename(PathBuf, PathBuf, usize),
}

impl Disk {
    /// Reads a directory. All its content counts as durable. Its path must be absolute and contain no links.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn read(root: &Path, accounting: Accounting) -> io::Result<Self> {
        let (nodes, by_inode) = (Vec::new(), HashMap::new());
        let mut disk = Self { root: root.to_owned(), nodes, by_inode, now: 0, accounting };
        disk.read_node(root)?;
        Ok(disk)
    }

    fn read_node(&mut self, path: &Path) -> io::Result<usize> {
        let metadata = fs::symlink_metadata(path)?;
        let id = self.nodes.len();
        self.by_inode.insert(metadata.ino(), id);
        if metadata.is_file() {
            self.nodes.push(Node::File { durable: fs::read(path)?, unsynced: Vec::new() });
            return Ok(id);
        }
        self.nodes.push(Node::Dir(Dir::default()));
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            names.insert(PathBuf::from(entry.file_name()), self.read_node(&entry.path())?);
        }
        let dir = self.dir(id);
        (dir.durable, dir.current) = (names.clone(), names);
        Ok(id)
    }

    /// Applies a recorded change.
    pub fn apply(&mut self, record: Record<'_>) {
        self.now += 1;
        let now = self.now;
        match record {
            Record::Create { inode, path, emptied } => self.create(inode, path, emptied),
            Record::Write { inode, offset, bytes, data } => {
                let data = data.map(<[u8]>::to_vec);
                self.change(inode, Change::Write { offset, bytes, data });
            }
            Record::Resize { inode, bytes } => self.change(inode, Change::Resize(bytes)),
            Record::Sync { inode } => self.sync(inode),
            Record::Rename { from, to } => self.rename(from, to),
            Record::Link { from, to } => {
                let id = self.find(from).expect("the file exists");
                self.name(to, |name| NameChange::Set(name, id));
            }
            Record::Remove { path } => self.name(path, NameChange::Remove),
            Record::MakeDir { inode, path } => {
                let id = self.add(inode, Node::Dir(Dir::default()));
                self.name(path, |name| NameChange::Set(name, id));
            }
        }
        assert_eq!(now, self.now);
    }

    fn create(&mut self, inode: u64, path: &Path, emptied: bool) {
        if self.find(path).is_none() {
            let node = Node::File { durable: Vec::new(), unsynced: Vec::new() };
            let id = self.add(inode, node);
            self.name(path, |name| NameChange::Set(name, id));
        } else if emptied {
            self.change(inode, Change::Resize(0));
        }
    }

    fn add(&mut self, inode: u64, node: Node) -> usize {
        self.nodes.push(node);
        self.by_inode.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn change(&mut self, inode: u64, change: Change) {
        // This file is on the same file system, but outside of the directory.
        let Some(id) = self.by_inode.get(&inode) else { return };
        match self.nodes.get_mut(*id) {
            Some(Node::File { unsynced, .. }) => unsynced.push((self.now, change)),
            _ => panic!("a directory cannot be written"),
        }
    }

    fn sync(&mut self, inode: u64) {
        let Some(id) = self.by_inode.get(&inode).copied() else { return };
        match self.nodes.get_mut(id) {
            Some(Node::File { durable, unsynced }) => {
                if self.accounting != Accounting::ForgetsFiles {
                    unsynced.drain(..).for_each(|(_, change)| change.apply(durable));
                }
            }
            Some(Node::Dir(dir)) => {
                if self.accounting != Accounting::ForgetsDirectories {
                    dir.unsynced.clear();
                    dir.durable = dir.current.clone();
                }
            }
            None => unreachable!("nodes are never removed"),
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let id = self.find(from).expect("the file exists");
        if from.parent() != to.parent() {
            self.name(to, |new| NameChange::Set(new, id));
            return self.name(from, NameChange::Remove);
        }
        let old = PathBuf::from(from.file_name().expect("a name"));
        self.name(to, |new| NameChange::Rename(old, new, id));
    }

    /// Changes one name in the directory that contains `path`.
    fn name(&mut self, path: &Path, change: impl FnOnce(PathBuf) -> NameChange) {
        let parent = path.parent().and_then(|parent| self.find(parent)).expect("a directory");
        let change = change(PathBuf::from(path.file_name().expect("a name")));
        let now = self.now;
        let dir = self.dir(parent);
        change.apply(&mut dir.current);
        dir.unsynced.push((now, change));
    }

    fn dir(&mut self, id: usize) -> &mut Dir {
        match self.nodes.get_mut(id) {
            Some(Node::Dir(dir)) => dir,
            _ => panic!("a file where a directory should be"),
        }
    }

    /// The file that a process finds at this path now.
    fn find(&self, path: &Path) -> Option<usize> {
        let below = path.strip_prefix(&self.root).ok()?;
        below.components().try_fold(0, |id, name| {
            let Component::Normal(name) = name else { panic!("not a plain path: {path:?}") };
            match self.nodes.get(id)? {
                Node::Dir(dir) => dir.current.get(Path::new(name)).copied(),
                Node::File { .. } => None,
            }
        })
    }

    /// Number of unsynced changes.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        let count = |node: &Node| match node {
            Node::File { unsynced, .. } => unsynced.len(),
            Node::Dir(dir) => dir.unsynced.len(),
        };
        self.nodes.iter().map(count).sum()
    }

    /// Replaces the directory by a possible state after a power loss. The same seed gives the same state.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn lose_power(&self, loss: Loss, seed: u64) -> io::Result<()> {
        fs::remove_dir_all(&self.root)?;
        let mut rng = StdRng::seed_from_u64(seed);
        let mut choice = Choice { loss, moment: rng.random_range(0..=self.now), rng };
        let mut written = HashMap::new();
        self.write(0, &self.root, &mut choice, &mut written)
    }

    fn write(
        &self,
        id: usize,
        path: &Path,
        choice: &mut Choice,
        written: &mut HashMap<usize, PathBuf>,
    ) -> io::Result<()> {
        match self.nodes.get(id) {
            Some(Node::File { durable, unsynced }) => {
                // Write a file with two names only once.
                if let Some(first) = written.get(&id) {
                    return fs::hard_link(first, path);
                }
                written.insert(id, path.to_owned());
                write_file(path, &choice.content(durable, unsynced))
            }
            Some(Node::Dir(dir)) => {
                fs::create_dir(path)?;
                let mut names = dir.durable.clone();
                for (time, change) in &dir.unsynced {
                    if choice.keeps(*time) {
                        change.apply(&mut names);
                    }
                }
                names
                    .iter()
                    .try_for_each(|(name, id)| self.write(*id, &path.join(name), choice, written))
            }
            None => unreachable!("nodes are never removed"),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Set(name, id) => drop(names.insert(name.clone(), *id)),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Rename(from, to, id) => {
                if names.get(from) == Some(id) {
                    names.remove(from);
                }
                names.insert(to.clone(), *id);
            }
        }
    }
}

/// Writes a file. Blocks of zeros become holes.
fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = fs::File::create(path)?;
    file.set_len(content.len() as u64)?;
    for (number, page) in content.chunks(PAGE_BYTES as usize).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, number as u64 * PAGE_BYTES)?;
        }
    }
    Ok(())
}
