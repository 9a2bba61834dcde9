//! Errors of opening a shared log, and errors that stop a log. Messages suggest a remedy.

use std::io;
use std::path::PathBuf;

use commitlog::Position;

/// Remedy for a node that has more groups than the stream.
const LOST_END: &str = "join the cluster again with a new directory, or, if other nodes refuse the stream too, make \
    the node with the highest position a server of its own with roost cluster leave";

/// Error of a log that is stored in a stream.
#[derive(Debug, thiserror::Error)]
pub enum JetLogError {
    /// An address is not that of a NATS server.
    #[error(
        "`{address}` is not the address of a NATS server ({reason}): write nats://HOST:4222 or tls://HOST:4222, several with commas between"
    )]
    Address {
        /// Address, without a password.
        address: String,
        /// Description of the fault.
        reason: String,
    },
    /// No server can be reached.
    #[error(
        "no NATS server can be reached at {addresses} ({reason}): check the addresses, and that nats-server runs there"
    )]
    Unreachable {
        /// All addresses, without passwords.
        addresses: String,
        /// Last error.
        reason: String,
    },
    /// The server refuses or requires credentials.
    #[error(
        "the NATS servers at {addresses} refuse the credentials, or require some ({reason}): check the credentials file, or the user and password in the address"
    )]
    Credentials {
        /// All addresses, without passwords.
        addresses: String,
        /// Message of the server.
        reason: String,
    },
    /// A file of credentials or certificates cannot be used.
    #[error("cannot read {}", file.display())]
    File {
        /// Path of the file.
        file: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// TLS cannot be established.
    #[error(
        "no TLS connection with the NATS servers at {addresses} ({reason}): check the file of certificate authorities, and that the servers have certificates"
    )]
    Tls {
        /// All addresses, without passwords.
        addresses: String,
        /// Error of the connection.
        reason: String,
    },
    /// The server is too old.
    #[error("the NATS server has version {found}: {oldest} or later is needed")]
    OldServer {
        /// Version of the server.
        found: String,
        /// Oldest supported version.
        oldest: &'static str,
    },
    /// The servers or the account have no JetStream.
    #[error(
        "JetStream is not enabled on the NATS servers, or not for this account: add `jetstream {{ sync_interval: always }}` to the configuration of each server"
    )]
    NoJetStream,
    /// The stream does not exist.
    #[error(
        "there is no stream `{stream}` on the NATS servers: check their addresses, or create a new cluster with roost cluster init --experimental"
    )]
    NoStream {
        /// Name of the stream.
        stream: String,
    },
    /// The stream for files does not exist.
    #[error(
        "there is no stream `{stream}` for the files of pictures: start a node again, which creates it, or run: {command}"
    )]
    NoFiles {
        /// Name of the stream.
        stream: String,
        /// Command that creates the stream.
        command: String,
    },
    /// JetStream does not answer, or refuses a request.
    #[error("JetStream cannot {doing} ({reason})")]
    Request {
        /// Operation, as a verb.
        doing: &'static str,
        /// Reason of the failure.
        reason: String,
    },
    /// The stream could lose data because of its configuration, or it has messages of other programs.
    #[error("the stream `{stream}` is configured so that it could lose {what}: {}; {advice}", wrong.join(", "))]
    Config {
        /// Name of the stream.
        stream: String,
        /// Data that the stream could lose.
        what: &'static str,
        /// Current and required values of the wrong settings.
        wrong: Vec<String>,
        /// Remedy: the command that corrects the configuration, if there is one.
        advice: String,
    },
    /// The stream belongs to another program.
    #[error("the stream `{stream}` was not made for roost: use another name")]
    NotOurs {
        /// Name of the stream.
        stream: String,
    },
    /// The stream belongs to other nodes.
    #[error(
        "the stream `{stream}` belongs to cluster {found}, and this node to {expected}: use another stream for it, or join the cluster"
    )]
    OtherCluster {
        /// Name of the stream.
        stream: String,
        /// Cluster of the stream.
        found: String,
        /// Cluster of this node.
        expected: String,
    },
    /// Groups that this node needs were removed from the stream.
    #[error("the stream begins at group {}, but this node needs those after {}: join the cluster again with a new directory", first.0, from.0)]
    StartsAfter {
        /// Oldest group of the stream.
        first: Position,
        /// Last group that this node has.
        from: Position,
    },
    /// The stream has lost its last groups, or is another one.
    #[error("the stream ends at group {}, but this node has applied group {}: the stream has lost changes; {}", last.0, from.0, LOST_END)]
    Shorter {
        /// Last group of the stream.
        last: Position,
        /// Last group that this node has.
        from: Position,
    },
    /// The stream has lost its last groups and was continued, or is another one.
    #[error(
        "group {} of the stream is not the one that this node has applied there: the stream has lost changes; {}",
        position.0,
        LOST_END
    )]
    Differs {
        /// Position of the group.
        position: Position,
    },
    /// A message between two others is missing.
    #[error("group {} is missing in the stream", position.0)]
    Missing {
        /// Position of the message.
        position: Position,
    },
    /// A message is not a whole group.
    #[error("group {} of the stream is damaged: {what}", position.0)]
    Damaged {
        /// Position of the message.
        position: Position,
        /// Description of the damage.
        what: &'static str,
    },
    /// A newer version of this program wrote a message.
    #[error("group {} of the stream has format {found}, and this program reads format {known}", position.0)]
    Version {
        /// Position of the message.
        position: Position,
        /// Format of the message.
        found: u32,
        /// Newest format that this program reads.
        known: u32,
    },
    /// Another process writes with the id of this node.
    #[error("another process writes as this node (group {}): each node needs its own data directory", position.0)]
    Superseded {
        /// Position of a group of the other process.
        position: Position,
    },
    /// A payload is empty or longer than the servers accept.
    #[error(
        "a group has 1 to {max} bytes, not {bytes}: `max_payload` of the NATS servers limits it"
    )]
    Length {
        /// Length of the payload in bytes.
        bytes: usize,
        /// Maximum length of a payload in bytes.
        max: usize,
    },
    /// Too many groups are pending. The payload was not accepted. Wait until groups have come back.
    #[error("too many groups are under way")]
    Busy,
    /// The log stopped after an earlier error.
    #[error("the log stopped at an earlier error")]
    Stopped,
    /// The operating system provides no thread.
    #[error("cannot start the thread of the log")]
    Thread(#[source] io::Error),
}
