//! A node in a temporary directory, and the runtime of its servers.

use std::sync::LazyLock;

use node::{Durability, Node, NodeOptions};
use tokio::runtime::Runtime;

/// The runtime of all servers.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
});

/// A new node.
pub(crate) fn node() -> Node {
    let folder = testkit::files::memory_folder();
    let mut options = NodeOptions::new(folder.path().join("data"));
    options.durability = Durability::Never;
    let node = Node::open(&options).unwrap();
    // Forget the folder. Its files can still be used without names, unless the node needs new files.
    std::mem::forget(folder);
    node
}
