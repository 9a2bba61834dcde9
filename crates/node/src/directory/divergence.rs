//! Mark of a data directory whose node has stopped because its rows differ from those of most other nodes. While the
//! file `diverged` exists, the node does not start.
//!
//! **Invariant:** the file is durable before the process ends, and is valid for one cluster only.

use std::io;
use std::path::Path;

use commitlog::{ClusterId, Position};

const FILE: &str = "diverged";

/// Range of positions in which the node began to differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divergence {
    /// Last position at which another node had the same digest; 0 if unknown.
    pub(crate) after: Position,
    /// First position at which another node had a different digest.
    pub(crate) position: Position,
}

/// Records that the rows of a directory's node differ from those of most other nodes of `cluster`.
///
/// # Errors
/// The operating system reports one.
pub(crate) fn write(data: &Path, cluster: ClusterId, found: Divergence) -> io::Result<()> {
    let Divergence { after, position } = found;
    super::replace(data, FILE, &format!("{cluster}\n{} {}\n", after.0, position.0))
}

/// Returns the record that the rows of a directory's node differ from those of most other nodes of `cluster`, if there
/// is one.
///
/// # Errors
/// The operating system reports one, or the file is damaged.
pub(crate) fn read(data: &Path, cluster: ClusterId) -> io::Result<Option<Divergence>> {
    let Some(bytes) = super::read(data, FILE)? else { return Ok(None) };
    let damaged = || {
        let what = "its file `diverged` does not have the positions since which other nodes differ";
        io::Error::new(io::ErrorKind::InvalidData, what)
    };
    let text = std::str::from_utf8(&bytes).ok();
    let (of, found) = text.and_then(parse).ok_or_else(damaged)?;
    Ok(Some(found).filter(|_| of == cluster.to_string()))
}

/// Removes the file, if it exists.
///
/// # Errors
/// The operating system reports one.
pub(crate) fn remove(data: &Path) -> io::Result<()> {
    super::remove(data, FILE)
}

fn parse(text: &str) -> Option<(&str, Divergence)> {
    let (cluster, positions) = text.strip_suffix('\n')?.split_once('\n')?;
    let (after, position) = positions.split_once(' ')?;
    let number = |text: &str| text.parse().ok().map(Position);
    Some((cluster, Divergence { after: number(after)?, position: number(position)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_of_one_cluster() {
        let data = tempfile::tempdir().unwrap();
        let (path, cluster) = (data.path(), ClusterId(7));
        assert_eq!(read(path, cluster).unwrap(), None);
        let found = Divergence { after: Position(3), position: Position(1_027) };
        write(path, cluster, found).unwrap();
        assert_eq!(read(path, cluster).unwrap(), Some(found));
        assert_eq!(read(path, ClusterId(8)).unwrap(), None);
        for damaged in ["", "x", "00\n1 2", "00\n1\n", "00\n1 x\n"] {
            std::fs::write(path.join(FILE), damaged).unwrap();
            let refused = read(path, cluster).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{damaged:?}");
        }
        remove(path).unwrap();
        remove(path).unwrap();
        assert_eq!(read(path, cluster).unwrap(), None);
    }
}
