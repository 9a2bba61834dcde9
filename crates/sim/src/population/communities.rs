//! Communities of very different sizes, each with a few interests.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// All interests of users.
pub const TOPICS: [&str; 40] = [
    "astronomy",
    "baking",
    "ballet",
    "birds",
    "boats",
    "books",
    "bridges",
    "cartoons",
    "ceramics",
    "chess",
    "choirs",
    "cinema",
    "climbing",
    "coffee",
    "comets",
    "cycling",
    "dogs",
    "drawing",
    "ferries",
    "football",
    "fossils",
    "gardens",
    "guitars",
    "history",
    "jazz",
    "kites",
    "knitting",
    "languages",
    "lighthouses",
    "maps",
    "mushrooms",
    "poetry",
    "puzzles",
    "radio",
    "rivers",
    "running",
    "swimming",
    "tea",
    "trains",
    "volcanoes",
];
/// Minimum number of members of a community, unless the population is smaller.
const MEMBERS_MIN: u32 = 100;
/// Divisor that gives the maximum size of a community from the number of users.
const LARGEST_PART: u32 = 10;
/// Minimum and maximum number of interests of a community.
const INTERESTS: (usize, usize) = (3, 5);

/// Users with common interests. Most of them follow each other more than they follow other users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Community {
    pub(crate) members: u32,
    pub(crate) interests: Vec<&'static str>,
}

/// Makes communities of `users` users in random order. The number of communities with at least `n` members is inversely
/// proportional to `n`.
pub(crate) fn made(users: u32, rng: &mut StdRng) -> Vec<Community> {
    let most = f64::from((users / LARGEST_PART).max(2 * MEMBERS_MIN));
    let least = f64::from(MEMBERS_MIN);
    let mut communities = Vec::new();
    let mut left = users;
    while left > 0 {
        let rarity: f64 = rng.random();
        let members = (least / (1.0 - rarity * (1.0 - least / most))) as u32;
        // If too few users are left for another community, they join this one.
        let members = if left < members + MEMBERS_MIN { left } else { members };
        let count = rng.random_range(INTERESTS.0 as u32..=INTERESTS.1 as u32) as usize;
        let interests = TOPICS.sample(rng, count).copied().collect();
        communities.push(Community { members, interests });
        left -= members;
    }
    communities
}

/// Some of the interests of the community (at least one, if it has any), chosen by the number of the user.
pub(crate) fn own_interests(
    community: &Community,
    user: u32,
) -> impl Iterator<Item = &'static str> {
    let all = community.interests.len();
    // Knuth's multiplicative hash: its upper bits are well mixed.
    let bits = (user.wrapping_mul(2_654_435_769) >> 16) as usize;
    let (count, first) = (1 + bits % all.max(1), bits / all.max(1));
    community.interests.iter().copied().cycle().skip(first % all.max(1)).take(count.min(all))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn communities_contain_all_users_and_their_sizes_have_a_heavy_tail() {
        for users in [0, 1, 99, 150, 1_000, 100_000, 1_000_000] {
            let communities = made(users, &mut StdRng::seed_from_u64(4));
            let mut sizes: Vec<u32> = communities.iter().map(|made| made.members).collect();
            sizes.sort_unstable();
            assert_eq!(sizes.iter().sum::<u32>(), users);
            assert!(sizes.iter().all(|&size| size >= users.min(MEMBERS_MIN)), "{users} users");
            if users >= 100_000 {
                let (median, largest) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
                assert!((100..400).contains(&median), "{median}");
                assert!(largest > users / 50, "{largest} of {users}");
                assert!(largest <= users / LARGEST_PART + MEMBERS_MIN, "{largest} of {users}");
            }
        }
    }

    #[test]
    fn users_have_some_interests_of_their_community() {
        let community = Community { members: 9, interests: vec!["tea", "maps", "jazz"] };
        let mut counts = [0; 4];
        for user in 0..1_000 {
            let own: Vec<&str> = own_interests(&community, user).collect();
            counts[own.len()] += 1;
            let is_new = |at: usize| !own[..at].contains(&own[at]);
            assert!((0..own.len()).all(is_new), "{own:?}");
            assert!(own.iter().all(|interest| community.interests.contains(interest)));
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|&count| count > 200), "{counts:?}");
        let none = Community { members: 9, interests: Vec::new() };
        assert_eq!(own_interests(&none, 5).count(), 0);
    }
}
