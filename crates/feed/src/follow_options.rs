//! What a user chose of their follows: whose boosts are not at home, and of whose posts they are notified.
//!
//! **Invariant:** a choice exists only while the user follows the other, or asks to; all choices of a user are one row,
//! whose length is bounded.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::{UserId, UserRef};
use crate::limits::{FOLLOW_OPTIONS_MAX, NOTIFYING_MAX};
use crate::refusal::Refusal;

/// What a user chose of one follow. Most follows have the default, which is not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowOptions {
    /// Whether boosts by the followed are not at home.
    pub hides_boosts: bool,
    /// Since when the user is notified of posts by the followed.
    pub notified_since: Option<Stamp>,
}

/// The options of a follow that are not the default, with the followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionsOf {
    /// The followed.
    pub other: UserId,
    /// The options.
    pub options: FollowOptions,
}

/// A follow with options, of which `None` leaves one as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowWith {
    /// The follower.
    pub user: UserRef,
    /// The followed.
    pub other: UserRef,
    /// Whether boosts by the followed are at home.
    pub boosts: Option<bool>,
    /// Whether the follower is notified of posts by the followed.
    pub notify: Option<bool>,
}

impl FollowWith {
    /// What the options are afterwards.
    #[must_use]
    pub fn applied_to(&self, before: FollowOptions, stamp: Stamp) -> FollowOptions {
        let notified_since = match self.notify {
            None => before.notified_since,
            Some(true) => before.notified_since.or(Some(stamp)),
            Some(false) => None,
        };
        let hides_boosts = self.boosts.map_or(before.hides_boosts, |boosts| !boosts);
        FollowOptions { hides_boosts, notified_since }
    }
}

impl FollowOptions {
    /// Puts the options of a follow among those of its user, which are in ascending order of the followed.
    ///
    /// # Errors
    /// If the user has as many as one may have.
    pub fn put_among(self, all: &mut Vec<OptionsOf>, other: UserId) -> Result<(), Refusal> {
        match all.binary_search_by_key(&other, |found| found.other) {
            Ok(at) => drop(all.remove(at)),
            Err(_) if self == Self::default() => return Ok(()),
            Err(_) => {}
        }
        if self != Self::default() {
            let at = all.partition_point(|found| found.other < other);
            all.insert(at, OptionsOf { other, options: self });
        }
        let notifying = all.iter().filter(|found| found.options.notified_since.is_some());
        match all.len() <= FOLLOW_OPTIONS_MAX && notifying.count() <= NOTIFYING_MAX {
            true => Ok(()),
            false => Err(Refusal::TooManyFollowOptions),
        }
    }
}
