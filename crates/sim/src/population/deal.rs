//! Assigns follows, given the numbers of followers and followees of each user.
//!
//! A configuration model: each user draws followees at random, weighted by the number of followers that these still
//! need. Mutual follows are assigned first, in pairs. Other follows are chosen so that, as far as possible, they are
//! not returned.
//!
//! Follows between communities are assigned first. The users who follow most draw first, because it is easiest to find
//! thousands of different followees while most users still need followers. Next are follows within each community,
//! first in small circles. Last, follows without a match are drawn again from all users.

use std::cmp::Reverse;
use std::ops::Range;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::draft::{Draft, at, take_one};
use super::plan::{Plan, Quotas};
use super::steer::Steer;
use super::urn::Urn;

/// Number of times that users without a match are paired again.
const PAIRINGS: u32 = 6;
/// Members of a circle; the last circle of a community has up to twice as many.
const CIRCLE: u32 = 24;
/// Maximum share of a circle that a member follows. Near 1, it is hard to find pairs.
const CIRCLE_PART_MAX: f64 = 0.8;

/// Assigns the planned follows. Each community is a range of places. The resulting clustering is near the requested
/// value.
pub(crate) fn deal(
    plan: Plan,
    communities: &[Range<u32>],
    clustering: f64,
    rng: &mut StdRng,
) -> Draft {
    let Plan { following, mut within, mut elsewhere } = plan;
    let mut draft = Draft::with_room(&following);
    let mut circles = Quotas::none(following.len());
    drop(following);
    let mut dealer = Dealer { draft: &mut draft, rng };
    dealer.deal_elsewhere(&mut elsewhere, communities);
    let mut steer = Steer::new(dealer.draft, clustering, dealer.rng);
    for community in communities {
        dealer.draft.begin_locals(community.clone());
        for circle in circles_of(community) {
            let most = (f64::from(circle.end - circle.start - 1) * CIRCLE_PART_MAX) as u32;
            circles.carve(&mut within, circle.clone(), steer.share(), most);
            dealer.deal_within(&mut circles, circle.clone());
            circles.give_back(&mut within, circle);
        }
        dealer.deal_within(&mut within, community.clone());
        steer.look(dealer.draft, community.clone());
    }
    for (left, more) in within.followers.iter_mut().zip(&elsewhere.followers) {
        *left += more;
    }
    dealer.deal_rest(within.followers);
    draft
}

/// Splits a community into circles.
fn circles_of(community: &Range<u32>) -> impl Iterator<Item = Range<u32>> + use<> {
    let Range { start, end } = *community;
    let count = ((end - start) / CIRCLE).max(1);
    (0..count).map(move |number| {
        let first = start + number * CIRCLE;
        first..if number + 1 == count { end } else { first + CIRCLE }
    })
}

struct Dealer<'a> {
    draft: &'a mut Draft,
    rng: &'a mut StdRng,
}

impl Dealer<'_> {
    fn deal_elsewhere(&mut self, quotas: &mut Quotas, communities: &[Range<u32>]) {
        let places = 0..self.draft.places();
        let members = (0..).zip(communities);
        let home: Vec<u32> =
            members.flat_map(|(number, places)| places.clone().map(move |_| number)).collect();
        self.pair(quotas, places.clone(), |a, b| at(&home, a) != at(&home, b));
        self.draw(quotas, places, |draft, follower, drawn| {
            at(&home, drawn) != at(&home, follower) && !draft.following(drawn).contains(&follower)
        });
    }

    /// Assigns quotas within a circle or a community. Quotas without a match remain.
    fn deal_within(&mut self, quotas: &mut Quotas, places: Range<u32>) {
        self.pair(quotas, places.clone(), |_, _| true);
        self.draw(quotas, places, |draft, follower, drawn| {
            !draft.locals(drawn).contains(&follower)
        });
    }

    /// Assigns quotas without a match to any users.
    fn deal_rest(&mut self, followers: Vec<u32>) {
        let places = 0..self.draft.places();
        let following = places.clone().map(|place| self.draft.room(place)).collect();
        let mut quotas = Quotas { followers, following, mutual: Vec::new() };
        self.draw(&mut quotas, places, |_, _, _| true);
    }

    /// Pairs users who follow each other. Users without a match keep their quota.
    fn pair(&mut self, quotas: &mut Quotas, places: Range<u32>, suits: impl Fn(u32, u32) -> bool) {
        let mut lonely = Vec::new();
        for place in places {
            lonely.resize(lonely.len() + quotas.to_pair(place) as usize, place);
        }
        for _ in 0..PAIRINGS {
            lonely.shuffle(self.rng);
            let mut still = Vec::new();
            for pair in lonely.chunks(2) {
                match *pair {
                    [a, b] if a != b && suits(a, b) && !self.are_joined(a, b) => {
                        for (follower, followed) in [(a, b), (b, a)] {
                            self.draft.add(follower, followed);
                            take_one(&mut quotas.mutual, follower);
                            take_one(&mut quotas.following, follower);
                            take_one(&mut quotas.followers, followed);
                        }
                    }
                    _ => still.extend(pair),
                }
            }
            lonely = still;
        }
    }

    /// Whether one of two users already follows the other. While follows within a community are assigned, only those
    /// count.
    fn are_joined(&self, a: u32, b: u32) -> bool {
        let (mine, theirs) = (self.draft.locals(a), self.draft.locals(b));
        mine.contains(&b) || theirs.contains(&a)
    }

    /// Draws the followees of each user. The users who follow most draw first.
    fn draw(
        &mut self,
        quotas: &mut Quotas,
        places: Range<u32>,
        suits: impl Fn(&Draft, u32, u32) -> bool,
    ) {
        let mut urn = Urn::of(&quotas.followers, places.clone());
        for follower in by_count(&quotas.following, places) {
            self.draft.mark(follower);
            for _ in 0..at(&quotas.following, follower) {
                let draft = &*self.draft;
                let drawn = urn.draw(&mut quotas.followers, self.rng, |drawn| {
                    !draft.is_marked(follower, drawn) && suits(draft, follower, drawn)
                });
                let Some(drawn) = drawn else { break };
                self.draft.add_marked(follower, drawn);
                take_one(&mut quotas.following, follower);
            }
        }
    }
}

/// Places with a count above 0, the highest first.
fn by_count(counts: &[u32], places: Range<u32>) -> Vec<u32> {
    let mut order: Vec<u32> = places.filter(|&place| at(counts, place) > 0).collect();
    order.sort_by_key(|&place| Reverse(at(counts, place)));
    order
}
