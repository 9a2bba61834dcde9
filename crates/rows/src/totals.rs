//! Totals of all rows. Every command may change them.

use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

/// Totals of all rows. They are in memory, and stored with each checkpoint. Each crate of rules changes its own fields.
/// Fields are stored in this order; new fields are added at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of users ever registered. It is the next user id.
    pub users: u32,
    /// Number of live posts.
    pub posts: u64,
    /// Number of live follows.
    pub follows: u64,
    /// The highest stamp applied.
    pub last_stamp: Option<Stamp>,
    /// First day, counted from 1970, whose idempotency keys were not swept.
    pub idempotency_day: u32,
    /// Number of friendships. Each pair of friends counts once.
    pub friendships: u64,
    /// Number of stories with rows: live ones, and expired ones that are not swept yet.
    pub stories: u64,
    /// Number of spaces for keys ever created, without those of the numbered buckets.
    pub spaces: u32,
    /// Number of rows of keys with an expiry.
    pub keys_expiring: u64,
    /// Number of buckets ever created, without the numbered buckets.
    pub buckets_made: u64,
    /// Number of users that were deleted.
    pub users_deleted: u32,
    /// Number of deleted users with rows that are still to be removed.
    pub users_erasing: u32,
    /// Number of accounts.
    pub accounts: u32,
    /// Number of apps that act for no user.
    pub apps_unused: u32,
    /// Number of commands so far that ended grants. Caches of grants are valid while it is unchanged.
    pub revocations: u64,
    /// Number of blocks. While it is zero, reads skip the look-up of blocks.
    pub blocks: u64,
    /// Number of mutes. While it is zero, reads skip the look-up of mutes.
    pub mutes: u64,
    /// Number of live posts with a restricted audience.
    pub posts_closed: u64,
    /// Number of disabled accounts. While it is zero, reads skip the look-up of disabled accounts.
    pub accounts_disabled: u32,
    /// Number of times so far that a user was deleted, disabled or enabled. Caches about users are valid while it is
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
