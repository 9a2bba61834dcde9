//! Planned numbers of followers and followees of each user: within the user's community or elsewhere, mutual or not.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

use super::draft::{at, set};

/// Number of followers above which a user is a celebrity, or half of the users if that is less. Celebrities have more
/// than half of all followers in total. Their number of followees is independent of their number of followers.
const CELEBRITY_FOLLOWERS: u32 = 5_000;
/// Share of the other users whose followees increase with their followers, divided by the requested reciprocity. If
/// followees were independent of followers, hardly a tenth of all follows could be returned, because most are by users
/// with few followers. A higher share would give a dense core of users who follow each other, and more clustering than
/// requested.
const COUPLED_PER_RECIPROCITY: f64 = 2.6;
/// Share of a user's followers and followees who are in the user's community, as far as the limits allow.
const WITHIN: f64 = 0.85;
/// Maximum number of a user's followers in the user's own community; the same limit holds for followees. All others are
/// in other communities.
const WITHIN_MAX: u32 = 100;
/// Maximum share of a community that a member follows, and maximum share that follows the member.
const WITHIN_PART_MAX: f64 = 0.3;
/// Maximum share of the returnable follows that are planned as returned. Pairs are found at random: with a higher
/// share, some users would find no match.
const RETURNED_MAX: f64 = 0.95;
/// Number of bisections of the share of returned follows.
const HALVINGS: u32 = 24;

/// The follows to assign.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Number of followees, by place.
    pub(crate) following: Vec<u32>,
    /// Follows within the same community. Followers and followees have the same sum in each community.
    pub(crate) within: Quotas,
    pub(crate) elsewhere: Quotas,
}

/// Numbers of followers and followees still to be assigned, by place.
#[derive(Debug)]
pub(crate) struct Quotas {
    pub(crate) followers: Vec<u32>,
    pub(crate) following: Vec<u32>,
    /// Number of mutual follows.
    pub(crate) mutual: Vec<u32>,
}

impl Plan {
    /// Plans the follows. A share of `reciprocity` of them is returned. The counts of followers and followees are
    /// ascending, and each community is a range of places.
    pub(crate) fn new(
        mut followers: Vec<u32>,
        following: &[u32],
        communities: &[Range<u32>],
        reciprocity: f64,
        rng: &mut StdRng,
    ) -> Plan {
        followers.shuffle(rng);
        let coupled = (COUPLED_PER_RECIPROCITY * reciprocity).min(1.0);
        let following = coupled_with(&followers, following, coupled, rng);
        let mut within = Quotas::none(following.len());
        let mut elsewhere =
            Quotas { followers, following: following.clone(), mutual: vec![0; following.len()] };
        for community in communities {
            let others = f64::from(community.end - community.start - 1);
            let most = ((others * WITHIN_PART_MAX) as u32).min(WITHIN_MAX);
            within.carve(&mut elsewhere, community.clone(), WITHIN, most);
        }
        let wanted = reciprocity * total(&following) as f64;
        plan_mutual(&mut within, &mut elsewhere, wanted, rng);
        Plan { following, within, elsewhere }
    }
}

/// Assigns the ascending counts in `following` to users. A share of `coupled` of the users get them in the order of
/// their followers, the others at random.
fn coupled_with(followers: &[u32], following: &[u32], coupled: f64, rng: &mut StdRng) -> Vec<u32> {
    let users = followers.len() as u32;
    let celebrity = CELEBRITY_FOLLOWERS.min(users / 2);
    let key = |place: u32| {
        let own = at(followers, place);
        let is_coupled = own <= celebrity && rng.random_bool(coupled);
        let key = if is_coupled { own } else { at(followers, rng.random_range(0..users)) };
        // Order equal counts at random.
        ((u64::from(key) << 32) | u64::from(rng.next_u32()), place)
    };
    let mut order: Vec<(u64, u32)> = (0..users).map(key).collect();
    order.sort_unstable();
    let mut given = vec![0; followers.len()];
    for (&(_, place), &count) in order.iter().zip(following) {
        set(&mut given, place, count);
    }
    given
}

impl Quotas {
    pub(crate) fn none(places: usize) -> Quotas {
        let none = vec![0; places];
        Quotas { followers: none.clone(), following: none.clone(), mutual: none }
    }

    /// Moves a share of the quotas from `from` to `self`, for these places, which are a circle or a community: at most
    /// `most` per place. The sums of followers and followees are equal.
    pub(crate) fn carve(&mut self, from: &mut Quotas, places: Range<u32>, share: f64, most: u32) {
        let part = |counts: &[u32]| -> Vec<u32> {
            let counts = places.clone().map(|place| at(counts, place));
            counts.map(|count| ((f64::from(count) * share).round() as u32).min(most)).collect()
        };
        let (mut followers, mut following) = (part(&from.followers), part(&from.following));
        let sum = total(&followers).min(total(&following));
        cap(&mut followers, sum);
        cap(&mut following, sum);
        let mutual = part(&from.mutual);
        move_to(&mut self.followers, &mut from.followers, places.start, &followers);
        move_to(&mut self.following, &mut from.following, places.start, &following);
        move_to(&mut self.mutual, &mut from.mutual, places.start, &mutual);
    }

    /// Returns the remaining quotas of these places to `to`.
    pub(crate) fn give_back(&mut self, to: &mut Quotas, places: Range<u32>) {
        let give = |kept: &mut [u32], all: &mut [u32]| {
            let left: Vec<u32> = places.clone().map(|place| at(kept, place)).collect();
            move_to(all, kept, places.start, &left);
        };
        give(&mut self.followers, &mut to.followers);
        give(&mut self.following, &mut to.following);
        give(&mut self.mutual, &mut to.mutual);
    }

