//! Rates and shares of the workload, counted over a long time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sim::Population;
use sim::population::Making;
use sim::workload::{Action, Crowd, Load, PostKind, What, Workload};

const PEOPLE: u32 = 2_000;
const STRETCH: Duration = Duration::from_secs(1_000);

fn crowd(seed: u64) -> Arc<Crowd> {
    Arc::new(Crowd::new(&Population::made(&Making::of(PEOPLE, 1)), seed))
}

fn actions(load: Load, seed: u64) -> Vec<Action> {
    Workload::new(crowd(seed), load, seed).take_while(|action| action.due < STRETCH).collect()
}

fn name(what: What) -> &'static str {
    match what {
        What::Post { .. } => "post",
        What::ReadHome => "home",
        What::ReadMentions => "mentions",
        other => panic!("not of the feed: {other:?}"),
    }
}

#[test]
fn each_kind_comes_at_the_rate_its_classes_make() {
    // The classes have 100, 285 and 1,215 users. Each expected rate is a sum of users / interval.
    let check = |load: Load, expect: [(&str, f64); 3]| {
        let mut counts = HashMap::new();
        for action in actions(load, 5) {
            *counts.entry(name(action.what)).or_insert(0_u32) += 1;
        }
        for (kind, per_second) in expect {
            let expected = per_second * STRETCH.as_secs_f64();
            let off = (f64::from(counts[kind]) - expected).abs();
            assert!(
                off < 4.5 * expected.sqrt(),
                "{load:?} {kind}: {} for {expected}",
                counts[kind]
            );
        }
    };
    let mentions = 285.0 / 1_000.0 + 1_215.0 / 2_000.0;
    let light_home = 100.0 / 1_000.0 + 285.0 / 40.0 + 1_215.0 / 20.0;
    let heavy_home = 100.0 / 500.0 + 285.0 / 20.0 + 1_215.0 / 20.0;
    let light_post = 100.0 / 10.0 + 285.0 / 90.0;
    let heavy_post = 100.0 / 2.0 + 285.0 / 45.0;
    check(Load::Light, [("post", light_post), ("home", light_home), ("mentions", mentions)]);
    check(Load::Heavy, [("post", heavy_post), ("home", heavy_home), ("mentions", mentions)]);
}

#[test]
fn a_twentieth_of_users_write_most_posts_and_a_fifth_do_nothing() {
    // According to the rates, these are 76 % of the posts under light load and 89 % under heavy load.
    for (load, expect) in [(Load::Light, 75.9), (Load::Heavy, 88.8)] {
        let mut posts = HashMap::new();
        let mut seen = vec![false; PEOPLE as usize];
        for action in actions(load, 6) {
            seen[action.user as usize] = true;
            if name(action.what) == "post" {
                *posts.entry(action.user).or_insert(0_u32) += 1;
            }
        }
        let mut counts: Vec<u32> = posts.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts.iter().take(PEOPLE as usize / 20).sum();
        let percent = f64::from(top) * 100.0 / f64::from(counts.iter().sum::<u32>());
        assert!((percent - expect).abs() < 1.5, "{load:?}: {percent:.1} %");
        assert_eq!(seen.iter().filter(|seen| !**seen).count(), 400, "{load:?}");
    }
}

#[test]
fn posts_are_a_third_each_plain_and_mentioning_followees_first_or_within() {
    let population = Population::made(&Making::of(PEOPLE, 1));
    let mut kinds = [0_u32; 3];
    for action in actions(Load::Heavy, 7) {
        let What::Post { kind, .. } = action.what else { continue };
        let (at, mentioned) = match kind {
            PostKind::Plain => (0, None),
            PostKind::MentionFirst(user) => (1, Some(user)),
            PostKind::MentionWithin(user) => (2, Some(user)),
        };
        kinds[at] += 1;
        let followees = population.following(action.user);
        let fits = |user| followees.contains(&user) || followees.is_empty() && user != action.user;
        assert!(mentioned.is_none_or(fits), "{} mentions {mentioned:?}", action.user);
    }
    let all: u32 = kinds.iter().sum();
    for count in kinds {
        assert!((f64::from(count) / f64::from(all) - 1.0 / 3.0).abs() < 0.01, "{kinds:?}");
    }
}

#[test]
fn actions_come_in_order_of_time_and_the_same_for_the_same_seed() {
    let (first, again) = (actions(Load::Light, 8), actions(Load::Light, 8));
    assert!(first.is_sorted_by_key(|action| action.due));
    assert_eq!(first, again);
    assert_ne!(first, actions(Load::Light, 9));
}

#[test]
fn a_single_user_never_mentions_themselves() {
    let crowd = Arc::new(Crowd::new(&Population::made(&Making::of(1, 1)), 1));
    assert!(Workload::new(crowd, Load::Heavy, 1).take(100).all(|action| {
        !matches!(
            action.what,
            What::Post { kind: PostKind::MentionFirst(0) | PostKind::MentionWithin(0), .. }
        )
    }));
}

#[test]
fn some_users_of_a_class_act_far_more_often_than_others() {
    let mut posts = HashMap::new();
    for action in actions(Load::Heavy, 6) {
        if name(action.what) == "post" {
            *posts.entry(action.user).or_insert(0_u32) += 1;
        }
    }
    let mut counts: Vec<u32> = posts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // A hundred users post every 2 s on average: 500 posts each. The busiest user has 100 x (1/100)^(2/3) times the
    // mean, the last one nearly two thirds of the mean.
    let [most, least] = [counts[0], counts[99]].map(f64::from);
    assert!((most - 500.0 * 100.0_f64.powf(1.0 / 3.0)).abs() < 250.0, "{most}");
    assert!((least - 500.0 * 2.0 / 3.0).abs() < 80.0, "{least}");
}

#[test]
fn deathstar_actions_have_their_shares_and_are_uniform_over_users() {
    let stretch = Duration::from_secs(40);
    let actions = Workload::new(crowd(3), Load::Deathstar, 3);
    assert!((actions.per_second() - 1_000.0).abs() < 1e-9);
    let actions: Vec<Action> = actions.take_while(|action| action.due < stretch).collect();
    let all = actions.len() as f64;
    assert!((all - 40_000.0).abs() < 4.5 * 40_000_f64.sqrt(), "{all}");
    let mut counts = HashMap::new();
    let (mut by, mut of) = (vec![0_u32; PEOPLE as usize], vec![0_u32; PEOPLE as usize]);
    for action in actions {
        by[action.user as usize] += 1;
        let name = match action.what {
            What::ReadHome => "home",
            What::ReadUserTimeline(other) => {
                of[other as usize] += 1;
                "user"
            }
            What::Post { kind: PostKind::Plain, .. } => "plain",
            What::Post { kind: PostKind::MentionFirst(_), .. } => "first",
            What::Post { kind: PostKind::MentionWithin(_), .. } => "within",
            other => panic!("{other:?}"),
        };
        *counts.entry(name).or_insert(0_u32) += 1;
    }
    let mention = 0.1 / 3.0;
    for (name, share) in
        [("home", 0.6), ("user", 0.3), ("plain", mention), ("first", mention), ("within", mention)]
    {
        let off = (f64::from(counts[name]) - share * all).abs();
        assert!(off < 4.5 * (share * (1.0 - share) * all).sqrt(), "{name}: {counts:?}");
    }
    // Each user does about 20 actions and is read about 6 times. With a heavy tail, one user would have 80.
    assert!(by.iter().all(|count| (1..50).contains(count)), "{:?}", by.iter().max());
    assert!(of.iter().all(|count| *count < 25), "{:?}", of.iter().max());
}
