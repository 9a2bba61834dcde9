//! Control of the share of follows within circles, so that the clustering is as requested.
//!
//! When the follows of a community are assigned, all neighbors of its members are known except for the few follows that
//! are assigned last. So the clustering of a sample of members is measured, and the share within circles is adjusted
//! for the next communities.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::StdRng;

use super::clustering::Sample;
use super::draft::Draft;

/// Approximate number of sampled users.
const LOOKED_AT: u32 = 6_000;
/// Share assigned within circles in the first community.
const SHARE_FIRST: f64 = 0.5;
/// Change of the share after a community of all users whose clustering differs from the requested one by 1. The final
/// error is the total change of the share divided by this gain. With ten times the gain, one large community would move
/// the share from one end of its range to the other.
const GAIN: f64 = 100.0;

/// The share of follows assigned in circles, adjusted by the measured clustering.
#[derive(Debug)]
pub(crate) struct Steer {
    asked: f64,
    share: f64,
    sample: Sample,
}

impl Steer {
    /// Creates the control. `draft` must have all follows outside of communities, and no others.
    pub(crate) fn new(draft: &Draft, asked: f64, rng: &mut StdRng) -> Steer {
        let mut sample = Sample::of(draft.places(), LOOKED_AT, rng.random());
        for follower in 0..draft.places() {
            for &followed in draft.following(follower) {
                sample.add(follower, followed);
            }
        }
        Steer { asked, share: SHARE_FIRST, sample }
    }

    /// Share of follows within the next community to assign within circles.
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
