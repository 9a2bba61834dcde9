//! Everything the server shows against everything the workers know.

use std::collections::HashSet;
use std::thread;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom as _;
use serde_json::Value;

use super::worker::Worker;
use crate::support::http::{Client, number};
use crate::support::process::Server;
use crate::support::world::{Form, Post, World, ids};

/// Readers that are enough after a restart.
const READERS: usize = 16;
/// Connections that read at the same time.
const CONNECTIONS: usize = 3;

/// Whose home timelines, story homes and mentions are compared.
pub(super) enum Readers<'a> {
    /// Those of [`READERS`] people.
    Some(&'a mut StdRng),
    /// Everybody's; and what was deleted is looked for.
    All,
}

/// Compares profiles, follows in both directions, friends, posts, stories, both kinds of homes,
/// mentions, samples and keys.
pub(super) fn check_everything(server: &Server, workers: &[Worker], readers: Readers<'_>) {
    let mut world = World::default();
    for worker in workers {
        world.0.extend(worker.people.clone());
    }
    check_ids_and_texts(&world, workers);
    check_profiles(&mut server.client(), &world);
    let people: Vec<u32> = world.0.keys().copied().collect();
    let everybody = matches!(readers, Readers::All);
    let readers: HashSet<u32> = match readers {
        Readers::Some(rng) => people.iter().copied().sample(rng, READERS).into_iter().collect(),
        Readers::All => people.iter().copied().collect(),
    };
    thread::scope(|scope| {
        for part in people.chunks(people.len().div_ceil(CONNECTIONS).max(1)) {
            let (world, readers, mut client) = (&world, &readers, server.client());
            scope.spawn(move || {
                for user in part {
                    check_person(&mut client, world, *user);
                    if readers.contains(user) {
                        world.check_home(&mut client, *user, 100);
                        world.check_mentions(&mut client, *user, 50);
                        world.check_stories_home(&mut client, *user, 100);
                    }
                }
            });
        }
    });
    workers.iter().for_each(|worker| {
        worker.taught.check(&mut server.client());
        worker.kept.check(&mut server.client());
    });
    if everybody {
        check_deleted(&mut server.client(), &world, workers);
    }
}

/// No id belongs to two posts or stories, and no text occurs twice.
fn check_ids_and_texts(world: &World, workers: &[Worker]) {
    let mut given = HashSet::new();
    let all = workers.iter().flat_map(|worker| worker.published.keys());
    assert!(all.copied().all(|id| given.insert(id)), "an id was given out twice");
    let mut texts = HashSet::new();
    let written = world.0.values().flat_map(|person| person.posts.iter().chain(&person.stories));
    assert!(written.into_iter().all(|post| texts.insert(&post.text)), "a text is there twice");
}

/// Everybody is registered, nobody else is, and what profiles count is right.
fn check_profiles(client: &mut Client, world: &World) {
    let shown: Vec<_> = client.all("/v1/users?limit=100").iter().map(profile).collect();
    let expected = world.0.iter().map(|(id, person)| {
        let (followers, friends) = (world.followers(*id).len(), world.friends(*id).len());
        let counts = [person.posts.len(), followers, person.following.len(), friends];
        (u64::from(*id), person.handle.clone(), counts.map(|n| n as u64))
    });
    assert_eq!(shown, expected.collect::<Vec<_>>());
    let numbers = world.0.keys().copied();
    assert!(numbers.eq(0..world.0.len() as u32), "numbers are given out without gaps");
}

fn profile(user: &Value) -> (u64, String, [u64; 4]) {
    let counts = ["post_count", "follower_count", "following_count", "friend_count"]
        .map(|name| user[name].as_u64().unwrap());
    (number(&user["id"]), user["handle"].as_str().unwrap().to_owned(), counts)
}

/// What a person wrote in the order of its acknowledgement, and their follows in both directions and
/// friends.
fn check_person(client: &mut Client, world: &World, user: u32) {
    let person = &world.0[&user];
    for form in [Form::Post, Form::Story] {
        let shown = client.all(&format!("/v1/users/{user}/{}?limit=100", form.noun()));
        let mut shown: Vec<Post> = shown.iter().map(|post| Post::read(post).1).collect();
        shown.reverse();
        assert_eq!(shown, *person.written(form), "the {} of {user}", form.noun());
    }
    let mut check = |noun: &str, expected: Vec<u32>| {
        let shown = ids(client, &format!("/v1/users/{user}/{noun}?limit=100"));
        let expected = expected.into_iter().map(u64::from);
        assert_eq!(shown, expected.collect::<Vec<_>>(), "the {noun} of {user}");
    };
    check("following", person.following.iter().copied().collect());
    check("followers", world.followers(user));
    check("friends", world.friends(user).into_iter().collect());
}

/// What was deleted is gone.
fn check_deleted(client: &mut Client, world: &World, workers: &[Worker]) {
    let written = world.0.values().flat_map(|person| person.posts.iter().chain(&person.stories));
    let live: HashSet<u64> = written.map(|post| post.id).collect();
    for (id, form) in workers.iter().flat_map(|worker| &worker.published) {
        if !live.contains(id) {
            client.get(&format!("/v1/{}/{id}", form.noun())).expect(404);
        }
    }
}
