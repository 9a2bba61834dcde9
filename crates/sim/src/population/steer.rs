//! Control of the share of follows within circles, so that the clustering is as requested.
//!
//! After the follows of a community are assigned, almost all neighbors of its members are known; only a few follows are
//! assigned later. The clustering of a sample of members is then measured, and the share within circles is adjusted for
//! the next communities.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::StdRng;

use super::clustering::Sample;
use super::draft::Draft;

/// Approximate number of sampled users.
const LOOKED_AT: u32 = 6_000;
/// Share of follows within circles, in the first community.
const SHARE_FIRST: f64 = 0.5;
/// Factor from an error of the clustering, in a community of all users, to the change of the share. The final error is
/// the total change of the share divided by this factor. With ten times this factor, one large community could move the
/// share from one end of its range to the other.
const GAIN: f64 = 100.0;

/// Share of follows within circles, adjusted by the measured clustering.
#[derive(Debug)]
pub(crate) struct Steer {
    asked: f64,
    share: f64,
    sample: Sample,
}

impl Steer {
    /// Creates the control. `draft` must contain exactly the follows between communities.
    pub(crate) fn new(draft: &Draft, asked: f64, rng: &mut StdRng) -> Steer {
        let mut sample = Sample::of(draft.places(), LOOKED_AT, rng.random());
        for follower in 0..draft.places() {
            for &followed in draft.following(follower) {
                sample.add(follower, followed);
            }
        }
        Steer { asked, share: SHARE_FIRST, sample }
    }

    /// Share of follows to assign within circles, in the next community.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// Measures a community whose follows have been assigned, and adjusts the share.
    pub(crate) fn look(&mut self, draft: &Draft, community: Range<u32>) {
        for follower in community.clone() {
            for &followed in draft.locals(follower) {
                self.sample.add(follower, followed);
            }
        }
        let (mut sum, mut users) = (0.0, 0);
        for user in community.clone() {
            if self.sample.contains(user)
                && let Some(local) = self.sample.local(user, |place| draft.following(place))
            {
                sum += local;
                users += 1;
            }
        }
        if users > 0 {
            let short = self.asked - sum / f64::from(users);
            let weight = f64::from(community.end - community.start) / f64::from(draft.places());
            self.share = (self.share + GAIN * weight * short).clamp(0.0, 1.0);
        }
    }
}
