//! Fields of Mastodon's entities used by the simulator.

use serde::Deserialize;

/// An account in a status.
#[derive(Deserialize)]
pub(super) struct Author<'a> {
    pub(super) id: &'a str,
}

/// A status.
#[derive(Deserialize)]
pub(super) struct Status<'a> {
    pub(super) id: &'a str,
    #[serde(borrow)]
    pub(super) account: Author<'a>,
    pub(super) in_reply_to_account_id: Option<&'a str>,
}

/// An entry of a list: a notification with a status, or a status itself.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Entry<'a> {
    Notification {
        #[serde(borrow)]
        status: Status<'a>,
    },
    Status(#[serde(borrow)] Status<'a>),
}

impl<'a> Entry<'a> {
    pub(super) fn status(&self) -> &Status<'a> {
        match self {
            Entry::Notification { status } | Entry::Status(status) => status,
        }
    }
}

/// A registered app.
#[derive(Deserialize)]
pub(super) struct App {
    pub(super) client_id: String,
    pub(super) client_secret: String,
}

/// A token.
#[derive(Deserialize)]
pub(super) struct Token {
    pub(super) access_token: String,
}

/// The account of a token.
#[derive(Deserialize)]
pub(super) struct OwnAccount {
    pub(super) id: String,
    pub(super) username: String,
    #[serde(default)]
    pub(super) following_count: u64,
}

/// A server's description of itself. Some servers have only the first field.
#[derive(Deserialize)]
pub(super) struct Instance {
    #[serde(rename = "version")]
    pub(super) _version: String,
    #[serde(default)]
    pub(super) registrations: bool,
    #[serde(default)]
    pub(super) approval_required: bool,
}
