//! How much there is, which every command may change.

use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

/// How much of everything there is; kept in memory and stored with each checkpoint. Rules change what is
/// theirs. Fields are stored in this order: new ones are added at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// People registered; also the next user id.
    pub users: u32,
    /// Posts that stand.
    pub posts: u64,
    /// Follows that stand.
    pub follows: u64,
    /// The highest stamp applied.
    pub last_stamp: Option<Stamp>,
    /// Idempotency keys of earlier days are swept.
    pub idempotency_day: u32,
    /// Friendships that stand; each counts once.
    pub friendships: u64,
    /// Stories whose rows stand: live ones, and dead ones that are not swept yet.
    pub stories: u64,
    /// No row of a story that died before this second since 1970 is left.
    pub sweep_second: u64,
    /// Spaces for keys that were made beyond those of the numbered buckets.
    pub spaces: u32,
    /// Rows of keys that have an expiry.
    pub keys_expiring: u64,
    /// Buckets that were ever made beyond the numbered ones.
    pub buckets_made: u64,
    /// No row is left of a story that died in `sweep_second`, up to this id: where the next sweep begins,
    /// so that it does not step over all that was removed before. Forgotten at a restart, which costs one such
    /// walk and changes nothing.
    #[serde(skip)]
    pub swept_up_to: u64,
}
