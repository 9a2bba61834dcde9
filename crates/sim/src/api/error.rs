//! Errors of using and loading a server.

use thiserror::Error;

use crate::client::ClientError;

/// Error of loading.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The connection failed, or the response is malformed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server requires an application key, or does not accept the given one.
    #[error("the server requires a valid application key (status {status})")]
    Unauthorized {
        /// The status of the response.
        status: u16,
    },
    /// The server refused the whole batch.
    #[error("the server refused with status {status}: {body}")]
    Refused {
        /// The status of the response.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// The server refused one command.
    #[error("command {number} was refused: {error}: {message}")]
    Command {
        /// Number of the command within its batch, from 0.
        number: u64,
        /// The server's error code.
        error: String,
        /// The server's error message.
        message: String,
    },
    /// A target is not a node of a cluster, although there are several targets.
    #[error("several targets must be nodes of one cluster: {0}")]
    NoCluster(String),
    /// The server already has users.
    #[error("the server already has users; a simulation needs an empty one")]
    NotEmpty,
    /// The server refused a bucket or a record.
    #[error("the server refused {what} with status {status}: {body}")]
    Key {
        /// The path of the request.
        what: String,
        /// The status of the response.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// The bucket to fill exists already.
    #[error("the server already has a bucket {0:?}; delete it first")]
    BucketExists(&'static str),
    /// The response ended before the last result.
    #[error("the response ended after {done} of {total} results")]
    Short {
        /// Number of results received.
        done: u64,
        /// Number of commands sent.
        total: u64,
    },
    /// The server sent nothing within the timeout.
    #[error("no result for {seconds} s")]
    Stalled {
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The server does not have Mastodon's API.
    #[error(
        "the server does not answer Mastodon's API: the answer to {path} has status {status}: {body}"
    )]
    NoMastodon {
        /// The path of the request.
        path: &'static str,
        /// The status of the response.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// The API does not allow sign-ups.
    #[error(
        "{why}; create the accounts beforehand and name a file of their tokens with --tokens (roost \
         account test-tokens creates both), or let everybody sign up (roost serve --registrations open)"
    )]
    SignUpClosed {
        /// Explanation of the server.
        why: &'static str,
    },
    /// The file has fewer tokens than users.
    #[error("{users} users need as many tokens; the file of --tokens has {tokens}")]
    TooFewTokens {
        /// Number of users.
        users: u32,
        /// Number of tokens.
        tokens: usize,
    },
    /// Tokens for the accounts of an earlier simulation are missing.
    #[error("--loaded needs the tokens of the accounts (--tokens)")]
    NoTokens,
    /// A token, or a name and a password, is not valid.
    #[error("line {line} of the file of --tokens is refused with status {status}: {body}")]
    BadToken {
        /// Number of the line, from 1.
        line: usize,
        /// The status of the response.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// Two tokens belong to one account.
    #[error("lines {first} and {second} of the file of --tokens are for one account, {handle}")]
    SameAccount {
        /// Number of a line, from 1.
        first: usize,
        /// Number of a line, from 1.
        second: usize,
        /// The handle of the account.
        handle: String,
    },
    /// An account already follows others, so its home timeline cannot be compared.
    #[error(
        "{handle} follows {following} users already; a simulation needs accounts that follow nobody, \
         or --loaded"
    )]
    Follows {
        /// The handle of the account.
        handle: String,
        /// Number of followed users.
        following: u64,
    },
    /// The server limits the rate of requests of one address or user.
    #[error(
        "cannot {what}: the server limits the rate (status 429{limits}). Create the accounts \
         beforehand and name their tokens with --tokens, use fewer users, or raise the limit of the \
         server (roost serve --open has none)"
    )]
    Limited {
        /// Attempted action.
        what: &'static str,
        /// The headers that describe the limit.
        limits: String,
    },
    /// The server refused a step of loading.
    #[error("cannot {what}: status {status}: {body}")]
    Step {
        /// Attempted action.
        what: &'static str,
        /// The status of the response.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// The response to a step is not as the API specifies.
    #[error("cannot {what}: the answer is not that of Mastodon's API: {body}")]
    Answer {
        /// Attempted action.
        what: &'static str,
        /// The beginning of the body.
        body: String,
    },
}

/// The beginning of a body, for a message.
pub(super) fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(200).collect()
}
