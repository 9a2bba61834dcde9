//! roost's engine in a temporary directory, which is removed on drop.

use feed::{Bio, Command, Done, Handle, Name, Refusal, Request};
use node::{Durability, Node, NodeOptions, SUBMISSION_COMMANDS_MAX};
use tempfile::TempDir;

/// Running engine that does not sync its log, with the memory budgets of a server.
pub(crate) struct Engine {
    node: Node,
    /// Directory, removed after the node is closed: fields are dropped in the order of their declaration.
    _data: TempDir,
}

impl Engine {
    /// Opens an engine without data. Blocks.
    ///
    /// # Panics
    /// If the directory for temporary files cannot be written, which makes the trial impossible.
    pub(crate) fn open() -> Self {
        let data = match tempfile::Builder::new().prefix("roost-lab-").tempdir() {
            Ok(data) => data,
            Err(error) => panic!("cannot make a temporary directory: {error}"),
        };
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        match Node::open(&options) {
            Ok(node) => Self { node, _data: data },
            Err(error) => panic!("cannot open the engine in {}: {error}", data.path().display()),
        }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Submits commands in order, and returns their outcomes.
    ///
    /// # Panics
    /// If a command is refused.
    pub(crate) async fn load(&self, requests: &[Request]) -> Vec<Done> {
        let mut done = Vec::with_capacity(requests.len());
        for batch in requests.chunks(SUBMISSION_COMMANDS_MAX) {
            let replies = self.node.submit_all(batch.to_vec()).await.unwrap_or_default();
            done.extend(replies.into_iter().filter_map(|reply| reply.outcome.ok()));
        }
        assert_eq!(done.len(), requests.len(), "the lab submits what is valid");
        done
    }
}

/// Command that registers the user with this number. Numbers begin at 0.
pub(crate) fn register(user: u32) -> Request {
    let name = format!("user{user}");
    let (handle, name) = (valid(Handle::parse(&name)), valid(Name::parse(&name)));
    Command::Register { handle, name, bio: valid(Bio::parse("")) }.into()
}

/// Unwraps the validation of a text made by the lab.
pub(crate) fn valid<T>(text: Result<T, Refusal>) -> T {
    match text {
        Ok(text) => text,
        Err(refusal) => unreachable!("the lab makes valid texts: {refusal}"),
    }
}
