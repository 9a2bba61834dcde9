//! What always holds of a population, made or read.

use std::path::PathBuf;

use proptest::prelude::*;
use sim::Population;
use sim::population::Share;

/// Nobody follows themselves or anybody twice, everybody followed exists, and the follower counts
/// are those of the follows.
fn check_invariants(population: &Population) {
    let people = population.people();
    let mut followers = vec![0; people as usize];
    let mut follows = 0;
    for person in 0..people {
        let mut followees = population.following(person).to_vec();
        followees.sort_unstable();
        assert!(followees.is_sorted_by(|a, b| a < b), "{person} follows somebody twice");
        assert!(!followees.contains(&person), "{person} follows themselves");
        for followee in followees {
            *followers.get_mut(followee as usize).expect("somebody who exists") += 1;
            follows += 1;
        }
    }
    assert_eq!(population.follows(), follows);
    assert_eq!(population.follower_counts(), followers);
    assert!(followers.iter().all(|&count| count < people.max(1)));
}

fn check_shares(people: u32) {
    let shares = Population::made(people, 3).shares();
    let near = |table: &[Share], points: f64| {
        for row in table {
            assert!((row.asked - row.achieved).abs() <= points, "{people} people: {row:?}");
        }
    };
    near(&shares.followers, 2.0);
    near(&shares.following, 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_made_population_keeps_its_invariants(people in 0_u32..700, seed: u64) {
        let population = Population::made(people, seed);
        prop_assert_eq!(population.people(), people);
        check_invariants(&population);
    }

    #[test]
    fn the_same_seed_makes_the_same_population(people in 2_u32..400, seed: u64) {
        prop_assert_eq!(Population::made(people, seed), Population::made(people, seed));
    }
}

#[test]
fn another_seed_makes_another_population() {
    assert_ne!(Population::made(500, 1), Population::made(500, 2));
}

#[test]
fn ten_thousand_people_come_near_the_tables() {
    check_shares(10_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "12 million follows: run with --release, where it takes 2 s")]
fn a_hundred_thousand_people_come_near_the_tables_with_12_million_follows() {
    check_shares(100_000);
    let population = Population::made(100_000, 3);
    assert!((11_500_000..12_500_000).contains(&population.follows()), "{}", population.follows());
    check_invariants(&population);
}

#[test]
fn most_people_of_a_small_population_follow_somebody() {
    for people in [50, 200, 1_000] {
        let population = Population::made(people, 9);
        let lonely = (0..people).filter(|&person| population.following(person).is_empty()).count();
        assert!(lonely as u32 * 4 < people, "{lonely} of {people} follow nobody");
    }
}

#[test]
fn a_real_graph_reads_as_mutual_follows() {
    let shared = std::env::var_os("ROOST_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("data/reed98/edges.txt");
    if !path.exists() {
        assert!(std::env::var_os("ROOST_NO_SKIP").is_none(), "nothing may be skipped here");
        eprintln!(
            "SKIPPED: no graph at {}; set ROOST_SHARED to where the data lies",
            path.display()
        );
        return;
    }
    let population = Population::from_edges(&path).expect("a readable graph");
    check_invariants(&population);
    assert_eq!((population.people(), population.follows()), (962, 2 * 18_812));
    for person in 0..population.people() {
        for &friend in population.following(person) {
            assert!(population.following(friend).contains(&person), "{person} and {friend}");
        }
    }
}

#[test]
fn friends_are_mutual_and_everybody_has_about_as_many() {
    for (people, each) in [(2, 1), (3, 1), (3, 2), (20, 19), (1_000, 10), (1_000, 7), (999, 7)] {
        let population = Population::friends(people, each, 5);
        assert_eq!(population.people(), people);
        check_invariants(&population);
        let counts = (0..people).map(|person| population.following(person).len() as u32);
        let more = counts.clone().filter(|&friends| friends > each).count() as u32;
        assert!(more <= people * each % 2, "{more} of {people} have more than {each} friends");
        assert!(counts.min() > Some(each / 3), "somebody has hardly any of {each} friends");
        for person in 0..people {
            let friends = population.following(person);
            let mutual = |friend: &u32| population.following(*friend).contains(&person);
            assert!(friends.iter().all(mutual), "{person}: {friends:?}");
        }
        if people >= 999 {
            let asked = u64::from(people * each);
            assert!(population.follows() * 100 > asked * 98, "{} of {asked}", population.follows());
        }
    }
    assert_ne!(Population::friends(50, 4, 1), Population::friends(50, 4, 2));
}

#[test]
fn a_missing_graph_is_an_error() {
    let error = Population::from_edges(std::path::Path::new("no/such/graph")).expect_err("no file");
    assert!(error.to_string().starts_with("cannot read the graph: "), "{error}");
}
