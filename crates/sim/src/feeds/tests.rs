//! Worlds: their imports, candidates and bounds.

use std::collections::{HashMap, HashSet};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::continuation::{liked, newest};
use super::history::HISTORY;
use super::*;
use crate::population::{Making, Population};

const END_MS: u64 = 1_800_000_000_000;

fn lines(world: &World) -> String {
    let mut out = Vec::new();
    world.write_import(&mut out, None).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_world_depends_on_the_seed_and_its_end_alone() {
    let made = |seed, end_ms| lines(&World::new(&Making::of(300, seed), end_ms));
    let once = made(1, END_MS);
    assert_eq!(once, made(1, END_MS));
    assert_ne!(once, made(2, END_MS));
    assert_ne!(once, made(1, END_MS + 1));
}

#[test]
fn an_import_has_ascending_posts_followed_by_their_reactions() {
    let world = World::new(&Making::of(400, 1), END_MS);
    let (mut last_post, mut posts, mut reactions, mut tags) = (0, 0, 0, 0);
    let mut ids = HashSet::new();
    for line in lines(&world).lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = |of: &str| line[of]["id"].as_str().unwrap().parse::<u64>().unwrap();
        if line["post"].is_object() {
            posts += 1;
            assert!(id("post") > last_post);
            last_post = id("post");
            assert!(ids.insert(last_post));
            tags += usize::from(line["post"]["text"].as_str().unwrap().contains('#'));
        } else if line["reaction"].is_object() {
            reactions += 1;
            assert!(id("reaction") > last_post && ids.insert(id("reaction")), "{line}");
        }
    }
    assert!((800..1_800).contains(&posts), "{posts}");
    assert!((posts / 3..posts / 2).contains(&tags), "{tags} of {posts}");
    assert!(reactions > posts, "{reactions} reactions to {posts} posts");
    let live = world.live();
    assert!((reactions / 6..reactions).contains(&live.len()), "{} of {reactions}", live.len());
    assert!(live.iter().all(|(user, post, _)| *user < 400 && ids.contains(post)));
    let end = world.id(posts as u32 - 1) >> 22;
    let span = end - (world.id(0) >> 22);
    let history_ms = HISTORY.as_millis() as u64;
    assert!((history_ms * 9 / 10..=history_ms).contains(&span), "{span}");
}

#[test]
fn the_best_order_is_far_above_a_random_one() {
    let world = World::new(&Making::of(500, 1), END_MS);
    let [(random, low), (best, high)] = world.bounds();
    assert_eq!((random, best), (RANDOM, BEST));
    assert!(high.ndcg > 3.0 * low.ndcg && high.recall > 3.0 * low.recall, "{low:?} {high:?}");
    assert!(low.gini < high.gini, "{low:?} {high:?}");
    // Without a post, nothing is liked and nobody is shown.
    let none = world.figures(&vec![Vec::new(); world.readers().len()]);
    assert_eq!((none.ndcg, none.recall, none.unknown, none.gini), (0.0, 0.0, 0.0, 0.0));
}

#[test]
fn candidates_are_posts_of_others_that_the_reader_has_not_seen() {
    let world = World::new(&Making::of(300, 1), END_MS);
    let all: Vec<u64> = (0..300).map(|number| world.id(number)).collect();
    for reader in 0..world.readers().len() {
        let found = world.candidates_of(reader, &all);
        assert!(found.len() < all.len() && found.is_sorted(), "{}", found.len());
        let again: Vec<u64> = found.iter().map(|number| world.id(*number)).collect();
        assert_eq!(world.candidates_of(reader, &again), found);
    }
    assert!(world.candidates_of(0, &[0, 7, u64::MAX]).is_empty(), "no such posts");
}

#[test]
fn an_import_has_the_friendships_that_are_given() {
    let world = World::new(&Making::of(100, 1), END_MS);
    let friends = Population::friends(100, 3, 1);
    let mut out = Vec::new();
    world.write_import(&mut out, Some(&friends)).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let line = format!(
        r#"{{"relation":{{"kind":"friends","user":5,"users":{:?}}}}}"#,
        friends.following(5)
    );
    assert!(lines.contains(&line.replace(' ', "")), "{line}");
}

#[test]
fn users_go_on_to_favourite_posts_of_others_about_their_topics_once() {
    let world = World::new(&Making::of(300, 1), END_MS);
    let (mut known, mut rng) = (newest(&world), StdRng::seed_from_u64(1));
    known.iter_mut().for_each(|it| it.post.reactions.clear());
    let (mut found, mut counts) = (HashSet::new(), HashMap::<u64, u32>::new());
    for turn in 0..20_000 {
        let user = turn % 300;
        let Some(id) = liked(&world, user, &mut known, &mut rng) else { continue };
        let post = known.iter().map(|it| (it.id, &it.post)).find(|(other, _)| *other == id);
        let (_, post) = post.unwrap();
        assert_ne!(post.author, user);
        assert!(world.tastes.of(user).iter().any(|(topic, _)| *topic == post.topic));
        assert!(found.insert((user, id)), "user {user} likes {id} again");
        *counts.entry(id).or_default() += 1;
    }
    let most = counts.values().max().unwrap();
    let mean = found.len() as u32 / counts.len() as u32;
    assert!(found.len() > 2_000 && *most > 2 * mean, "{} favourites, {most}", found.len());
}
