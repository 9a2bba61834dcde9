//! Why the log of several nodes cannot be opened, or stops. Messages say what to do.

use std::io;
use std::path::PathBuf;

use commitlog::Position;

/// What to do with a node that has more than the stream.
const LOST_END: &str = "join the cluster again with a new directory, or, if other nodes refuse the stream too, make \
    the node with the highest position a server of its own with roost cluster leave";

/// The error of a log in a stream.
#[derive(Debug, thiserror::Error)]
pub enum JetLogError {
    /// An address is not one of a NATS server.
    #[error(
        "`{address}` is not the address of a NATS server ({reason}): write nats://HOST:4222 or tls://HOST:4222, several with commas between"
    )]
    Address {
        /// The address, without a password.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No server can be reached.
    #[error(
        "no NATS server can be reached at {addresses} ({reason}): check the addresses, and that nats-server runs there"
    )]
    Unreachable {
        /// All addresses, without passwords.
        addresses: String,
        /// The last error.
        reason: String,
    },
    /// The server refuses the credentials, or wants some.
    #[error(
        "the NATS servers at {addresses} refuse the credentials, or require some ({reason}): check the credentials file, or the user and password in the address"
    )]
    Credentials {
        /// All addresses, without passwords.
        addresses: String,
        /// What the server says.
        reason: String,
    },
    /// A file of credentials or certificates cannot be used.
    #[error("cannot read {}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// TLS cannot be established.
    #[error(
        "no TLS connection with the NATS servers at {addresses} ({reason}): check the file of certificate authorities, and that the servers have certificates"
    )]
    Tls {
        /// All addresses, without passwords.
        addresses: String,
        /// The error.
        reason: String,
    },
    /// The server is too old.
    #[error("the NATS server has version {found}: {oldest} or later is needed")]
    OldServer {
        /// Its version.
        found: String,
        /// The oldest version that is supported.
        oldest: &'static str,
    },
    /// The servers or the account have no JetStream.
    #[error(
        "JetStream is not enabled on the NATS servers, or not for this account: add `jetstream {{ sync_interval: always }}` to the configuration of each server"
    )]
    NoJetStream,
    /// There is no such stream.
    #[error(
        "there is no stream `{stream}` on the NATS servers: check their addresses, or make a new cluster with roost cluster init --experimental"
    )]
    NoStream {
        /// Its name.
        stream: String,
    },
    /// There is no stream for files.
    #[error(
        "there is no stream `{stream}` for the files of pictures: start a node again, which makes it, or run: {command}"
    )]
    NoFiles {
        /// Its name.
        stream: String,
        /// The command that makes it.
        command: String,
    },
    /// JetStream does not answer, or refuses a request.
    #[error("JetStream cannot {doing} ({reason})")]
    Request {
        /// The operation, as a verb.
        doing: &'static str,
        /// The error.
        reason: String,
    },
    /// The stream would lose something, or holds other messages.
    #[error("the stream `{stream}` is configured so that it could lose {what}: {}; {advice}", wrong.join(", "))]
    Config {
        /// Its name.
        stream: String,
        /// What it could lose.
        what: &'static str,
        /// What it has, and what it must have.
        wrong: Vec<String>,
        /// What to do: the command that changes it back, if there is one.
        advice: String,
    },
    /// The stream belongs to another program.
    #[error("the stream `{stream}` was not made for roost: use another name")]
    NotOurs {
        /// Its name.
        stream: String,
    },
    /// The stream belongs to other nodes.
    #[error(
        "the stream `{stream}` belongs to cluster {found}, and this node to {expected}: use another stream for it, or join the cluster"
    )]
    OtherCluster {
        /// Its name.
        stream: String,
        /// The cluster of the stream.
        found: String,
        /// The cluster of this node.
        expected: String,
    },
    /// Groups that this node needs were removed from the stream.
    #[error("the stream begins at group {}, but this node needs those after {}: join the cluster again with a new directory", first.0, from.0)]
    StartsAfter {
        /// The oldest group.
        first: Position,
        /// The last group that this node has.
        from: Position,
    },
    /// The stream has lost its end, or is another one.
    #[error("the stream ends at group {}, but this node has applied group {}: the stream has lost changes; {}", last.0, from.0, LOST_END)]
    Shorter {
        /// The last group of the stream.
        last: Position,
        /// The last group that this node has.
        from: Position,
    },
    /// The stream has lost its end and was continued, or is another one.
    #[error(
        "group {} of the stream is not the one that this node has applied there: the stream has lost changes; {}",
        position.0,
        LOST_END
    )]
    Differs {
        /// Its position.
        position: Position,
    },
    /// A message is missing in the middle.
    #[error("group {} is missing in the stream", position.0)]
    Missing {
        /// Its position.
        position: Position,
    },
    /// A message is not a whole group.
    #[error("group {} of the stream is damaged: {what}", position.0)]
    Damaged {
        /// Its position.
        position: Position,
        /// Description of the damage.
        what: &'static str,
    },
    /// A message was written by a newer version of this program.
    #[error("group {} of the stream has format {found}, and this program reads format {known}", position.0)]
    Version {
        /// Its position.
        position: Position,
        /// Its format.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// Another process writes in the name of this node.
    #[error("another process writes as this node (group {}): each node needs a data directory of its own", position.0)]
    Superseded {
        /// A group of the other process.
        position: Position,
    },
    /// A payload is empty or longer than the servers accept.
    #[error(
        "a group has 1 to {max} bytes, not {bytes}: `max_payload` of the NATS servers limits it"
    )]
    Length {
        /// Its length.
        bytes: usize,
        /// The longest payload.
        max: usize,
    },
    /// Too much is under way. The payload was not taken; groups that come back make room.
    #[error("too many groups are under way")]
    Busy,
    /// The log stopped at an earlier error.
    #[error("the log stopped at an earlier error")]
    Stopped,
    /// The operating system gives no thread.
    #[error("cannot start the thread of the log")]
    Thread(#[source] io::Error),
}
