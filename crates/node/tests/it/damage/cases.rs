//! Kinds of damage, in an order in which every kind of file comes early: all of small files, and those of large ones in
//! a fixed random order.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Damage to one file.
pub(crate) struct Case {
    /// Path below the data directory.
    file: PathBuf,
    damage: Damage,
}

#[derive(Clone, Copy)]
enum Damage {
    Flip { bit: u64 },
    Cut { bytes: u64 },
    Missing,
}

impl Case {
    /// Returns the purpose of the file.
    pub(crate) fn kind(&self) -> &'static str {
        kind(&self.file)
    }

    pub(crate) fn damage(&self) -> &'static str {
        match self.damage {
            Damage::Flip { .. } => "one bit",
            Damage::Cut { .. } => "cut short",
            Damage::Missing => "missing",
        }
    }

    /// Whether an error names the file. A log that lacks a segment only has gaps, which have positions. `current` and
    /// the file that it names disagree, and either may be damaged.
    pub(crate) fn is_named_in(&self, error: &str) -> bool {
        let is_gap = self.kind() == "log segment" && matches!(self.damage, Damage::Missing);
        let disagrees = self.kind() == "fjall current" && error.contains("the file `current`");
        is_gap || disagrees || error.contains(&*self.file.to_string_lossy())
    }

    pub(crate) fn apply(&self, data: &Path) {
        let path = data.join(&self.file);
        match self.damage {
            Damage::Missing => fs::remove_file(path).unwrap(),
            Damage::Cut { bytes } => {
                fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
            }
            Damage::Flip { bit } => {
                let mut content = fs::read(&path).unwrap();
                content[(bit / 8) as usize] ^= 1 << (bit % 8);
                fs::write(path, content).unwrap();
            }
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.damage {
            Damage::Flip { bit } => write!(f, "{file}, bit {} of byte {}", bit % 8, bit / 8),
            Damage::Cut { bytes } => write!(f, "{file}, cut to {bytes} bytes"),
            Damage::Missing => write!(f, "{file}, missing"),
        }
    }
}

fn kind(file: &Path) -> &'static str {
    let name = file.file_name().unwrap().to_string_lossy();
    match name.as_ref() {
        "lock" => "lock",
        "last-run" => "last run",
        "identity" => "identity",
        "version" => "fjall version",
        "current" => "fjall current",
        name if name.ends_with(".log") => "log segment",
        name if name.ends_with(".jnl") => "fjall journal",
        name if name.starts_with('v') => "fjall tree version",
        _ if file.parent().is_some_and(|dir| dir.ends_with("tables")) => "fjall table",
        other => panic!("a file of an unknown kind: {other}"),
    }
}

/// Returns all cases for the files in a data directory.
pub(crate) fn cases(data: &Path) -> Vec<Case> {
    let mut files = Vec::new();
    walk(data, &mut files);
    files.sort();
    let mut queues: BTreeMap<(&str, u8), Vec<Case>> = BTreeMap::new();
    for path in files {
        let file = path.strip_prefix(data).unwrap().to_owned();
        let bytes = fs::metadata(&path).unwrap().len();
        let mut add = |queue: u8, damage| {
            let case = Case { file: file.clone(), damage };
            queues.entry((kind(&file), queue)).or_default().push(case);
        };
        add(0, Damage::Missing);
        (0..bytes).for_each(|bytes| add(1, Damage::Cut { bytes }));
        (0..bytes * 8).for_each(|bit| add(2, Damage::Flip { bit }));
    }
    for queue in queues.values_mut() {
        shuffle(queue);
    }
    let mut all = Vec::new();
    while queues.values().any(|queue| !queue.is_empty()) {
        all.extend(queues.values_mut().filter_map(Vec::pop));
    }
    all
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Shuffles to the same order in every process.
fn shuffle(cases: &mut [Case]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for at in (1..cases.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        cases.swap(at, (state % (at as u64 + 1)) as usize);
    }
}
