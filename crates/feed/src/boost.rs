//! What is stored of boosts: what a boost shows again, and who boosted a post last.

use rows::{Stamp, Value};
use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserId};
use crate::limits::BOOST_RECENT_MS;

/// Post that a boost shows again: one that is for everybody, by another user or the same one, or a post of the booster's
/// own for their followers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boost {
    /// The boosted post, which is no boost.
    pub post: PostId,
    /// Its author.
    pub author: UserId,
    /// Whether followers of its author have it at home anyway, not far below: it is no reply to somebody else, and was
    /// younger than [`limits::BOOST_RECENT_MS`](crate::limits::BOOST_RECENT_MS) when it was boosted.
    pub is_recent: bool,
    /// The users who boosted it within that time before and still do, the last one first: at most
    /// [`limits::EARLIER_BOOSTS_MAX`](crate::limits::EARLIER_BOOSTS_MAX).
    pub earlier: Vec<UserId>,
}

/// Counts of a post.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostCounts {
    /// Number of users who favourited it.
    pub favourites: u32,
    /// Number of users who boosted it.
    pub boosts: u32,
    /// Those of them who boosted it last, the last one first: at most
    /// [`limits::EARLIER_BOOSTS_MAX`](crate::limits::EARLIER_BOOSTS_MAX). From them the next boost knows the earlier ones.
    pub boosters: Vec<UserId>,
}

impl Boost {
    /// A boost of a post with this id, author and user replied to, after these users boosted it.
    #[must_use]
    pub fn new(
        (post, author, reply_to): (PostId, UserId, Option<UserId>),
        stamp: Stamp,
        earlier: Vec<UserId>,
    ) -> Self {
        let is_young = stamp.unix_ms() < post.unix_ms() + BOOST_RECENT_MS;
        let is_recent = is_young && reply_to.is_none_or(|to| to == author);
        Self { post, author, is_recent, earlier }
    }
}

impl PostCounts {
    /// Little-endian words of 4 bytes: the favourites, and if there are boosts, their number and the last users. None if
    /// there is nothing to count.
    #[must_use]
    pub fn encode(&self) -> Option<Value> {
        let mut bytes = Value::from_slice(&self.favourites.to_le_bytes());
        if self.boosts > 0 {
            bytes.extend_from_slice(&self.boosts.to_le_bytes());
            self.boosters.iter().for_each(|user| bytes.extend_from_slice(&user.0.to_le_bytes()));
        }
        (self.favourites > 0 || self.boosts > 0).then_some(bytes)
    }

    /// Reverses [`PostCounts::encode`]; none if the bytes are not of such a row.
    #[must_use]
    pub fn try_decode(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<4>() else { return None };
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let (favourites, boosts) = (words.next()?, words.next().unwrap_or(0));
        Some(Self { favourites, boosts, boosters: words.map(UserId).collect() })
    }
}
