//! Options of follows: hiding boosts by the followed user, and notifications of their posts.
//!
//! **Invariant:** options exist only while the user follows the other or asks to. All options of a user are in one row
//! of bounded length.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::{UserId, UserRef};
use crate::limits::{FOLLOW_OPTIONS_MAX, NOTIFYING_MAX};
use crate::refusal::Refusal;

/// Options of one follow. The default, which most follows have, is not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowOptions {
    /// Whether home hides boosts by the followed user.
    pub hides_boosts: bool,
    /// Stamp since which the user is notified of posts by the followed user.
    pub notified_since: Option<Stamp>,
}

/// Non-default options of a follow, with the followed user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionsOf {
    /// The followed user.
    pub other: UserId,
    /// The options.
    pub options: FollowOptions,
}

/// A follow with options. `None` leaves an option unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowWith {
    /// The follower.
    pub user: UserRef,
    /// The user to follow.
    pub other: UserRef,
    /// Whether home shows boosts by the followed user.
    pub boosts: Option<bool>,
    /// Whether posts by the followed user notify the follower.
    pub notify: Option<bool>,
}

impl FollowWith {
    /// Options after the change.
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
    /// Inserts the options of a follow into those of its user, which are in ascending order of the followed user.
    ///
    /// # Errors
    /// [`Refusal::TooManyFollowOptions`] at the limit.
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
