//! A flash crowd: the most followed user posts, and the followers read the post.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Action, PostKind, What, exponential};

/// Mean time from the post until a follower reads it, in seconds.
const LOOK_AFTER_S: f64 = 5.0;

/// Returns the post of `user` at the time `at`, and one read of the home timeline by each of these followers.
pub(crate) fn flash(
    at: Duration,
    user: u32,
    followers: &[u32],
    seed: u64,
) -> impl Iterator<Item = Action> + use<> {
    let mut rng = StdRng::seed_from_u64(seed);
    let what = What::Post { kind: PostKind::Plain, text_seed: rng.random() };
    let mut actions = vec![Action { due: at, user, what }];
    actions.extend(followers.iter().map(|&user| {
        let after = Duration::from_secs_f64(exponential(LOOK_AFTER_S, &mut rng));
        Action { due: at + after, user, what: What::ReadHome }
    }));
    actions.sort_by_key(|action| action.due);
    actions.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_follower_looks_once_soon_after_the_post() {
        let followers: Vec<u32> = (10..2_010).collect();
        let at = Duration::from_secs(30);
        let actions: Vec<Action> = flash(at, 3, &followers, 1).collect();
        assert!(matches!(actions[0], Action { user: 3, what: What::Post { .. }, .. }));
        assert_eq!(actions[0].due, at);
        assert!(actions.is_sorted_by_key(|action| action.due));
        let mut readers: Vec<u32> = actions[1..].iter().map(|action| action.user).collect();
        readers.sort_unstable();
        assert_eq!(readers, followers);
        let soon = actions.iter().filter(|action| action.due < at + Duration::from_secs(5)).count();
        let expect = 2_000.0 * (1.0 - (-1.0_f64).exp());
        assert!((soon as f64 - expect).abs() < 90.0, "{soon} for {expect}");
    }
}
