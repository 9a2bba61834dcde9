//! Files that the nodes of a cluster exchange through servers. The name of a file is a hash of its bytes.

/// Name of a file: the SHA-256 of its bytes.
pub type FileName = [u8; 32];

/// Reason why a file could not be stored or fetched.
#[derive(Debug, thiserror::Error)]
#[error("the servers of the cluster do not exchange files: {0}")]
pub struct FilesError(pub String);

/// Servers that transfer files between nodes. The servers store a file for a limited time and may lose it; nodes keep
/// their files permanently.
///
/// **Invariant:** storing a file that exists only extends its lifetime, whichever node stores it.
pub trait SharedFiles: Send + Sync {
    /// Stores a file. Afterwards, most servers have it on their disks. Blocks for at most some seconds.
    ///
    /// # Errors
    /// [`FilesError`]; parts of the file may be stored.
    fn put(&self, name: &FileName, bytes: &[u8]) -> Result<(), FilesError>;

    /// Returns a file; `None` if the servers lack a part of it, or if it is longer than `bytes_max`. The caller must
    /// compare the bytes with the name. Blocks for at most some seconds.
    ///
    /// # Errors
    /// [`FilesError`]
    fn get(&self, name: &FileName, bytes_max: usize) -> Result<Option<Vec<u8>>, FilesError>;

    /// Asks the other nodes to store a file again. Does not wait, and no node has to do it.
    fn ask(&self, name: &FileName);

    /// Makes `on_request` be called for each request for a file by any node, including this one.
    fn listen(&self, on_request: Box<dyn Fn(FileName) + Send + Sync>);
}
