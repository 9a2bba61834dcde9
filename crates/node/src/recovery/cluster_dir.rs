//! Conversion of a data directory into that of a cluster node, and back.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use commitlog::disk::RealDisk;
use commitlog::{ClusterId, Position, SEGMENT_BYTES, begin_after};
use feed::Facts;
use store::{Store, unless_unreadable};

use crate::directory::divergence;
use crate::directory::lock::DataLock;
use crate::directory::membership;
use crate::directory::open_error::OpenError;
use crate::node::store_once;
use crate::options::NodeOptions;
use crate::pictures::files::MediaFiles;

/// Converts the directory `data` of a stopped server, or a new one, into that of the first node of a new cluster.
/// `make_log` creates the log of the cluster, which continues after a position. Blocks.
///
/// # Errors
/// [`OpenError`], and those of `make_log`; then nothing has changed.
pub fn init_cluster<E: From<OpenError>>(
    data: &Path,
    make_log: impl FnOnce(ClusterId, Position) -> Result<(), E>,
) -> Result<ClusterId, E> {
    let mut random = [0; 16];
    let at = |error| OpenError::Directory(data.to_owned(), error);
    getrandom::fill(&mut random).map_err(|error| at(io::Error::other(error)))?;
    let cluster = ClusterId(u128::from_be_bytes(random));
    mark(data, cluster, |applied| make_log(cluster, applied))?;
    Ok(cluster)
}

/// Converts a directory that was restored from a backup of a node of `cluster` into that of another node. Blocks.
///
/// # Errors
/// [`OpenError`]
pub fn mark_member(data: &Path, cluster: ClusterId) -> Result<(), OpenError> {
    mark(data, cluster, |_| Ok(()))
}

fn mark<E: From<OpenError>>(
    data: &Path,
    cluster: ClusterId,
    ready: impl FnOnce(Position) -> Result<(), E>,
) -> Result<(), E> {
    let mut lock = DataLock::take(data)?;
    let options = NodeOptions::new(data);
    // The log is not needed afterwards.
    ready(store_once(&options)?.last)?;
    let at = |error| OpenError::Directory(data.to_owned(), error);
    membership::write(data, cluster).map_err(at)?;
    fs::remove_dir_all(options.log_dir()).and_then(|()| lock.close()).map_err(at)?;
    Ok(())
}

/// Converts the directory of a node of a cluster into that of a server with its own log. If the node was closed
/// cleanly, the directory keeps everything that the node had applied, otherwise the state of the last checkpoint.
/// `accept_loss` is necessary if the node was not closed cleanly, if files of pictures are missing, and if the rows
/// differ from those of most other nodes. Blocks.
///
/// # Errors
/// [`OpenError`]
pub fn leave_cluster(data: &Path, accept_loss: bool) -> Result<(), OpenError> {
    let (mut lock, cluster) = DataLock::take_member(data)?;
    if !accept_loss && !lock.was_closed(data)? {
        return Err(OpenError::NotClosed(data.to_owned()));
    }
    if !accept_loss {
        membership::refuse_diverged(data, cluster)?;
    }
    let options = NodeOptions::new(data);
    let (store, applied) = Store::open(&options.store_dir(), options.store())?;
    let files = MediaFiles::new(data);
    let missing = unless_unreadable(|| files.missing(Facts::new(&store.store())));
    let missing = missing.ok_or_else(|| OpenError::unreadable(&options))?;
    if missing > 0 && !accept_loss {
        return Err(OpenError::LacksFiles { data: data.to_owned(), files: missing });
    }
    drop(store);
    let at = |error| OpenError::Directory(data.to_owned(), error);
    match fs::remove_dir_all(options.log_dir()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(error)),
        _ => {}
    }
    begin_after(&RealDisk, &options.log_dir(), Position(applied), SEGMENT_BYTES)?;
    lock.close().map_err(at)?;
    membership::remove(data).and_then(|()| File::open(data)?.sync_all()).map_err(at)?;
    // The mark has no meaning outside the cluster.
    divergence::remove(data).map_err(at)
}
