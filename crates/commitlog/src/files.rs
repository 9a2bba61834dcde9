//! Files that the nodes of a cluster exchange through servers that keep copies, named after their bytes.

/// Name of a file: the SHA-256 of its bytes.
pub type FileName = [u8; 32];

/// Reason why a file was not stored or not searched for.
#[derive(Debug, thiserror::Error)]
#[error("the servers of the cluster do not exchange files: {0}")]
pub struct FilesError(pub String);

/// Servers that transfer files. They keep a file for a limited time, and may lose it; the nodes keep it permanently.
///
/// **Invariant:** storing an existing file only extends its lifetime, whichever node stores it.
pub trait SharedFiles: Send + Sync {
    /// Stores a file. When this returns, most servers have it on their disks. Blocks for at most some seconds.
    ///
    /// # Errors
    /// [`FilesError`]; parts of the file may be stored.
    fn put(&self, name: &FileName, bytes: &[u8]) -> Result<(), FilesError>;

    /// Returns a file; `None` if the servers lack a part of it, or it is longer than `bytes_max`. The caller compares
    /// it with its name. Blocks for at most some seconds.
    ///
    /// # Errors
    /// [`FilesError`]
    fn get(&self, name: &FileName, bytes_max: usize) -> Result<Option<Vec<u8>>, FilesError>;

    /// Asks the other nodes to store a file again. Does not wait; no node has to answer.
    fn ask(&self, name: &FileName);

    /// Makes each request of a node for a file, including this one's own, call `on_request` from now on.
    fn listen(&self, on_request: Box<dyn Fn(FileName) + Send + Sync>);
}