    /// Number of pairs that the user at `place` still needs and can have.
    pub(crate) fn to_pair(&self, place: u32) -> u32 {
        at(&self.mutual, place).min(self.mutual_max(place))
    }

    fn mutual_max(&self, place: u32) -> u32 {
        at(&self.followers, place).min(at(&self.following, place))
    }
}

/// Moves counts from `from` to `to`, for consecutive places from `place` on.
fn move_to(to: &mut [u32], from: &mut [u32], place: u32, counts: &[u32]) {
    for (place, count) in (place..).zip(counts) {
        let (more, less) = (at(to, place) + count, at(from, place) - count);
        set(to, place, more);
        set(from, place, less);
    }
}

fn total(counts: &[u32]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

/// Reduces the largest counts to one height (some to one more), so that their sum is `sum`, which must not exceed the
/// current sum.
fn cap(counts: &mut [u32], sum: u64) {
    if total(counts) == sum {
        return;
    }
    let capped =
        |height: u32| -> u64 { counts.iter().map(|&count| u64::from(count.min(height))).sum() };
    let (mut low, mut high) = (0, counts.iter().copied().max().unwrap_or(0));
    while low + 1 < high {
        let middle = low.midpoint(high);
        if capped(middle) <= sum {
            low = middle;
        } else {
            high = middle;
        }
    }
    let mut left = sum - capped(low);
    for count in counts {
        let more = u64::from(*count > low).min(left);
        left -= more;
        *count = (*count).min(low) + more as u32;
    }
}

/// Plans about `wanted` returned follows (two per pair), in proportion to the maximum of each user; fewer if there
/// cannot be so many.
fn plan_mutual(within: &mut Quotas, elsewhere: &mut Quotas, wanted: f64, rng: &mut StdRng) {
    let places = 0..within.followers.len() as u32;
    let rounding: Vec<f64> = places.clone().map(|_| rng.random()).collect();
    let share_out = |part: f64| -> (Vec<u32>, Vec<u32>) {
        let split = |(place, rounding): (u32, &f64)| {
            let (near, far) = (within.mutual_max(place), elsewhere.mutual_max(place));
            let mutual = (f64::from(near + far) * part + rounding) as u32;
            (mutual.min(near), mutual.saturating_sub(near).min(far))
        };
        places.clone().zip(&rounding).map(split).unzip()
    };
    let (mut low, mut high) = (0.0, RETURNED_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let (near, far) = share_out(middle);
        if ((total(&near) + total(&far)) as f64) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    // Zero needs no search: by rounding, a search would add a few returned follows.
    if wanted > 0.0 {
        (within.mutual, elsewhere.mutual) = share_out(f64::midpoint(low, high));
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn counts_are_capped_at_one_height() {
        let check = |counts: &[u32], sum: u64, expect: &[u32]| {
            let mut capped = counts.to_vec();
            cap(&mut capped, sum);
            assert_eq!(capped, expect, "{counts:?} to {sum}");
        };
        check(&[], 0, &[]);
        check(&[3, 1, 2], 6, &[3, 1, 2]);
        check(&[3, 1, 2], 5, &[2, 1, 2]);
        check(&[9, 1, 9, 9], 12, &[4, 1, 4, 3]);
        check(&[5, 5], 0, &[0, 0]);
    }

    #[test]
    fn what_is_carved_out_has_equal_sums_and_comes_from_the_whole() {
        let mut whole = Quotas {
            followers: vec![0, 40, 2, 3, 7],
            following: vec![5, 5, 5, 5, 9],
            mutual: vec![0, 5, 2, 3, 7],
        };
        let mut part = Quotas::none(5);
        part.carve(&mut whole, 0..4, 0.5, 3);
        assert_eq!(
            (&part.followers, &part.following),
            (&vec![0, 3, 1, 2, 0], &vec![2, 2, 1, 1, 0])
        );
        assert_eq!(
            (&whole.followers, &whole.mutual),
            (&vec![0, 37, 1, 1, 7], &vec![0, 2, 1, 1, 7])
        );
        part.give_back(&mut whole, 0..4);
        assert_eq!((whole.followers, whole.mutual), (vec![0, 40, 2, 3, 7], vec![0, 5, 2, 3, 7]));
        assert_eq!(total(&part.followers) + total(&part.following) + total(&part.mutual), 0);
    }

    #[test]
    fn a_plan_shares_out_all_counts_and_returns_what_is_asked_for() {
        let degrees = super::super::degrees::fitted(20_000);
        let (followers, following) = (total(&degrees.followers), total(&degrees.following));
        for reciprocity in [0.0, 0.1, 0.22] {
            let mut rng = StdRng::seed_from_u64(1);
            let communities = [0..15_000, 15_000..20_000];
            let (all, rates) = (degrees.followers.clone(), &degrees.following);
            let plan = Plan::new(all, rates, &communities, reciprocity, &mut rng);
            let (near, far) = (&plan.within, &plan.elsewhere);
            assert_eq!(total(&near.followers) + total(&far.followers), followers);
            assert_eq!(total(&near.following) + total(&far.following), following);
            let mutual = (total(&near.mutual) + total(&far.mutual)) as f64 / following as f64;
            assert!((mutual - reciprocity).abs() < 0.002, "{mutual} of {reciprocity}");
        }
    }
}
