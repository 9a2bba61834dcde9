//! Counts of all that is stored, which every command may change.

use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

/// Counts of all that is stored; kept in memory and stored with each checkpoint. Each crate of rules changes
/// its own fields. Fields are stored in this order: new ones are added at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of users ever registered; also the next user id.
    pub users: u32,
    /// Number of posts that exist.
    pub posts: u64,
    /// Number of follows that exist.
    pub follows: u64,
    /// The highest stamp applied.
    pub last_stamp: Option<Stamp>,
    /// Days since 1970: idempotency keys of earlier days are swept.
    pub idempotency_day: u32,
    /// Number of friendships that exist; each counts once.
    pub friendships: u64,
    /// Number of stories that have rows: live ones, and dead ones that are not swept yet.
    pub stories: u64,
    /// Number of spaces for keys made in addition to those of the numbered buckets.
    pub spaces: u32,
    /// Number of rows of keys that have an expiry.
    pub keys_expiring: u64,
    /// Number of buckets ever made in addition to the numbered ones.
    pub buckets_made: u64,
    /// Number of users that were deleted.
    pub users_deleted: u32,
    /// Number of deleted users whose rows are not all removed.
    pub users_erasing: u32,
    /// Number of accounts.
    pub accounts: u32,
    /// Number of apps that act for no user.
    pub apps_unused: u32,
    /// Number of commands so far that ended grants: a cache of grants is valid while it stays the same.
    pub revocations: u64,
    /// Number of blocks that have rows. If there are none, no read looks for one.
    pub blocks: u64,
    /// Number of mutes that have rows, as for blocks.
    pub mutes: u64,
    /// Number of posts that exist and are not for everybody.
    pub posts_closed: u64,
    /// Number of accounts that are disabled. If there are none, no read looks for one.
    pub accounts_disabled: u32,
    /// Number of times so far that a user was deleted, disabled or enabled: what was made of users is current as far as
    /// this stays the same.
    pub hidings: u64,
    /// Number of accounts that wait for approval.
    pub accounts_pending: u32,
    /// Digest of the outcomes of the last group of a log of one node; 0 if that is not known.
    pub outcomes: u64,
    /// A field that the next format adds.
    #[cfg(feature = "next-format")]
    pub next: u64,
}
