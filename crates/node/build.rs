//! Digest of the sources that decide which rows the commands in a log make. Nodes of a cluster compare their rows only
//! with nodes that have the same digest: see `submission/versions.rs`. Including too many sources does no harm.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders and files, relative to the folder of this crate.
const SOURCES: [&str; 8] = [
    "../feed/src",
    "../kv/src",
    "../rows/src",
    "src/applier",
    "src/clock.rs",
    "src/submission/entry.rs",
    "src/views/samples.rs",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut digest = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        add(&here.join(source), source, &mut digest)?;
    }
    println!("cargo::rustc-env=ROOST_RULES={:016x}", digest.finish());
    Ok(())
}

/// Adds a file, or all files of a folder in the order of their names.
fn add(path: &Path, name: &str, digest: &mut DefaultHasher) -> io::Result<()> {
    if !path.is_dir() {
        (name, fs::read(path)?).hash(digest);
        return Ok(());
    }
    let mut files: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        add(&file.path(), &format!("{name}/{}", file.file_name().display()), digest)?;
    }
    Ok(())
}
