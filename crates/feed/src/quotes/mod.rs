//! Quotes: posts that show another post. The records are here; `facts.rs` has the reads, `rules.rs` what commands do, and
//! `cost.rs` the costs.
//!
//! [`Viewer::quoted`](crate::Viewer::quoted) decides at each read what a viewer sees of a quote. So nothing is rewritten
//! when the quoted post is edited or deleted, or when users block each other.
//!
//! **Invariant:** a post quotes an older post, and no edit changes which. So there are no cycles. A quoted post is
//! shown with only the id of the post that it quotes itself, so a chain of quotes costs as much as one quote.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod rules;

use serde::{Deserialize, Serialize};

use crate::ids::PostId;
use crate::names::names;

/// Users other than the author who may quote a post that they see; nobody if the post is neither public nor unlisted.
/// Stored as the position in the enum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotePolicy {
    /// Everybody.
    #[default]
    Public,
    /// The followers of the author.
    Followers,
    /// Nobody else.
    Nobody,
}

/// The quote in a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// The quoted post, which is not a boost and may be deleted.
    pub post: PostId,
    /// Whether the author of the quoted post has revoked it.
    pub is_revoked: bool,
}

/// State of a quote for a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuoteState {
    /// The quoted post is shown.
    Accepted,
    /// The quote is revoked.
    Revoked,
    /// The quoted post is deleted.
    Deleted,
    /// The viewer may not see the quoted post, for example because its author blocks them or is disabled.
    Unauthorized,
    /// The viewer blocks the author of the quoted post.
    Blocked,
    /// The viewer mutes the author of the quoted post.
    Muted,
}

names!(QuotePolicy {
    Public = "public",
    Followers = "followers",
    Nobody = "nobody",
});

names!(QuoteState {
    Accepted = "accepted",
    Revoked = "revoked",
    Deleted = "deleted",
    Unauthorized = "unauthorized",
    Blocked = "blocked_account",
    Muted = "muted_account",
});
