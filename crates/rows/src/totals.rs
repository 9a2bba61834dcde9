//! Totals of all rows, which every command may change.

use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

/// Totals of all rows; kept in memory and stored with each checkpoint. Each crate of rules changes its own fields.
/// Fields are stored in this order: new ones are added at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of users ever registered, which is the next user id.
    pub users: u32,
    /// Number of live posts.
    pub posts: u64,
    /// Number of live follows.
    pub follows: u64,
    /// The highest stamp applied.
    pub last_stamp: Option<Stamp>,
    /// Day, counted from 1970, before which idempotency keys were swept.
    pub idempotency_day: u32,
    /// Number of friendships; each counts once.
    pub friendships: u64,
    /// Number of stories with rows: live ones, and ended ones that are not swept yet.
    pub stories: u64,
    /// Number of spaces for keys ever created in addition to those of the numbered buckets.
    pub spaces: u32,
    /// Number of rows of keys with an expiry.
    pub keys_expiring: u64,
    /// Number of buckets ever created in addition to the numbered ones.
    pub buckets_made: u64,
    /// Number of users that were deleted.
    pub users_deleted: u32,
    /// Number of deleted users whose rows are not all removed yet.
    pub users_erasing: u32,
    /// Number of accounts.
    pub accounts: u32,
    /// Number of apps that act for no user.
    pub apps_unused: u32,
    /// Number of commands so far that ended grants: a cache of grants is valid while it is unchanged.
    pub revocations: u64,
    /// Number of blocks. While it is zero, reads skip the look-up of blocks.
    pub blocks: u64,
    /// Number of mutes. While it is zero, reads skip the look-up of mutes.
    pub mutes: u64,
    /// Number of live posts with a restricted audience.
    pub posts_closed: u64,
    /// Number of disabled accounts. While it is zero, reads skip the look-up of disabled accounts.
    pub accounts_disabled: u32,
    /// Number of times so far that a user was deleted, disabled or enabled: a cache about users is valid while it is
    /// unchanged.
    pub hidings: u64,
    /// Number of accounts that wait for approval.
    pub accounts_pending: u32,
    /// Digest of the outcomes of the last group of a log of one node; 0 if unknown.
    pub outcomes: u64,
    /// A field that the next format adds.
    #[cfg(feature = "next-format")]
    pub next: u64,
}
