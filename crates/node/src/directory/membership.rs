//! Membership of a data directory in a cluster: its file `cluster` has the id of the cluster, and it has no log of its
//! own.
//!
//! **Invariant:** a directory with the file is opened with the log of its cluster, and one without it with its own log.

use std::io;
use std::path::Path;

use commitlog::ClusterId;

use super::divergence::{self, Divergence};
use super::open_error::OpenError;

const FILE: &str = "cluster";

/// Returns the cluster of a directory, if it belongs to one.
///
/// # Errors
/// [`OpenError::Directory`]; also if the file is damaged.
pub(crate) fn read(data: &Path) -> Result<Option<ClusterId>, OpenError> {
    let at = |error| OpenError::Directory(data.to_owned(), error);
    let Some(bytes) = super::read(data, FILE).map_err(at)? else { return Ok(None) };
    let damaged =
        || io::Error::new(io::ErrorKind::InvalidData, "its file `cluster` has no cluster id");
    let id = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n'));
    let id = id.filter(|id| id.len() == 32);
    let id = id.and_then(|id| u128::from_str_radix(id, 16).ok());
    id.map(|id| Some(ClusterId(id))).ok_or_else(damaged).map_err(at)
}

/// Returns the cluster of a directory that must belong to one.
///
/// # Errors
/// [`OpenError::NoMember`], and those of [`read`].
pub(crate) fn member_of(data: &Path) -> Result<ClusterId, OpenError> {
    read(data)?.ok_or_else(|| OpenError::NoMember(data.to_owned()))
}

/// Checks that a directory belongs to no cluster, before it is opened with its own log.
///
/// # Errors
/// [`OpenError::Member`], and those of [`read`].
pub(crate) fn refuse_member(data: &Path) -> Result<(), OpenError> {
    match read(data)? {
        Some(cluster) => Err(OpenError::Member { data: data.to_owned(), cluster }),
        None => Ok(()),
    }
}

/// Refuses a directory whose rows differ from those of most other nodes of `cluster`.
///
/// # Errors
/// [`OpenError::Diverged`] and [`OpenError::Directory`]
pub(crate) fn refuse_diverged(data: &Path, cluster: ClusterId) -> Result<(), OpenError> {
    let found = divergence::read(data, cluster);
    match found.map_err(|error| OpenError::Directory(data.to_owned(), error))? {
        Some(Divergence { after, position }) => {
            Err(OpenError::Diverged { data: data.to_owned(), after, position })
        }
        None => Ok(()),
    }
}

/// Marks a directory as one of a node of `cluster`.
///
/// # Errors
/// The operating system reports one.
pub(crate) fn write(data: &Path, cluster: ClusterId) -> io::Result<()> {
    super::replace(data, FILE, &format!("{cluster}\n"))
}

/// Removes the mark.
///
/// # Errors
/// The operating system reports one.
pub(crate) fn remove(data: &Path) -> io::Result<()> {
    super::remove(data, FILE)
}
