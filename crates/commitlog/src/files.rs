//! Files that the nodes of a cluster give each other by servers that keep copies, named after their bytes.

/// The SHA-256 of the bytes of a file, which is its name.
pub type FileName = [u8; 32];

/// Why a file was not stored, or not looked for.
#[derive(Debug, thiserror::Error)]
#[error("the servers of the cluster do not exchange files: {0}")]
pub struct FilesError(pub String);

/// The servers by which files travel. They keep a file for a limited time, and may lose it; the nodes keep it for good.
///
/// **Invariant:** storing a file that is there already changes nothing but how long it stays, whoever stores it.
pub trait SharedFiles: Send + Sync {
    /// Stores a file. When this returns, most servers have it on their disks. Blocks, for some seconds at most.
    ///
    /// # Errors
    /// [`FilesError`]; some of the file may be stored.
    fn put(&self, name: &FileName, bytes: &[u8]) -> Result<(), FilesError>;

    /// The file, unless the servers do not have all of it, or it is longer than `bytes_max`. The caller compares it with
    /// its name. Blocks, for some seconds at most.
    ///
    /// # Errors
    /// [`FilesError`]
    fn get(&self, name: &FileName, bytes_max: usize) -> Result<Option<Vec<u8>>, FilesError>;

    /// Asks the other nodes to store a file again. Does not wait, and nobody has to answer.
    fn ask(&self, name: &FileName);

    /// From now on `on_request` is called with each file that a node asks for, this one too.
    fn listen(&self, on_request: Box<dyn Fn(FileName) + Send + Sync>);
}
